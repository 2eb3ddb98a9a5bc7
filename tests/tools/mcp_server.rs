//! `mcp-server stdio MANNERS…` serves its standard streams; `mcp-server web MANNERS…` prints its
//! address and serves until it is killed. What the manners are stands in `tests/mcp`.

use std::process::ExitCode;

use reasonix_tests::mcp::{Web, serve};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((way, manners)) if way == "stdio" => serve(manners),
        Some((way, manners)) if way == "web" => {
            let web = Web::start(manners);
            println!("{}", web.url());
            loop {
                std::thread::park();
            }
        }
        _ => {
            eprintln!("mcp-server stdio|web MANNERS");
            ExitCode::from(2)
        }
    }
}
