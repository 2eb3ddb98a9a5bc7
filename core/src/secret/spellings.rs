//! How a key looks when something encoded it on its way: what a command prints with `base64`, `xxd` or
//! as a part of an address. Pure. By hand, since only whole groups without padding are wanted, and
//! since secrets are known where no library is.

use alloc::collections::BTreeSet;
use alloc::string::String;

const COMMON: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The other spellings of a value: base64 in both alphabets, wherever in a longer text the value
/// stands; percent-encoded, what has to be and every byte; hexadecimal.
pub(super) fn of(value: &str) -> BTreeSet<String> {
    let bytes = value.as_bytes();
    let mut all = BTreeSet::new();
    for last in [b"+/", b"-_"] {
        for skip in 0..3 {
            all.insert(base64(bytes.get(skip..).unwrap_or_default(), last));
        }
    }
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    for digits in [b"0123456789abcdef", b"0123456789ABCDEF"] {
        let digit = |half: u8| char::from(digits[usize::from(half & 15)]);
        let [mut hex, mut percent, mut needed] =
            [2, 3, 3].map(|n| String::with_capacity(n * bytes.len()));
        for byte in bytes {
            let two = [digit(byte >> 4), digit(*byte)];
            hex.extend(two);
            percent.push('%');
            percent.extend(two);
            match unreserved(*byte) {
                true => needed.push(char::from(*byte)),
                false => {
                    needed.push('%');
                    needed.extend(two);
                }
            }
        }
        all.extend([hex, percent, needed]);
    }
    all.remove(value);
    all
}

/// The groups of three that are whole: what stands there whatever follows.
fn base64(bytes: &[u8], last: &[u8; 2]) -> String {
    let letter = |index: u32| {
        let index = (index & 63) as usize;
        let found = COMMON
            .get(index)
            .or_else(|| last.get(index.wrapping_sub(62)));
        // Six bits have 64 values.
        char::from(*found.unwrap_or(&b'='))
    };
    let (groups, _) = bytes.as_chunks::<3>();
    let group = |it: &[u8; 3]| u32::from_be_bytes([0, it[0], it[1], it[2]]);
    groups
        .iter()
        .map(group)
        .flat_map(|it| [it >> 18, it >> 12, it >> 6, it])
        .map(letter)
        .collect()
}
