//! Tool calls put together from their pieces, whatever a server does with ids and indexes. Knows
//! no tools.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::chunk::{CallPiece, mend};
use super::types::ModelCall;

/// The calls of one answer, as far as they came.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Building>);

#[derive(Debug)]
struct Building {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    braces: Braces,
}

/// Where a piece belongs.
enum Place {
    /// To this call.
    At(usize),
    /// It opens a call.
    New,
    /// It repeats what is there.
    Repeated,
}

impl Calls {
    /// Takes a piece.
    ///
    /// - A known id: that call. If its arguments are whole already, the same call again is a copy
    ///   and is dropped; another object with a name is another call.
    /// - A new id: a new call, unless the call of that index is not whole and the piece has no
    ///   name: then the server makes up ids as it goes.
    /// - No id: the call of that index, without an index the latest one; a name behind whole
    ///   arguments opens a call.
    pub(super) fn add(&mut self, piece: CallPiece) {
        let place = if piece.id.is_empty() {
            self.place_without_id(&piece)
        } else {
            self.place_by_id(&piece)
        };
        match place {
            Place::At(at) => self.0[at].extend(piece),
            Place::New => self.0.push(Building::new(piece)),
            Place::Repeated => {}
        }
    }

    /// What they have come to, with the arguments judged.
    pub(super) fn finish(self) -> Vec<ModelCall> {
        self.0.into_iter().map(Building::finish).collect()
    }

    fn place_by_id(&self, piece: &CallPiece) -> Place {
        if let Some(at) = self.0.iter().rposition(|call| call.id == piece.id) {
            let call = &self.0[at];
            return if !call.braces.closed() || piece.arguments.trim().is_empty() {
                Place::At(at)
            } else if call.is_repeated_by(piece) {
                Place::Repeated
            } else if !piece.name.is_empty() && piece.arguments.trim_start().starts_with('{') {
                Place::New
            } else {
                Place::At(at)
            };
        }
        let Some(at) = self.with_index(piece.index) else {
            return Place::New;
        };
        let call = &self.0[at];
        let nameless = piece.name.is_empty() || (call.id.is_empty() && call.name == piece.name);
        if nameless && !call.braces.closed() {
            Place::At(at)
        } else {
            Place::New
        }
    }

    fn place_without_id(&self, piece: &CallPiece) -> Place {
        let at = match piece.index {
            Some(_) => self.with_index(piece.index),
            None => self.0.len().checked_sub(1),
        };
        let Some(at) = at else {
            let junk = piece.name.is_empty() && piece.arguments.is_empty();
            return if junk { Place::Repeated } else { Place::New };
        };
        let call = &self.0[at];
        if piece.name.is_empty() {
            Place::At(at)
        } else if call.braces.closed() {
            if call.is_repeated_by(piece) {
                Place::Repeated
            } else {
                Place::New
            }
        } else if call.name.is_empty() || call.name == piece.name {
            Place::At(at)
        } else if piece.index.is_some() && call.arguments.is_empty() {
            // A name in pieces.
            Place::At(at)
        } else {
            Place::New
        }
    }

    fn with_index(&self, index: Option<u64>) -> Option<usize> {
        index?;
        self.0.iter().rposition(|call| call.index == index)
    }
}

impl Building {
    fn new(piece: CallPiece) -> Self {
        let mut braces = Braces::default();
        braces.push(&piece.arguments);
        Self {
            index: piece.index,
            id: piece.id,
            name: piece.name,
            arguments: piece.arguments,
            braces,
        }
    }

    fn extend(&mut self, piece: CallPiece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.name != piece.name && self.arguments.is_empty() {
            self.name.push_str(&piece.name);
        }
        self.braces.push(&piece.arguments);
        self.arguments.push_str(&piece.arguments);
    }

    fn is_repeated_by(&self, piece: &CallPiece) -> bool {
        (piece.name.is_empty() || piece.name == self.name)
            && piece.arguments.trim() == self.arguments.trim()
    }

    fn finish(self) -> ModelCall {
        let (arguments, fault) = match self.arguments.trim() {
            "" | "null" => ("{}".into(), None),
            text => match serde_json::from_str::<AnyObject>(text) {
                Ok(AnyObject) => (mend(text).into_owned(), None),
                Err(error) => (self.arguments, Some(error.to_string())),
            },
        };
        ModelCall {
            id: self.id,
            name: self.name,
            arguments,
            fault,
        }
    }
}

/// Whether a text that comes in pieces is one whole JSON object, by its braces alone: one look at
/// each byte.
#[derive(Debug, Default)]
struct Braces {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
    broken: bool,
}

