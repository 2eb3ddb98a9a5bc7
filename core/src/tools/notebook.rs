//! Cells of Jupyter notebooks (nbformat 4): replaced, inserted, deleted. Works on the text of the file:
//! what a change is not about stays as it is to the byte, and what is new is written as nbformat writes
//! it, with the indentation of the file.
//!
//! | `edit_mode` | the cell that is named | without a cell |
//! | --- | --- | --- |
//! | `replace` | gets the new source; a code cell's outputs go, since they are not its own any more | refused |
//! | `insert` | stands before the new cell | the new cell is the first |
//! | `delete` | goes | refused |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::args::Args;
use super::state::digest;

/// A change of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellEdit {
    which: Option<Which>,
    deed: Deed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    /// From 0.
    Number(usize),
    Id(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Deed {
    Replace { source: String, kind: Option<Kind> },
    Insert { source: String, kind: Kind },
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Markdown,
    Raw,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = [Self::Code, Self::Markdown, Self::Raw].into_iter();
        all.find(|kind| kind.name() == name)
    }
}

/// Reads the arguments of a call.
pub(super) fn read(args: &Args<'_>) -> Result<CellEdit, String> {
    let number = args.opt_count("cell_number")?;
    let which = match (args.opt_words("cell_id")?, number) {
        (Some(id), _) => Some(Which::Id(id)),
        (None, Some(number)) => Some(Which::Number(usize::try_from(number).unwrap_or(usize::MAX))),
        (None, None) => None,
    };
    let kind = match args.opt_string("cell_type")? {
        None => None,
        Some(name) => match Kind::named(&name) {
            Some(kind) => Some(kind),
            None => return Err("`cell_type` must be code, markdown or raw".into()),
        },
    };
    let mode = args.opt_string("edit_mode")?;
    let deed = match mode.as_deref().unwrap_or("replace") {
        "replace" => Deed::Replace {
            source: args.string("new_source")?,
            kind,
        },
        "insert" => Deed::Insert {
            source: args.string("new_source")?,
            kind: kind.ok_or("`cell_type` is missing: of which kind is the new cell?")?,
        },
        "delete" => Deed::Delete,
        _ => return Err("`edit_mode` must be replace, insert or delete".into()),
    };
    if which.is_none() && !matches!(deed, Deed::Insert { .. }) {
        return Err("`cell_id` or `cell_number` is missing: which cell is meant?".into());
    }
    Ok(CellEdit { which, deed })
}

/// What of a notebook matters here.
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    nbformat: u32,
    #[serde(default)]
    nbformat_minor: u32,
}

/// What of a cell matters here.
#[derive(Deserialize)]
struct Cell<'a> {
    #[serde(borrow)]
    cell_type: &'a RawValue,
    #[serde(borrow)]
    source: &'a RawValue,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    outputs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    execution_count: Option<&'a RawValue>,
}

impl Cell<'_> {
    fn kind(&self) -> Option<Kind> {
        let name: String = serde_json::from_str(self.cell_type.get()).ok()?;
        Kind::named(&name)
    }
}

