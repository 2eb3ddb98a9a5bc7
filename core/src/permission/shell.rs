//! How far a command line can be understood without running it.

use alloc::string::String;
use alloc::vec::Vec;

/// The words of a line that is exactly one literal simple command; `None` for everything else.
pub fn literal_words(line: &str) -> Option<Vec<String>> {
    let _ = line;
    todo!()
}

/// The words an "always" for this line covers: the program and the words that name what it does.
/// `None`: only the line itself.
pub fn prefix(line: &str) -> Option<Vec<String>> {
    let _ = line;
    todo!()
}
