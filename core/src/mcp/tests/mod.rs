//! Servers that behave and servers that do not, in a simulated world: no process, no socket, a
//! virtual clock.

mod http;
mod lists;
mod pages;
mod property;
mod said;
mod stdio;
mod world;
