//! What is written when, and what is recovered from any beginning of it. Pure: bytes in, bytes out;
//! knows neither the protocol nor who does the writing.

pub mod inbox;
