//! The server as a program on its standard streams.
//!
//! | word | what it does |
//! | --- | --- |
//! | `dies` | ends before it answers `initialize` |
//! | `exits` | ends in mid call |
//! | `flood` | writes on its standard error without end |
//! | `noise` | begins with lines that are no messages |
//! | `drips` | writes one byte at a time |
//! | `family` | starts a child that holds its outputs and ignores signals |
//! | `stays` | ignores the end of its input, and signals |
//! | `loose` | ends its lines with CR LF and leaves out the last line end |

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use super::{Act, Server};

/// Serves standard input until it ends.
pub fn serve(manners: &[String]) -> ExitCode {
    let variables = std::env::vars().map(|(name, value)| format!("{name}={value}"));
    let given: Vec<_> = variables.chain(std::env::args()).collect();
    let mut server = Server::new(manners, given.join("\n"));
    if server.is("gossips") {
        eprintln!("given: {}", server.given);
    }
    if server.is("noise") {
        print(b"Starting...\n\n{\"level\":\"info\"}\n\xff\xfe\x00\n[1,2]\n");
    }
    if server.is("family") {
        // What names it is on its command line, for those that look for who is left.
        let line = "trap '' TERM HUP; while :; do sleep 1; done";
        let child = Command::new("sh")
            .args(["-c", line, "child"])
            .args(manners)
            .spawn();
        child.map(drop).unwrap_or_default();
    }
    if server.is("flood") {
        std::thread::spawn(|| {
            let line = [b"!".repeat(200), b"\n".to_vec()].concat();
            while std::io::stderr().write_all(&line).is_ok() {}
        });
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        for act in server.take(&line) {
            match act {
                Act::Say(text) if server.is("drips") => {
                    for byte in text.bytes().chain([b'\n']) {
                        print(&[byte]);
                        // The point of it: slow.
                        std::thread::sleep(Duration::from_micros(300));
                    }
                }
                Act::Say(text) if server.is("loose") => {
                    print(text.replace('\n', " ").as_bytes());
                    print(b"\r\n");
                }
                Act::Say(text) => {
                    print(text.as_bytes());
                    print(b"\n");
                }
                Act::End(code, words) => {
                    eprintln!("{words}");
                    return ExitCode::from(u8::try_from(code).unwrap_or(1));
                }
            }
        }
    }
    while server.is("stays") {
        std::thread::park();
    }
    ExitCode::SUCCESS
}

fn print(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    // A client that is gone is the end soon enough.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}
