//! Text that must not be shown.

mod spellings;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use aho_corasick::AhoCorasick;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// Values shorter than this are no keys, and would eat ordinary words, bytes.
const SHORTEST: usize = 8;

/// A piece of a key at the edge of a text counts from this length on, bytes.
const EDGE: usize = 6;

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

    /// `text` with every occurrence of the value replaced by `[redacted]`; also of the middle half of
    /// a long one, with what stands around it of the rest: who has that can guess the whole.
    ///
    /// Values shorter than 8 bytes are left alone: they are no keys, and would eat ordinary words.
    pub fn redact(&self, text: &mut String) {
        let Some((from, to)) = self.heart() else {
            return;
        };
        let (value, heart) = (self.value.as_bytes(), &self.value[from..to]);
        let Some(mut at) = text.find(heart) else {
            return;
        };
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        loop {
            let bytes = text.as_bytes();
            let before = bytes[done..at].iter().rev();
            let same = before.zip(value[..from].iter().rev());
            let mut start = at - same.take_while(|(a, b)| a == b).count();
            let behind = bytes[at + heart.len()..].iter();
            let same = behind.zip(&value[to..]).take_while(|(a, b)| a == b);
            let mut end = at + heart.len() + same.count();
            while !text.is_char_boundary(start) {
                start += 1;
            }
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            out.push_str(&text[done..start]);
            out.push_str(REDACTED);
            done = end;
            match text[done..].find(heart) {
                Some(next) => at = done + next,
                None => break,
            }
        }
        out.push_str(&text[done..]);
        *text = out;
    }

    /// Where the part of the value is that is looked for; none: it is too short.
    fn heart(&self) -> Option<(usize, usize)> {
        let length = self.value.len();
        if length < SHORTEST {
            return None;
        }
        // The half of a short one is too little to be told from other words.
        let (from, to) = match length / 2 {
            half if half < SHORTEST => (0, length),
            _ => (length / 4, length - length / 4),
        };
        let whole = self.value.is_char_boundary(from) && self.value.is_char_boundary(to);
        Some(if whole { (from, to) } else { (0, length) })
    }

    fn heart_text(&self) -> Option<&str> {
        self.heart().map(|(from, to)| &self.value[from..to])
    }

    /// How many bytes at the end of `text` are the beginning of the value, `least` or more, and not all
    /// of it.
    fn begun_by(&self, text: &[u8], least: usize) -> usize {
        let value = self.value.as_bytes();
        if value.len() < SHORTEST {
            return 0;
        }
        let lengths = (least..value.len()).rev();
        let mut fits = lengths.filter(|n| text.ends_with(&value[..*n]));
        fits.next().unwrap_or(0)
    }

    /// How many bytes at the beginning of `text` are the end of the value.
    fn ended_by(&self, text: &[u8]) -> usize {
        let value = self.value.as_bytes();
        if value.len() < SHORTEST {
            return 0;
        }
        let lengths = (EDGE..value.len()).rev();
        let mut fits = lengths.filter(|n| text.starts_with(&value[value.len() - n..]));
        fits.next().unwrap_or(0)
    }
}

/// All secrets that nothing of may be shown, with the usual ways to encode them: base64 (also of a text
/// that a secret is a part of, not folded over lines), hexadecimal, percent-encoding.
///
/// To copy it is cheap.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Wanted>);

#[derive(Default)]
struct Wanted {
    all: Vec<Secret>,
    /// Finds out in one pass whether there is anything to look for: texts with keys are rare. None:
    /// there are no keys.
    hearts: Option<AhoCorasick>,
}

impl Secrets {
    /// These, and no other.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut all = Vec::new();
        for secret in secrets {
            if secret.value.len() >= SHORTEST {
                let spelled = spellings::of(&secret.value).into_iter();
                all.extend(spelled.map(|value| Secret::new(secret.name(), value)));
                all.push(secret);
            }
        }
        // The longest first: one may be part of another, whose rest would stay.
        all.sort_by_key(|secret| core::cmp::Reverse(secret.value.len()));
        let hearts: Vec<&str> = all.iter().filter_map(Secret::heart_text).collect();
        let hearts = match hearts.is_empty() {
            true => None,
            // It fails for gigabytes of keys; then each is looked for by itself.
            false => AhoCorasick::new(hearts).ok(),
        };
        Self(Arc::new(Wanted { all, hearts }))
    }

    /// `text` without them.
    pub fn redact(&self, text: &mut String) {
        if self
            .0
            .hearts
            .as_ref()
            .is_some_and(|hearts| !hearts.is_match(text.as_str()))
        {
            return;
        }
        for secret in &self.0.all {
            secret.redact(text);
        }
    }

    /// The same for a piece of a longer text: what its edges have cut in two goes too.
    pub fn redact_piece(&self, text: &mut String) {
        self.redact(text);
        for secret in &self.0.all {
            let mut end = text.len() - secret.begun_by(text.as_bytes(), EDGE);
            if end < text.len() {
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                text.truncate(end);
                text.push_str(REDACTED);
            }
            let mut start = secret.ended_by(text.as_bytes());
            if start > 0 {
                while !text.is_char_boundary(start) {
                    start -= 1;
                }
                text.replace_range(..start, REDACTED);
            }
        }
    }

    /// Whether a text that holds one of them would become one that has its mark in its place: whoever
    /// wrote it had seen no more than that.
    pub fn are_lost(&self, old: &str, new: &str) -> bool {
        let marks = |text: &str| text.matches(REDACTED).count();
        marks(new) > marks(old) && {
            let mut shown = String::from(old);
            self.redact(&mut shown);
            shown != old
        }
    }

    /// How many bytes at the end of `text` may be the beginning of one, so that they can be shown only
    /// when it is known what follows.
    pub fn begun_by(&self, text: &[u8]) -> usize {
        let begun = self.0.all.iter().map(|secret| secret.begun_by(text, 1));
        begun.max().unwrap_or(0)
    }
}

