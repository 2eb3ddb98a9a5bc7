//! The one test binary: what must hold of the whole agent, of both its runtimes and of the programs.

mod attached;
mod authority;
mod cases;
#[cfg(target_os = "linux")]
mod children;
mod commands;
mod commands_in_files;
mod controls;
mod crash;
mod editor;
#[cfg(target_os = "linux")]
mod escapes;
mod files;
mod gate;
mod inbox;
mod kills;
#[cfg(target_os = "linux")]
mod launches;
mod machine;
mod mcp;
mod permission;
mod pressure;
mod profiles;
mod quiet;
mod real;
mod replay;
mod requests;
mod roots;
mod rules;
mod runtimes;
#[cfg(target_os = "linux")]
mod sandbox;
mod schema;
mod secrets;
mod servers;
mod sessions;
mod settle;
mod shell;
mod snapshots;
mod source;
#[cfg(unix)]
mod special;
mod stream;
mod table;
mod tolerance;
mod turns;
mod web;
mod wire;
