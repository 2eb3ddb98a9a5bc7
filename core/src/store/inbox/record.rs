//! The journal of an inbox: one change a line, both ways. Knows no rules: what a change does to an
//! inbox is in `apply`.
//!
//! Every line is a JSON object that begins with its number in the file, `{"n":3,"op":…`. Inside a
//! JSON string that beginning cannot occur, so two lines that ran together are told apart.
//!
//! | op | means |
//! | --- | --- |
//! | `inbox` | number 0: the version, what the inbox was when the file was begun, and how many lines behind it belong to that |
//! | `keep`, `receipt` | an item, or a key whose item is gone, when the file was begun |
//! | `add` | an item, at the end |
//! | `edit` | another text of an item |
//! | `set` | another state of an item |
//! | `move` | another place of an item |
//! | `drop` | an item is gone, and what became of it |
//! | `pause` | paused, or not |
//! | `recover` | another process took the inbox over |

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Bounds;
use super::item::{Block, BlockCode, Encoded, Intent, Item, Key, State, names};
use super::text::{hex, unhex};
use crate::wire::json::write_value;

/// The version of the journal that is written here.
pub const VERSION: u32 = 2;

/// How every line begins.
const BEGIN: &[u8] = b"{\"n\":";

names! {
    /// What became of an item that is gone.
    End {
        /// It ran.
        Acknowledged = "acknowledged",
        /// It was deleted.
        Discarded = "discarded",
    }
}

/// A key whose item is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) key: Key,
    pub(super) item: String,
    pub(super) end: End,
}

/// What a new file begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) revision: u64,
    pub(super) paused: bool,
    pub(super) recovered: Option<u32>,
    pub(super) run: String,
    pub(super) kept: u64,
}

/// One change of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add {
        item: Item,
        pause: bool,
    },
    Edit {
        id: String,
        body: Encoded,
        state: State,
        block: Option<Block>,
        pause: bool,
        at: i64,
    },
    Set(Set),
    Move {
        id: String,
        to: usize,
        at: i64,
    },
    Drop {
        id: String,
        end: End,
    },
    Pause(bool),
    /// Another process took over; how many items it found.
    Recover(u32),
}

/// All that a change of state changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) id: String,
    pub(super) state: State,
    pub(super) intent: Intent,
    pub(super) block: Option<Block>,
    pub(super) failures: u32,
    pub(super) last_error: Option<String>,
    pub(super) settled: u32,
    pub(super) pause: bool,
    pub(super) at: i64,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Head(Head),
    Keep(Item),
    Receipt(Receipt),
    Change(Change),
}

#[derive(Serialize, Deserialize, Default)]
struct Line<'a> {
    n: u64,
    op: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<u64>,
    /// The process that writes, where it is not the one that wrote before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    settled: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recovered: Option<u32>,
    /// The SHA-256 of the body, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes by reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a line is numbered with, and who writes it if that is new.
pub(super) struct Numbered<'a> {
    pub(super) n: u64,
    pub(super) run: Option<&'a str>,
}

fn line<'a>(numbered: &Numbered<'_>, op: &str) -> Line<'a> {
    Line {
        n: numbered.n,
        op: op.into(),
        run: numbered.run.map(String::from),
        ..Line::default()
    }
}

fn put(out: &mut Vec<u8>, line: &Line<'_>) {
    let from = out.len();
    write_value(out, line);
    debug_assert!(out[from..].starts_with(BEGIN), "the number is first");
    out.push(b'\n');
}

impl<'a> Line<'a> {
    fn block(mut self, block: Option<&Block>) -> Self {
        self.code = block.map(|block| block.code.as_str().into());
        self.reason = block.map(|block| block.reason.clone());
        self
    }

    fn key(mut self, key: &Key) -> Self {
        self.key = Some(key.text.clone());
        self.bound = Some(hex(&key.bound));
        self
    }

    fn encoded(mut self, body: &'a Encoded) -> Self {
        self.sum = Some(hex(&body.sum()));
        self.body = Some(body.raw());
        self
    }

    fn item(mut self, item: &'a Item) -> Self {
        self.id = Some(item.id.clone());
        self.at = Some(item.updated);
        self.created = (item.created != item.updated).then_some(item.created);
        self.intent = Some(item.intent.as_str().into());
        self.state = Some(item.state.as_str().into());
        self.source = Some(item.source.clone());
        if let Some(key) = &item.key {
            self = self.key(key);
        }
        self.failures = item.failures;
        self.error = item.last_error.clone();
        self.settled = item.settled;
        self.block(item.block.as_ref()).encoded(&item.body)
    }
}

/// Appends the first line of a file.
pub(super) fn write_head(out: &mut Vec<u8>, head: &Head) {
    let numbered = Numbered {
        n: 0,
        run: Some(&head.run),
    };
    put(
        out,
        &Line {
            version: Some(head.version),
            revision: Some(head.revision),
            paused: Some(head.paused),
            recovered: head.recovered,
            kept: Some(head.kept),
            ..line(&numbered, "inbox")
        },
    );
}

