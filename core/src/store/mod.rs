//! What is written when, and how it is read again after any crash. Pure: files are calls of its
//! parents.
//!
//! A session's truth is its transcript, a file that only grows. What must not be forgotten is in it
//! before it is answered; what stands beside it is made from it again (a summary for lists) or
//! claims nothing that the transcript does not show (the inbox).
//!
//! | file | what lives there |
//! | --- | --- |
//! | `journal` | the writing end of a file of JSON lines |
//! | `lines` | the reading end, whatever happened to the file |
//! | `layout` | where things stand beneath the agent's home |
//! | `summary` | what a list shows of a session |
//! | `inbox` | messages for later |

pub mod inbox;
pub mod journal;
pub mod layout;
pub mod lines;
pub mod summary;

pub use journal::{Journal, Place, Safe};
pub use layout::SessionFiles;
pub use lines::Lines;
pub use summary::Summary;