/// By what is looked for, not by how.
impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.0.all == other.0.all
    }
}

impl Eq for Secrets {}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.all).finish()
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

    #[test]
    fn a_key_is_found_wherever_it_stands_and_most_of_it_counts_as_it() {
        const KEY: &str = "sk-0123456789abcdefXYZ";
        let secrets = Secrets::new([Secret::new("K", KEY), Secret::new("S", "short")]);
        #[track_caller]
        fn check(secrets: &Secrets, text: &str, shown: &str) {
            let mut redacted = String::from(text);
            secrets.redact(&mut redacted);
            assert_eq!(redacted, shown, "{text}");
        }
        check(&secrets, "", "");
        check(&secrets, "short sk-0123", "short sk-0123");
        check(&secrets, KEY, "[redacted]");
        check(
            &secrets,
            &format!("{KEY}{KEY} é{KEY}é\n{KEY}"),
            "[redacted][redacted] é[redacted]é\n[redacted]",
        );
        // Cut at either side, or at both.
        check(&secrets, &format!("a {} b", &KEY[2..]), "a [redacted] b");
        check(&secrets, &format!("a {} b", &KEY[..19]), "a [redacted] b");
        check(&secrets, &format!("a{}b", &KEY[4..18]), "a[redacted]b");
        // A short one counts as a whole.
        let secrets = Secrets::new([Secret::new("K", "hunter22")]);
        check(&secrets, "hunter2 hunter22!", "hunter2 [redacted]!");
        // One that is not ASCII.
        let secrets = Secrets::new([Secret::new("K", "ключ-ключ-ключ")]);
        check(&secrets, "к ключ-ключ-ключ к", "к [redacted] к");
    }

    #[test]
    fn a_key_that_is_part_of_another_leaves_nothing_of_it() {
        let short = Secret::new("A", "planted-key");
        let long = Secret::new("B", "left-planted-key-right");
        for secrets in [[short.clone(), long.clone()], [long, short]] {
            let mut text = String::from("a left-planted-key-right b planted-key c");
            Secrets::new(secrets).redact(&mut text);
            assert_eq!(text, "a [redacted] b [redacted] c");
        }
    }

    #[test]
    fn a_key_is_found_as_it_is_usually_encoded() {
        let secrets = Secrets::new([Secret::new("K", "sk-a+b/c=d?0123456789xyz~")]);
        #[track_caller]
        fn check(secrets: &Secrets, text: &str, shown: &str) {
            let mut redacted = String::from(text);
            secrets.redact(&mut redacted);
            assert_eq!(redacted, shown, "{text}");
        }
        // `base64` of the key, of `KEY=`, `A=` and `AB=` with it, and a line end behind each.
        check(
            &secrets,
            "c2stYStiL2M9ZD8wMTIzNDU2Nzg5eHl6fgo=",
            "[redacted]fgo=",
        );
        check(
            &secrets,
            "S0VZPXNrLWErYi9jPWQ/MDEyMzQ1Njc4OXh5en4K",
            "S0VZPXNr[redacted]en4K",
        );
        check(
            &secrets,
            "QT1zay1hK2IvYz1kPzAxMjM0NTY3ODl4eXp+Cg==",
            "QT1z[redacted]Cg==",
        );
        check(
            &secrets,
            "QUI9c2stYStiL2M9ZD8wMTIzNDU2Nzg5eHl6fgo=",
            "QUI9[redacted]fgo=",
        );
        // In an address, every byte of it, and in both cases.
        check(
            &secrets,
            "?k=sk-a%2Bb%2Fc%3Dd%3F0123456789xyz~&b",
            "?k=[redacted]&b",
        );
        check(
            &secrets,
            "?k=sk-a%2bb%2fc%3dd%3f0123456789xyz~&b",
            "?k=[redacted]&b",
        );
        let every = |percent: &str| -> String {
            let hex = "736b2d612b622f633d643f3031323334353637383978797a7e".as_bytes();
            let (pairs, _) = hex.as_chunks::<2>();
            let pair = |it: &[u8; 2]| format!("{percent}{}", core::str::from_utf8(it).unwrap());
            pairs.iter().map(pair).collect()
        };
        for text in [every(""), every("%")] {
            check(&secrets, &format!("x {text} y"), "x [redacted] y");
            check(&secrets, &text.to_uppercase(), "[redacted]");
        }
    }

    #[test]
    fn what_the_edges_of_a_piece_cut_in_two_is_not_shown() {
        const KEY: &str = "sk-0123456789abcdefXYZ";
        let secrets = Secrets::new([Secret::new("K", KEY)]);
        let whole = format!("before {KEY} behind");
        for at in 0..=whole.len() {
            let mut shown = String::new();
            for piece in [&whole[..at], &whole[at..]] {
                let mut piece = String::from(piece);
                secrets.redact_piece(&mut piece);
                shown.push_str(&piece);
            }
            // What is left of it is too little to be of use.
            let left = (EDGE..=KEY.len()).flat_map(|n| [&KEY[..n], &KEY[KEY.len() - n..]]);
            for part in left {
                assert!(!shown.contains(part), "{at}: {shown}");
            }
        }
        assert_eq!(secrets.begun_by(b"x sk-0123"), 7);
        assert_eq!(secrets.begun_by(b"x s"), 1);
        assert_eq!(secrets.begun_by(b"x sk_"), 0);
        assert_eq!(secrets.begun_by(KEY.as_bytes()), 0);
        assert_eq!(secrets.begun_by(b""), 0);
    }
}
