//! Text that must not be shown.

use alloc::string::String;
use core::fmt;

/// A key or token. `Debug` and `Display` show its name only, so neither a log nor a trace nor an
/// error can hold the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// A secret `value` that people know as `name` (for keys: the name of the variable).
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// What people know it as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value itself: only for what is sent to the party it belongs to.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// `text` with every occurrence of the value replaced by `[redacted]`.
    ///
    /// Values shorter than 8 bytes are left alone: they are no keys, and would eat ordinary words.
    pub fn redact(&self, text: &mut String) {
        if self.value.len() >= 8 && text.contains(self.value.as_str()) {
            *text = text.replace(self.value.as_str(), "[redacted]");
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn the_value_is_in_no_rendering() {
        let key = Secret::new("API_KEY", "sk-0123456789");
        assert_eq!(format!("{key:?} {key}"), "Secret(API_KEY) [API_KEY]");
        let mut text = String::from("401 for sk-0123456789!");
        key.redact(&mut text);
        assert_eq!(text, "401 for [redacted]!");
    }
}