impl Braces {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.escaped {
                self.escaped = false;
            } else if self.in_string {
                self.escaped = byte == b'\\';
                self.in_string = byte != b'"';
            } else if self.depth == 0 && !byte.is_ascii_whitespace() {
                self.broken |= self.begun || byte != b'{';
                self.begun = true;
                self.depth = 1;
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    fn closed(&self) -> bool {
        self.begun && !self.broken && self.depth == 0
    }
}

/// Any JSON object, its members not looked at.
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = AnyObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyObject, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(AnyObject)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece: index (−1: none), id, name, arguments.
    type Piece<'a> = (i64, &'a str, &'a str, &'a str);

    fn check(pieces: &[Piece<'_>], want: &[(&str, &str, &str)]) {
        let mut calls = Calls::default();
        for (index, id, name, arguments) in pieces {
            calls.add(CallPiece {
                index: u64::try_from(*index).ok(),
                id: (*id).into(),
                name: (*name).into(),
                arguments: (*arguments).into(),
            });
        }
        let got = calls.finish();
        let got: Vec<_> = got
            .iter()
            .map(|call| {
                (
                    call.id.as_str(),
                    call.name.as_str(),
                    call.arguments.as_str(),
                )
            })
            .collect();
        assert_eq!(got, want, "{pieces:?}");
    }

    const A: &str = r#"{"path":"a.txt"}"#;
    const B: &str = r#"{"path":"b.txt"}"#;

    #[test]
    fn calls_that_share_an_index_are_not_merged() {
        check(
            &[(0, "a", "read", A), (0, "b", "read", B)],
            &[("a", "read", A), ("b", "read", B)],
        );
        check(
            &[
                (0, "a", "read", ""),
                (0, "", "", A),
                (0, "b", "read", ""),
                (0, "", "", B),
            ],
            &[("a", "read", A), ("b", "read", B)],
        );
        check(
            &[(0, "a", "now", ""), (0, "b", "now", "")],
            &[("a", "now", "{}"), ("b", "now", "{}")],
        );
        check(
            &[(0, "", "read", A), (0, "", "read", B)],
            &[("", "read", A), ("", "read", B)],
        );
    }

    #[test]
    fn a_piece_without_index_belongs_to_the_latest_call() {
        check(
            &[
                (-1, "a", "read", "{\"pa"),
                (-1, "", "", "th\":\"a.txt\"}"),
                (-1, "b", "read", B),
            ],
            &[("a", "read", A), ("b", "read", B)],
        );
        check(
            &[(-1, "", "read", A), (-1, "", "read", B)],
            &[("", "read", A), ("", "read", B)],
        );
        check(
            &[(-1, "", "now", ""), (-1, "", "read", B)],
            &[("", "now", "{}"), ("", "read", B)],
        );
    }

    #[test]
    fn interleaved_pieces_find_their_call_by_index() {
        check(
            &[
                (0, "a", "read", ""),
                (1, "b", "read", ""),
                (0, "", "", "{\"path\":"),
                (1, "", "", B),
                (0, "", "", "\"a.txt\"}"),
            ],
            &[("a", "read", A), ("b", "read", B)],
        );
    }

    #[test]
    fn the_same_call_sent_again_is_one_call() {
        check(
            &[(0, "c1", "shell", A), (0, "c1", "shell", A)],
            &[("c1", "shell", A)],
        );
        check(
            &[
                (0, "c1", "shell", "{\"path\":"),
                (0, "", "", "\"a.txt\"}"),
                (0, "c1", "shell", A),
            ],
            &[("c1", "shell", A)],
        );
        check(
            &[(0, "c1", "now", ""), (0, "c1", "now", "")],
            &[("c1", "now", "{}")],
        );
        check(
            &[(0, "c1", "read", A), (0, "c1", "read", B)],
            &[("c1", "read", A), ("c1", "read", B)],
        );
    }

    #[test]
    fn ids_and_names_that_come_with_every_piece_open_no_call() {
        check(
            &[
                (0, "a", "read", "{\"path\":"),
                (0, "a", "read", "\"a.txt\"}"),
            ],
            &[("a", "read", A)],
        );
        check(
            &[(0, "a", "read", "{\"path\":"), (0, "z", "", "\"a.txt\"}")],
            &[("a", "read", A)],
        );
        check(
            &[(0, "", "re", ""), (0, "", "ad", ""), (0, "", "", A)],
            &[("", "read", A)],
        );
        check(
            &[(0, "", "read", ""), (0, "a", "read", A)],
            &[("a", "read", A)],
        );
        check(&[(-1, "", "", "")], &[]);
    }

    #[test]
    fn arguments_that_are_no_object_have_a_fault() {
        for (arguments, whole) in [
            ("", true),
            (" \n", true),
            ("null", true),
            (" {\"a\":[1,{\"b\":\"}\"}]} ", true),
            ("{path: 'a'", false),
            ("{\"path\":\"/n.txt\",\"content\":\"abc", false),
            ("{}{}", false),
            ("[]", false),
            ("\"x\"", false),
        ] {
            let mut calls = Calls::default();
            calls.add(CallPiece {
                name: "t".into(),
                arguments: arguments.into(),
                ..CallPiece::default()
            });
            let call = calls.finish().remove(0);
            assert_eq!(call.fault.is_none(), whole, "{arguments}: {:?}", call.fault);
            assert!(serde_json::from_str::<AnyObject>(call.history_arguments()).is_ok());
        }
    }
}
