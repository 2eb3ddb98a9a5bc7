//! A whole agent: any frames, any news in any order, any time. The bytes choose; what must hold is
//! asserted in the chaos that the property tests run too.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use reasonix_core::agent::Config;
use reasonix_core::settings::{Host, Model, Provider};

#[path = "../chaos.rs"]
mod chaos;

fn config() -> Config {
    let host = Host {
        os: "linux".into(),
        shell: "bash".into(),
        user_home: Some("/home/user".into()),
        home: Some("/home/user/.reasonix".into()),
        tmp: "/tmp".into(),
        sandbox: Default::default(),
    };
    let mut config = Config::new([7; 32], host);
    config.settings.default_model = Some("local/tiny".into());
    config.settings.providers = vec![Provider {
        name: "local".into(),
        base_url: "http://model.test/v1".into(),
        api_key_env: None,
        api_key: None,
        max_retries: 1,
        idle_timeout: Duration::from_secs(30),
        models: vec![Model {
            id: "tiny".into(),
            ..Model::default()
        }],
    }];
    config
}

fuzz_target!(|data: &[u8]| {
    let whole = chaos::run(config(), data, chaos::Cut::Whole);
    let bytewise = chaos::run(config(), data, chaos::Cut::Pieces(3));
    assert_eq!(whole, bytewise);
});
