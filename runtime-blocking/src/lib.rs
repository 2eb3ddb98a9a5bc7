//! Runs a reasonix agent on plain threads.