/// Makes the change in the text of a notebook. Gives the new text, and what was done.
pub(super) fn apply(text: &str, edit: &CellEdit) -> Result<(String, String), String> {
    let no_notebook = |why: &dyn core::fmt::Display| format!("it is no notebook: {why}");
    let notebook: Notebook<'_> = serde_json::from_str(text).map_err(|error| no_notebook(&error))?;
    if notebook.nbformat != 4 {
        return Err(format!(
            "it is a notebook of format {}; only format 4 is known",
            notebook.nbformat
        ));
    }
    let raw: Vec<&RawValue> =
        serde_json::from_str(notebook.cells.get()).map_err(|error| no_notebook(&error))?;
    let cells: Vec<Cell<'_>> = raw
        .iter()
        .map(|cell| serde_json::from_str(cell.get()).map_err(|error| no_notebook(&error)))
        .collect::<Result<_, _>>()?;
    let at = match &edit.which {
        None => None,
        Some(which) => Some(find(&cells, which)?),
    };
    let style = Style::of(text, &cells);
    let place = |raw: &RawValue| place(text, raw);
    match (&edit.deed, at) {
        (Deed::Replace { source, kind }, Some(at)) => {
            let (cell, raw) = (&cells[at], raw[at]);
            let was = cell.kind();
            let kind = kind.or(was);
            let mut patch = Vec::new();
            if kind == was {
                patch.push((
                    place(cell.source),
                    style.source(source, is_text(cell.source)),
                ));
                let cleared = cell.outputs.filter(|raw| raw.get() != "[]");
                patch.extend(cleared.map(|raw| (place(raw), "[]".into())));
                let count = cell.execution_count.filter(|raw| raw.get() != "null");
                patch.extend(count.map(|raw| (place(raw), "null".into())));
            } else if let Some(kind) = kind {
                // The members of the other kind are not those of this one.
                let metadata = cell.metadata.map_or("{}", RawValue::get);
                let new = style.cell(kind, source, cell.id.as_deref(), metadata);
                patch.push((place(raw), new));
            }
            patch.sort_by_key(|(place, _)| place.start);
            Ok((
                patched(text, &patch),
                format!("Replaced {}", named(at, cell)),
            ))
        }
        (Deed::Delete, Some(at)) => {
            let gone = match (at.checked_sub(1), raw.get(at + 1)) {
                (_, Some(next)) => place(raw[at]).start..place(next).start,
                (Some(before), None) => place(raw[before]).end..place(raw[at]).end,
                (None, None) => {
                    let all = place(notebook.cells);
                    all.start + 1..all.end - 1
                }
            };
            let what = format!("Deleted {}", named(at, &cells[at]));
            Ok((patched(text, &[(gone, String::new())]), what))
        }
        (Deed::Insert { source, kind }, after) => {
            let to = after.map_or(0, |at| at + 1);
            let id = (notebook.nbformat_minor >= 5).then(|| new_id(text, &cells, to));
            let new = style.cell(*kind, source, id.as_deref(), "{}");
            let (end, inner) = (style.line(1), style.line(2));
            let patch = match (raw.get(to), raw.last()) {
                (Some(next), _) => {
                    let at = place(next).start;
                    (at..at, format!("{new},{inner}"))
                }
                (None, Some(last)) => {
                    let at = place(last).end;
                    (at..at, format!(",{inner}{new}"))
                }
                (None, None) => (place(notebook.cells), format!("[{inner}{new}{end}]")),
            };
            let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
            let what = format!("Inserted cell {to}{id}");
            Ok((patched(text, &[patch]), what))
        }
        // The arguments were refused.
        (Deed::Replace { .. } | Deed::Delete, None) => Err("which cell is meant?".into()),
    }
}

