//! All of it as one machine: what the runtimes drive.
