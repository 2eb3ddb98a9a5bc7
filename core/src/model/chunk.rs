//! The JSON of a provider's answer, taken as loosely as providers write it: every member may be
//! absent, null or of an odd type without spoiling the others. Knows no order of chunks.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::types::Usage;

/// `chat.completion.chunk`, or a whole `chat.completion`.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Option<Choice<'a>>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// One choice of a chunk.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
}

/// What a chunk adds, or a whole message.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

/// A piece of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallPiece {
    /// Which call; servers leave it out, or give all calls the same.
    pub(super) index: Option<u64>,
    /// Its id; empty: not given.
    pub(super) id: String,
    /// The tool; empty: not given.
    pub(super) name: String,
    /// More of its arguments.
    pub(super) arguments: String,
}

impl<'a> Chunk<'a> {
    /// Reads one chunk.
    pub(super) fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The first choice: we never ask for more than one.
    pub(super) fn choice(&self) -> Option<&Choice<'a>> {
        let mut choices = self.choices.as_ref()?.iter().flatten();
        choices.find(|choice| choice.index.and_then(number).unwrap_or(0) == 0)
    }

    /// What was used, if the chunk says so.
    pub(super) fn usage(&self) -> Option<Usage> {
        usage(self.usage?)
    }

    /// The error the chunk reports instead of an answer.
    pub(super) fn error(&self) -> Option<&'a RawValue> {
        self.error
            .filter(|error| !matches!(error.get(), "null" | "\"\"" | "{}" | "false"))
    }
}

impl Choice<'_> {
    /// The finish reason; an empty one is none.
    pub(super) fn finish_reason(&self) -> Option<String> {
        self.finish_reason
            .and_then(word)
            .filter(|reason| !reason.is_empty())
    }
}

impl Delta<'_> {
    /// More text.
    pub(super) fn text(&self) -> Option<String> {
        some_text(self.content).or_else(|| some_text(self.refusal))
    }

    /// More reasoning. Servers that give it under both names give it twice.
    pub(super) fn reasoning(&self) -> Option<String> {
        some_text(self.reasoning_content).or_else(|| some_text(self.reasoning))
    }

    /// Pieces of tool calls.
    pub(super) fn calls(&self) -> Result<Vec<CallPiece>, serde_json::Error> {
        let Some(raw) = self.tool_calls else {
            return Ok(Vec::new());
        };
        let wires: Vec<Option<CallWire<'_>>> = if raw.get().starts_with('{') {
            Vec::from([Some(serde_json::from_str(raw.get())?)])
        } else {
            serde_json::from_str(raw.get())?
        };
        Ok(wires.into_iter().flatten().map(CallPiece::of).collect())
    }
}

#[derive(Deserialize)]
struct CallWire<'a> {
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<FunctionWire<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionWire<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl CallPiece {
    fn of(wire: CallWire<'_>) -> Self {
        let function = wire.function.unwrap_or_default();
        Self {
            index: wire.index.and_then(number),
            id: wire.id.and_then(word).unwrap_or_default(),
            name: function.name.and_then(text).unwrap_or_default(),
            // Some servers give the object itself instead of its text.
            arguments: function
                .arguments
                .map(|raw| string(raw).unwrap_or_else(|| mend(raw.get()).into_owned()))
                .unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
struct UsageWire<'a> {
    #[serde(borrow, default)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_cache_hit_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_cache_miss_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_tokens_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    completion_tokens_details: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct DetailsWire<'a> {
    #[serde(borrow, default)]
    cached_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_tokens: Option<&'a RawValue>,
}

/// A `usage` object; `None` if it says nothing.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let wire: UsageWire<'_> = serde_json::from_str(raw.get()).ok()?;
    let count = |raw: Option<&RawValue>| raw.and_then(number);
    let details = |raw: Option<&'_ RawValue>, pick: fn(DetailsWire<'_>) -> Option<u64>| {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .and_then(pick)
    };
    let (prompt, completion) = (count(wire.prompt_tokens), count(wire.completion_tokens));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let prompt = prompt.unwrap_or(0);
    let cache_hit = count(wire.prompt_cache_hit_tokens).or_else(|| {
        details(wire.prompt_tokens_details, |d| {
            d.cached_tokens.and_then(number)
        })
    });
    Some(Usage {
        prompt,
        completion: completion.unwrap_or(0),
        reasoning: details(wire.completion_tokens_details, |d| {
            d.reasoning_tokens.and_then(number)
        })
        .unwrap_or(0),
        cache_hit,
        cache_miss: count(wire.prompt_cache_miss_tokens)
            .or_else(|| cache_hit.map(|hit| prompt.saturating_sub(hit))),
    })
}

