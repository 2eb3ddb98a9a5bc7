//! The characters that HTML has names and numbers for.

use alloc::string::String;

/// Longest name of an entity, bytes.
const LONGEST: usize = 10;

/// The text with its entities resolved.
pub(super) fn decode(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let name_end = rest
            .bytes()
            .take(LONGEST)
            .position(|b| !b.is_ascii_alphanumeric() && b != b'#');
        let named = name_end
            .filter(|end| rest.as_bytes()[*end] == b';')
            .and_then(|end| Some((entity(&rest[..end])?, end + 1)));
        match named {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    let known = ENTITIES.iter().find(|(known, _)| *known == name);
    known.map(|(_, c)| *c)
}

/// What pages are full of; the rest of the two thousand stays as it is written.
const ENTITIES: &[(&str, char)] = &[
    ("Auml", 'Ä'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("agrave", 'à'),
    ("amp", '&'),
    ("apos", '\''),
    ("auml", 'ä'),
    ("bull", '•'),
    ("ccedil", 'ç'),
    ("cent", '¢'),
    ("copy", '©'),
    ("darr", '↓'),
    ("deg", '°'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("euro", '€'),
    ("frac12", '½'),
    ("ge", '≥'),
    ("gt", '>'),
    ("hellip", '…'),
    ("laquo", '«'),
    ("larr", '←'),
    ("ldquo", '“'),
    ("le", '≤'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("micro", 'µ'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", '\u{a0}'),
    ("ndash", '–'),
    ("ne", '≠'),
    ("ntilde", 'ñ'),
    ("ouml", 'ö'),
    ("para", '¶'),
    ("plusmn", '±'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rarr", '→'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("sect", '§'),
    ("szlig", 'ß'),
    ("times", '×'),
    ("trade", '™'),
    ("uarr", '↑'),
    ("uuml", 'ü'),
    ("yen", '¥'),
    ("zwnj", '\u{200c}'),
];
