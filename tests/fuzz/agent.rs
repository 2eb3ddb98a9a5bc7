//! A whole agent: any frames, any news in any order, any time. The bytes choose; what must hold is
//! asserted in the chaos that the property tests run too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reasonix_core::agent::Config;
use reasonix_core::settings::Host;

#[path = "../chaos.rs"]
mod chaos;

fn config() -> Config {
    let host = Host {
        os: "linux".into(),
        shell: "bash".into(),
        user_home: Some("/home/user".into()),
        home: Some("/home/user/.reasonix".into()),
        tmp: "/tmp".into(),
    };
    Config::new([7; 32], host)
}

fuzz_target!(|data: &[u8]| {
    let whole = chaos::run(config(), data, chaos::Cut::Whole);
    let bytewise = chaos::run(config(), data, chaos::Cut::Pieces(3));
    assert_eq!(whole, bytewise);
});