/// Appends an item as it is when a file is begun.
pub(super) fn write_keep(out: &mut Vec<u8>, n: u64, item: &Item) {
    let kept = Line {
        revision: Some(item.revision),
        ..line(&Numbered { n, run: None }, "keep")
    };
    put(out, &kept.item(item));
}

/// Appends a key whose item is gone.
pub(super) fn write_receipt(out: &mut Vec<u8>, n: u64, receipt: &Receipt) {
    let line = Line {
        id: Some(receipt.item.clone()),
        end: Some(receipt.end.as_str().into()),
        ..line(&Numbered { n, run: None }, "receipt")
    };
    put(out, &line.key(&receipt.key));
}

/// Appends a change.
pub(super) fn write_change(out: &mut Vec<u8>, numbered: &Numbered<'_>, change: &Change) {
    let pausing = |pause: bool| pause.then_some(true);
    let line = |op| line(numbered, op);
    match change {
        Change::Add { item, pause } => {
            let added = Line {
                paused: pausing(*pause),
                ..line("add")
            };
            put(out, &added.item(item));
        }
        Change::Edit {
            id,
            body,
            state,
            block,
            pause,
            at,
        } => {
            let edited = Line {
                id: Some(id.clone()),
                state: Some(state.as_str().into()),
                paused: pausing(*pause),
                at: Some(*at),
                ..line("edit")
            };
            put(out, &edited.block(block.as_ref()).encoded(body));
        }
        Change::Set(set) => {
            let stated = Line {
                id: Some(set.id.clone()),
                state: Some(set.state.as_str().into()),
                intent: Some(set.intent.as_str().into()),
                failures: set.failures,
                error: set.last_error.clone(),
                settled: set.settled,
                paused: pausing(set.pause),
                at: Some(set.at),
                ..line("set")
            };
            put(out, &stated.block(set.block.as_ref()));
        }
        Change::Move { id, to, at } => put(
            out,
            &Line {
                id: Some(id.clone()),
                to: Some(*to),
                at: Some(*at),
                ..line("move")
            },
        ),
        Change::Drop { id, end } => put(
            out,
            &Line {
                id: Some(id.clone()),
                end: Some(end.as_str().into()),
                ..line("drop")
            },
        ),
        Change::Pause(paused) => put(
            out,
            &Line {
                paused: Some(*paused),
                ..line("pause")
            },
        ),
        Change::Recover(items) => put(
            out,
            &Line {
                recovered: Some(*items),
                ..line("recover")
            },
        ),
    }
}

/// A line that was read: its number, who wrote it if that was new, and what it says.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) n: u64,
    pub(super) run: Option<String>,
    pub(super) said: Said,
    /// The body is not what it was when it was written.
    pub(super) altered: bool,
}

/// Reads one line. None if it is none of ours.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Option<Read> {
    let line: Line<'_> = serde_json::from_slice(bytes).ok()?;
    let n = line.n;
    let run = line.run.clone();
    let body = match line.body {
        Some(raw) => Some(Encoded::read(raw, bounds)?),
        None => None,
    };
    let altered = match (&body, &line.sum) {
        (Some(body), Some(sum)) => unhex(sum) != Some(body.sum()),
        (Some(_), None) => true,
        (None, _) => false,
    };
    let said = said(line, body)?;
    Some(Read {
        n,
        run,
        said,
        altered,
    })
}

fn said(line: Line<'_>, body: Option<Encoded>) -> Option<Said> {
    let block = match (&line.code, &line.reason) {
        (Some(code), reason) => Some(Block {
            code: BlockCode::from_name(code)?,
            reason: reason.clone().unwrap_or_default(),
        }),
        (None, _) => None,
    };
    let state = line.state.as_deref().and_then(State::from_name);
    let intent = line.intent.as_deref().and_then(Intent::from_name);
    let end = line.end.as_deref().and_then(End::from_name);
    let bound = line.bound.as_deref().and_then(unhex);
    // A key that is bound to nothing would match nothing.
    let key = line.key.zip(bound).map(|(text, bound)| Key { text, bound });
    let pause = line.paused.unwrap_or(false);
    let at = line.at.unwrap_or(0);
    Some(match line.op.as_str() {
        "inbox" => Said::Head(Head {
            version: line.version?,
            revision: line.revision.unwrap_or(0),
            paused: pause,
            recovered: line.recovered,
            run: line.run.unwrap_or_default(),
            kept: line.kept.unwrap_or(0),
        }),
        op @ ("keep" | "add") => {
            let item = Item {
                id: line.id?,
                intent: intent?,
                state: state?,
                revision: line.revision.unwrap_or(0),
                source: line.source.unwrap_or_default(),
                key,
                created: line.created.unwrap_or(at),
                updated: at,
                block,
                failures: line.failures,
                last_error: line.error,
                settled: line.settled,
                body: body?,
            };
            if op == "keep" {
                Said::Keep(item)
            } else {
                Said::Change(Change::Add { item, pause })
            }
        }
        "receipt" => Said::Receipt(Receipt {
            key: key?,
            item: line.id?,
            end: end?,
        }),
        "edit" => Said::Change(Change::Edit {
            id: line.id?,
            body: body?,
            state: state?,
            block,
            pause,
            at,
        }),
        "set" => Said::Change(Change::Set(Set {
            id: line.id?,
            state: state?,
            intent: intent?,
            block,
            failures: line.failures,
            last_error: line.error,
            settled: line.settled,
            pause,
            at,
        })),
        "move" => Said::Change(Change::Move {
            id: line.id?,
            to: line.to?,
            at,
        }),
        "drop" => Said::Change(Change::Drop {
            id: line.id?,
            end: end?,
        }),
        "pause" => Said::Change(Change::Pause(line.paused?)),
        "recover" => Said::Change(Change::Recover(line.recovered?)),
        _ => return None,
    })
}

