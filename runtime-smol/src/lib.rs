//! Runs a reasonix agent on `async-io`.