fn find(cells: &[Cell<'_>], which: &Which) -> Result<usize, String> {
    match which {
        Which::Number(number) if *number < cells.len() => Ok(*number),
        Which::Number(number) => Err(format!(
            "there is no cell {number}: it has {}, counted from 0",
            cells.len()
        )),
        Which::Id(id) => {
            let mut all = cells.iter().enumerate();
            let mut found = all
                .by_ref()
                .filter(|(_, cell)| cell.id.as_ref() == Some(id));
            match (found.next(), found.next()) {
                (Some((at, _)), None) => Ok(at),
                (Some(_), Some(_)) => Err(format!(
                    "several cells have the id `{id}`: name it by cell_number"
                )),
                (None, _) => Err(format!("there is no cell with the id `{id}`")),
            }
        }
    }
}

fn named(at: usize, cell: &Cell<'_>) -> String {
    match &cell.id {
        Some(id) => format!("cell {at} (id {id})"),
        None => format!("cell {at}"),
    }
}

/// Where a value stands in the text that it was read from.
fn place(text: &str, raw: &RawValue) -> core::ops::Range<usize> {
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + raw.get().len()
}

/// The text with other pieces in some places, which are in order and apart.
fn patched(text: &str, patch: &[(core::ops::Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (place, new) in patch {
        out.push_str(&text[end..place.start]);
        out.push_str(new);
        end = place.end;
    }
    out.push_str(&text[end..]);
    out
}

/// Whether a source is one text, not a list of lines.
fn is_text(source: &RawValue) -> bool {
    source.get().starts_with('"')
}

/// An id that no cell has, the same for the same change.
fn new_id(text: &str, cells: &[Cell<'_>], at: usize) -> String {
    let taken = |id: &String| cells.iter().any(|cell| cell.id.as_ref() == Some(id));
    let mut n = at;
    loop {
        let hash = digest(format!("{n} {text}").as_bytes());
        let id: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
        if !taken(&id) {
            return id;
        }
        n += cells.len() + 1;
    }
}

/// How a notebook is written.
struct Style<'a> {
    /// Between two lines; none: all is one line.
    newline: Option<&'static str>,
    /// One step of indentation.
    unit: &'a str,
    /// Between a name and its value.
    colon: &'static str,
    /// Sources of new cells are one text.
    text: bool,
}

impl<'a> Style<'a> {
    fn of(text: &'a str, cells: &[Cell<'_>]) -> Self {
        let inside = text.trim_start_matches('\u{FEFF}').trim_start();
        let inside = inside.strip_prefix('{').unwrap_or(inside);
        let blank = &inside[..inside.len() - inside.trim_start().len()];
        let newline = match blank {
            blank if blank.contains("\r\n") => Some("\r\n"),
            blank if blank.contains('\n') => Some("\n"),
            _ => None,
        };
        Self {
            newline,
            unit: blank
                .rsplit('\n')
                .next()
                .filter(|_| newline.is_some())
                .unwrap_or(""),
            colon: if newline.is_some() || text.contains("\": ") {
                ": "
            } else {
                ":"
            },
            text: cells.first().is_some_and(|cell| is_text(cell.source)),
        }
    }

    /// A new line at this depth.
    fn line(&self, depth: usize) -> String {
        match self.newline {
            Some(newline) => format!("{newline}{}", self.unit.repeat(depth)),
            None => String::new(),
        }
    }

    /// A source as the value of a cell's member.
    fn source(&self, source: &str, text: bool) -> String {
        if text {
            return json(source);
        }
        let lines: Vec<String> = source.split_inclusive('\n').map(json).collect();
        if lines.is_empty() {
            return "[]".into();
        }
        let inner = self.line(4);
        let lines = lines.join(&format!(",{inner}"));
        format!("[{inner}{lines}{}]", self.line(3))
    }

    /// A whole cell, its members sorted as nbformat sorts them.
    fn cell(&self, kind: Kind, source: &str, id: Option<&str>, metadata: &str) -> String {
        let code = kind == Kind::Code;
        let members = [
            ("cell_type", Some(json(kind.name()))),
            ("execution_count", code.then(|| "null".into())),
            ("id", id.map(json)),
            ("metadata", Some(metadata.into())),
            ("outputs", code.then(|| "[]".into())),
            ("source", Some(self.source(source, self.text))),
        ];
        let colon = self.colon;
        let members: Vec<String> = members
            .into_iter()
            .filter_map(|(name, value)| Some(format!("\"{name}\"{colon}{}", value?)))
            .collect();
        let inner = self.line(3);
        let members = members.join(&format!(",{inner}"));
        format!("{{{inner}{members}{}}}", self.line(2))
    }
}

fn json(text: &str) -> String {
    // A string always has a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nbformat writes it, with things that only it knows.
    const BOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {},
   "source": [
    "# Title\n",
    "grüße"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bb",
   "metadata": {
    "zz": 1.50,
    "aa": [1,  2]
   },
   "outputs": [
    {
     "name": "stdout"
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {"odd":   true},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    fn edit(arguments: &str) -> Result<CellEdit, String> {
        read(&Args::parse(arguments).expect("an object"))
    }

    #[track_caller]
    fn check(text: &str, arguments: &str, changed: &[(&str, &str)], what: &str) {
        let edit = edit(arguments).expect(arguments);
        let (new, did) = apply(text, &edit).expect(arguments);
        let mut expected = String::from(text);
        for (old, new) in changed {
            assert_eq!(expected.matches(old).count(), 1, "{old:?}");
            expected = expected.replace(old, new);
        }
        assert_eq!(new, expected, "{arguments}");
        assert_eq!(did, what);
        assert!(serde_json::from_str::<Notebook<'_>>(&new).is_ok());
    }

    #[test]
    fn only_what_a_change_is_about_changes() {
        check(
            BOOK,
            r#"{"cell_id":"bb","new_source":"x = 1\n\ny = 'ü\"'"}"#,
            &[
                ("\"execution_count\": 7", "\"execution_count\": null"),
                ("[\n    {\n     \"name\": \"stdout\"\n    }\n   ]", "[]"),
                (
                    "    \"print(1)\"\n",
                    "    \"x = 1\\n\",\n    \"\\n\",\n    \"y = 'ü\\\"'\"\n",
                ),
            ],
            "Replaced cell 1 (id bb)",
        );
        check(
            BOOK,
            r#"{"cell_number":0,"new_source":""}"#,
            &[("[\n    \"# Title\\n\",\n    \"grüße\"\n   ]", "[]")],
            "Replaced cell 0 (id aa)",
        );
        check(
            BOOK,
            r#"{"cell_number":1,"edit_mode":"delete"}"#,
            &[(
                &BOOK[BOOK.find(",\n  {\n   \"cell_type\": \"code\"").unwrap()
                    ..BOOK.find("\n ],").unwrap()],
                "",
            )],
            "Deleted cell 1 (id bb)",
        );
        check(
            BOOK,
            r#"{"cell_id":"aa","edit_mode":"delete"}"#,
            &[(
                &BOOK[BOOK.find("{\n   \"cell_type\": \"markdown\"").unwrap()
                    ..BOOK.find("{\n   \"cell_type\": \"code\"").unwrap()],
                "",
            )],
            "Deleted cell 0 (id aa)",
        );
    }

    #[test]
    fn a_new_cell_is_written_as_the_others_and_has_an_id_of_its_own() {
        let insert = |at: &str| {
            let edit = edit(&format!(
                r#"{{"edit_mode":"insert",{at}"cell_type":"code","new_source":"a\nb"}}"#
            ));
            apply(BOOK, &edit.expect("good")).expect("it can be inserted")
        };
        let cells = |text: &str| -> Vec<String> {
            let book: Notebook<'_> = serde_json::from_str(text).expect("a notebook");
            let raw: Vec<&RawValue> = serde_json::from_str(book.cells.get()).expect("cells");
            raw.iter().map(|cell| cell.get().into()).collect()
        };
        for (at, place) in [
            ("", 0),
            (r#""cell_id":"aa","#, 1),
            (r#""cell_number":1,"#, 2),
        ] {
            let (text, what) = insert(at);
            let all = cells(&text);
            assert_eq!(all.len(), 3);
            let id: Cell<'_> = serde_json::from_str(&all[place]).expect("a cell");
            let id = id.id.expect("an id");
            assert_eq!(what, format!("Inserted cell {place} (id {id})"));
            assert_eq!(
                all[place],
                format!(
                    "{{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }}"
                )
            );
            // Without it the file is what it was.
            let mut old = all.clone();
            old.remove(place);
            assert_eq!(old, cells(BOOK));
            let gone = edit(&format!(r#"{{"cell_id":"{id}","edit_mode":"delete"}}"#));
            assert_eq!(apply(&text, &gone.expect("good")).expect("it goes").0, BOOK);
        }
    }

    #[test]
    fn a_notebook_in_one_line_with_texts_as_sources_stays_one() {
        let book = r#"{"cells":[{"cell_type":"code","metadata":{},"source":"a","outputs":[],"execution_count":null}],"nbformat":4,"nbformat_minor":2}"#;
        check(
            book,
            r#"{"cell_number":0,"new_source":"b\nc"}"#,
            &[(r#""source":"a""#, r#""source":"b\nc""#)],
            "Replaced cell 0",
        );
        check(
            book,
            r#"{"cell_number":0,"edit_mode":"insert","cell_type":"markdown","new_source":"m"}"#,
            &[(
                "null}]",
                r#"null},{"cell_type":"markdown","metadata":{},"source":"m"}]"#,
            )],
            "Inserted cell 1",
        );
        check(
            book,
            r#"{"cell_number":0,"edit_mode":"delete"}"#,
            &[(&book[10..book.find("],\"nbformat").unwrap()], "")],
            "Deleted cell 0",
        );
        check(
            r#"{"cells":[],"nbformat":4}"#,
            r#"{"edit_mode":"insert","cell_type":"raw","new_source":"m"}"#,
            &[(
                "[]",
                r#"[{"cell_type":"raw","metadata":{},"source":["m"]}]"#,
            )],
            "Inserted cell 0",
        );
    }

    #[test]
    fn a_cell_of_another_kind_has_the_members_of_that_kind() {
        let edit = edit(r#"{"cell_id":"bb","cell_type":"markdown","new_source":"text"}"#);
        let (new, _) = apply(BOOK, &edit.expect("good")).expect("it can be");
        assert!(
            !new.contains("outputs") && !new.contains("execution_count"),
            "{new}"
        );
        assert!(new.contains("\"zz\": 1.50,\n    \"aa\": [1,  2]"), "{new}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (arguments, why) in [
            (r#"{"new_source":"x"}"#, "which cell"),
            (r#"{"edit_mode":"delete"}"#, "which cell"),
            (r#"{"cell_number":0}"#, "`new_source` is missing"),
            (
                r#"{"edit_mode":"insert","new_source":"x"}"#,
                "`cell_type` is missing",
            ),
            (
                r#"{"cell_number":0,"edit_mode":"move","new_source":"x"}"#,
                "`edit_mode`",
            ),
            (
                r#"{"cell_number":0,"cell_type":"heading","new_source":"x"}"#,
                "`cell_type`",
            ),
        ] {
            let error = edit(arguments).expect_err(arguments);
            assert!(error.contains(why), "{error}");
        }
        let delete = |which: &str| edit(&format!(r#"{{{which},"edit_mode":"delete"}}"#)).unwrap();
        let twice = BOOK.replace("\"bb\"", "\"aa\"");
        for (text, which, why) in [
            (BOOK, r#""cell_number":2"#, "no cell 2: it has 2"),
            (BOOK, r#""cell_id":"cc""#, "no cell with the id `cc`"),
            (twice.as_str(), r#""cell_id":"aa""#, "several cells"),
            ("{}", r#""cell_number":0"#, "no notebook"),
            ("x", r#""cell_number":0"#, "no notebook"),
            (
                r#"{"cells":[5],"nbformat":4}"#,
                r#""cell_number":0"#,
                "no notebook",
            ),
            (
                r#"{"cells":[],"nbformat":3}"#,
                r#""cell_number":0"#,
                "format 3",
            ),
        ] {
            let error = apply(text, &delete(which)).expect_err(which);
            assert!(error.contains(why), "{error}");
        }
    }
}