/// A piece of the file: what should be one line of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    /// A line end is behind it, or another line.
    pub(super) ended: bool,
}

/// Cuts a file into pieces: at line ends, and where one line began inside another. White space
/// alone is no piece.
pub(super) fn pieces(file: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = file;
    core::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            // Where the next line begins inside this one.
            let inside = memchr::memmem::find(&rest[1.min(line)..line], BEGIN);
            let (bytes, ended) = match inside {
                Some(at) => {
                    let at = at + 1;
                    let piece = &rest[..at];
                    rest = &rest[at..];
                    (piece, true)
                }
                None => {
                    let ended = line < rest.len();
                    let piece = &rest[..line];
                    rest = &rest[(line + 1).min(rest.len())..];
                    (piece, ended)
                }
            };
            let bytes = bytes.trim_ascii();
            if !bytes.is_empty() {
                return Some(Piece { bytes, ended });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn read(bytes: &[u8]) -> Option<Read> {
        super::read(bytes, &Bounds::of(&Limits::default()))
    }

    #[test]
    fn lines_that_ran_together_are_told_apart() {
        let check = |file: &str, is: &[(&str, bool)]| {
            let found: Vec<_> = pieces(file.as_bytes())
                .map(|piece| (core::str::from_utf8(piece.bytes).unwrap(), piece.ended))
                .collect();
            assert_eq!(found, is, "{file:?}");
        };
        check("", &[]);
        check("\n \n\r\n", &[]);
        check(
            "{\"n\":1}\n{\"n\":2}\n",
            &[("{\"n\":1}", true), ("{\"n\":2}", true)],
        );
        check(
            "{\"n\":1}\r\n{\"n\":2",
            &[("{\"n\":1}", true), ("{\"n\":2", false)],
        );
        check(
            "{\"n\":1}{\"n\":2}\n",
            &[("{\"n\":1}", true), ("{\"n\":2}", true)],
        );
        check(
            "{\"n\":1,\"a{\"n\":2}",
            &[("{\"n\":1,\"a", true), ("{\"n\":2}", false)],
        );
        check("x{\"n\":2}", &[("x", true), ("{\"n\":2}", false)]);
        check(
            "{\"n\":1,\"text\":\"{\\\"n\\\":2\"}\n",
            &[("{\"n\":1,\"text\":\"{\\\"n\\\":2\"}", true)],
        );
    }

    #[test]
    fn a_line_of_another_kind_is_none_of_ours() {
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"n":1}"#,
            r#"{"n":1,"op":"none"}"#,
            r#"{"n":1,"op":"drop","id":"a"}"#,
            r#"{"n":1,"op":"drop","id":"a","end":"?"}"#,
            r#"{"n":-1,"op":"pause","paused":true}"#,
            r#"{"n":1,"op":"add","id":"a","intent":"steer","state":"queued","body":{}}"#,
            r#"{"n":1,"op":"set","id":"a","intent":"steer","state":"?"}"#,
        ] {
            assert!(read(text.as_bytes()).is_none(), "{text}");
        }
        assert!(read(br#"{"n":1,"op":"pause","paused":true,"new":[1]}"#).is_some());
    }

    #[test]
    fn a_body_that_is_not_what_was_written_is_told() {
        let line = |sum: &str| {
            let body = r#"{"text":"x"}"#;
            alloc::format!(
                r#"{{"n":1,"op":"add","id":"a","intent":"steer","state":"queued","sum":"{sum}","body":{body}}}"#
            )
        };
        let right = hex(&super::super::text::checksum(r#"{"text":"x"}"#));
        assert!(!read(line(&right).as_bytes()).unwrap().altered);
        assert!(read(line(&hex(&[7; 32])).as_bytes()).unwrap().altered);
        assert!(read(line("").as_bytes()).unwrap().altered);
    }
}