/// A JSON string, or the texts of a list of parts (`[{"type":"text","text":"…"}]`).
pub(super) fn text(raw: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct PartWire<'a> {
        #[serde(borrow, default)]
        text: Option<&'a RawValue>,
    }
    if !raw.get().starts_with('[') {
        return string(raw);
    }
    let parts: Vec<PartWire<'_>> = serde_json::from_str(raw.get()).ok()?;
    let texts = parts.iter().filter_map(|part| string(part.text?));
    texts.reduce(|all, text| all + &text)
}

/// A JSON string, or the text of a number: ids and codes come as either.
pub(super) fn word(raw: &RawValue) -> Option<String> {
    string(raw).or_else(|| number(raw).map(|_| raw.get().into()))
}

fn some_text(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(text).filter(|text| !text.is_empty())
}

fn string(raw: &RawValue) -> Option<String> {
    if !raw.get().starts_with('"') {
        return None;
    }
    serde_json::from_str(raw.get())
        .or_else(|_| serde_json::from_str(&mend(raw.get())))
        .ok()
}

/// A count: a whole number, or one written as a decimal or in a string.
fn number(raw: &RawValue) -> Option<u64> {
    let text = raw.get().trim_matches('"');
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (0.0..1e15).contains(&number).then_some(number as u64)
    })
}

/// JSON text with every `\u` escape that is half of a pair made U+FFFD: servers cut emoji in two.
pub(super) fn mend(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        json.get(at..at + 6)
            .and_then(|escape| escape.strip_prefix("\\u"))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    let mut mended = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                mended.push_str(&json[done..at]);
                mended.push_str("\\ufffd");
                at += 6;
                done = at;
            }
            // The backslash and the ASCII character it escapes; in broken text, as it may be.
            Some(_) | None => {
                let escaped = json[at + 1..].chars().next();
                at += 1 + escaped.map_or(0, char::len_utf8);
            }
        }
    }
    if done == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[done..]);
    Cow::Owned(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_in_every_spelling() {
        for (json, want) in [
            (
                r#"{"prompt_tokens":9,"completion_tokens":2}"#,
                (9, 2, 0, None, None),
            ),
            (
                r#"{"prompt_tokens":9.0,"completion_tokens":"2","total_tokens":{}}"#,
                (9, 2, 0, None, None),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5,"completion_tokens_details":{"reasoning_tokens":1}}"#,
                (9, 2, 1, Some(4), Some(5)),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":null,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":null}"#,
                (9, 0, 0, Some(4), Some(5)),
            ),
        ] {
            let got = usage(serde_json::from_str(json).unwrap()).unwrap();
            let got = (
                got.prompt,
                got.completion,
                got.reasoning,
                got.cache_hit,
                got.cache_miss,
            );
            assert_eq!(got, want, "{json}");
        }
        assert_eq!(usage(serde_json::from_str("{}").unwrap()), None);
        assert_eq!(usage(serde_json::from_str("[]").unwrap()), None);
    }

    #[test]
    fn half_of_a_surrogate_pair_does_not_spoil_its_text() {
        for (json, text) in [
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ude00\\ud83d""#, "😀\\ud83d"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
        ] {
            assert_eq!(
                string(serde_json::from_str(json).unwrap()).as_deref(),
                Some(text)
            );
        }
        for broken in ["\\", "\\u", "\\é", "a\\u12", "\\ud83d\\"] {
            let _ = mend(broken);
        }
    }
}
