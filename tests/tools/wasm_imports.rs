//! Says what a wasm module imports; fails if that is anything at all.

use std::process::ExitCode;

/// A number in LEB128 at the front of `bytes`, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// How many imports the module declares; none if it is not a module.
fn imports(module: &[u8]) -> Option<usize> {
    let mut rest = module.strip_prefix(b"\0asm\x01\0\0\0")?;
    while let [section, tail @ ..] = rest {
        let (length, body) = number(tail)?;
        if *section == 2 {
            return number(body).map(|(count, _)| count);
        }
        rest = body.get(length..)?;
    }
    Some(0)
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).expect("the path of a wasm module");
    let module = std::fs::read(&path).expect("the module can be read");
    match imports(&module) {
        Some(0) => {
            println!("{} bytes, no imports", module.len());
            ExitCode::SUCCESS
        }
        Some(count) => {
            eprintln!("{path}: {count} imports");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{path}: not a wasm module");
            ExitCode::FAILURE
        }
    }
}
