//! Search for files and for text. Obeys ignore files, follows no link, opens nothing but regular
//! files, and ends in time.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use ignore::WalkBuilder;
use reasonix_core::call::{Cut, Found, Hit, Pattern, Search};
use reasonix_core::error::{IoFault, IoKind};

use super::plain::{Links, calm};
use super::{Stop, fault};

/// Most memory for the line that is looked at, bytes.
const LONGEST_LINE: usize = 4 << 20;

/// What the search finds, till its time is up or `stop` is set.
///
/// # Errors
///
/// `NotFound` if the root is not there, `Unsupported` with the reason for an expression or glob
/// that is none.
pub fn search(search: &Search, stop: &Stop) -> Result<Found, IoFault> {
    let root = Path::new(&search.root);
    std::fs::symlink_metadata(root).map_err(|e| fault("search", &search.root, &e))?;
    let until = Clock {
        end: Instant::now() + search.time,
        stop,
    };
    match &search.what {
        Pattern::Glob(glob) => files(search, &matcher(root, glob)?, &until),
        Pattern::Text { regex, glob } => {
            let glob = glob.as_deref().map(|g| matcher(root, g)).transpose()?;
            let regex = RegexMatcherBuilder::new()
                .line_terminator(Some(b'\n'))
                .build(regex)
                .map_err(|e| bad(format!("bad regular expression: {e}")))?;
            text(search, &regex, glob.as_ref(), &until)
        }
    }
}

/// When to give up.
struct Clock<'a> {
    end: Instant,
    stop: &'a Stop,
}

impl Clock<'_> {
    fn over(&self) -> bool {
        self.stop.is_set() || Instant::now() >= self.end
    }
}

fn files(search: &Search, glob: &GlobMatcher, until: &Clock<'_>) -> Result<Found, IoFault> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let cut = walk(search, until, |path, beneath| {
        if glob.is_match(beneath) {
            let changed = path.metadata().and_then(|data| data.modified());
            found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), path.to_owned()));
        }
        None
    });
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.drain(..search.skip.min(found.len()));
    let cut = cut.or((found.len() > search.max_hits).then_some(Cut::Hits));
    found.truncate(search.max_hits);
    let hits = found
        .into_iter()
        .map(|(_, path)| Hit {
            path: path.to_string_lossy().into_owned(),
            line: None,
        })
        .collect();
    Ok(Found { hits, cut })
}

fn text(
    search: &Search,
    regex: &RegexMatcher,
    glob: Option<&GlobMatcher>,
    until: &Clock<'_>,
) -> Result<Found, IoFault> {
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        // A file that is one endless line is left out, not read into memory.
        .heap_limit(Some(LONGEST_LINE))
        .build();
    let mut hits = Vec::new();
    let (mut skip, mut room) = (search.skip, search.max_text);
    let cut = walk(search, until, |path, beneath| {
        if glob.is_some_and(|glob| !glob.is_match(beneath)) {
            return None;
        }
        let Ok(file) = calm(path, Links::Refused) else {
            return None;
        };
        let before = (hits.len(), skip, room);
        let mut lines = Lines {
            path,
            search,
            hits: &mut hits,
            skip: &mut skip,
            room: &mut room,
            full: false,
            binary: false,
        };
        // A file that cannot be read to its end is left out from there on.
        let _ = searcher.search_reader(regex, Timed { file, until }, &mut lines);
        let (full, binary) = (lines.full, lines.binary);
        if binary {
            hits.truncate(before.0);
            (skip, room) = (before.1, before.2);
        } else if full {
            return Some(Cut::Hits);
        }
        until.over().then_some(Cut::Time)
    });
    hits.truncate(search.max_hits);
    Ok(Found { hits, cut })
}

/// Calls `each` with every regular file, and its path beneath the root, sorted by path, till it
/// says why to stop.
fn walk(
    search: &Search,
    until: &Clock<'_>,
    mut each: impl FnMut(&Path, &Path) -> Option<Cut>,
) -> Option<Cut> {
    let root = Path::new(&search.root);
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        if until.over() {
            return Some(Cut::Time);
        }
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let beneath = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let beneath = if beneath.as_os_str().is_empty() {
            Path::new(entry.file_name())
        } else {
            beneath
        };
        if let Some(cut) = each(entry.path(), beneath) {
            return Some(cut);
        }
    }
    None
}

/// A glob without a separator matches at any depth, as in ignore files.
fn matcher(root: &Path, glob: &str) -> Result<GlobMatcher, IoFault> {
    let root = root.to_string_lossy();
    let plain = glob
        .strip_prefix(root.as_ref())
        .map_or(glob, |rest| rest.trim_start_matches('/'));
    let plain = plain.strip_prefix("./").unwrap_or(plain);
    let deep = if plain.contains('/') {
        plain.to_owned()
    } else {
        format!("**/{plain}")
    };
    GlobBuilder::new(&deep)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|e| bad(format!("bad glob: {e}")))
}

fn bad(message: String) -> IoFault {
    IoFault::new(IoKind::Unsupported, message)
}

/// A file that ends when the time is up.
struct Timed<'a> {
    file: File,
    until: &'a Clock<'a>,
}

impl Read for Timed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.until.over() {
            return Ok(0);
        }
        self.file.read(buf)
    }
}

struct Lines<'a> {
    path: &'a Path,
    search: &'a Search,
    hits: &'a mut Vec<Hit>,
    /// Hits that are still to be passed over.
    skip: &'a mut usize,
    /// Bytes of lines that there is room for.
    room: &'a mut usize,
    full: bool,
    binary: bool,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if *self.skip > 0 {
            *self.skip -= 1;
            return Ok(true);
        }
        if self.hits.len() >= self.search.max_hits {
            self.full = true;
            return Ok(false);
        }
        let line = String::from_utf8_lossy(found.bytes());
        let line = line.trim_end_matches(['\n', '\r']);
        let mut end = line.len().min(self.search.max_line);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        if end > *self.room && !self.hits.is_empty() {
            self.full = true;
            return Ok(false);
        }
        *self.room = self.room.saturating_sub(end);
        self.hits.push(Hit {
            path: self.path.to_string_lossy().into_owned(),
            line: Some((found.line_number().unwrap_or(0), line[..end].to_owned())),
        });
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ops::testing::dir;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    fn ask(root: &str, what: Pattern) -> Search {
        Search {
            root: root.to_owned(),
            what,
            skip: 0,
            max_hits: 10,
            max_line: 12,
            max_text: 1000,
            time: Duration::from_secs(5),
        }
    }

    fn line(regex: &str, glob: Option<&str>) -> Pattern {
        Pattern::Text {
            regex: regex.to_owned(),
            glob: glob.map(str::to_owned),
        }
    }

    fn check(ask: &Search, want: &[(&str, Option<(u64, &str)>)], cut: Option<Cut>) {
        let found = search(ask, &Stop::default()).expect("the search is well formed");
        let got: Vec<_> = found
            .hits
            .iter()
            .map(|hit| {
                let path = hit.path.strip_prefix(&ask.root).expect("beneath the root");
                let line = hit.line.as_ref().map(|(n, text)| (*n, text.as_str()));
                (path.trim_start_matches('/'), line)
            })
            .collect();
        assert_eq!(got, want);
        assert_eq!(found.cut, cut);
    }

    #[test]
    fn files_come_newest_first_and_those_of_one_time_by_their_paths() {
        let (_keep, w) = dir();
        for (name, age) in [("d", 5), ("c", 9), ("b", 5), ("a", 7)] {
            let file = File::create(format!("{w}/{name}.txt")).expect("made");
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
            file.set_modified(then).expect("it is ours");
        }
        let want = ["b.txt", "d.txt", "a.txt", "c.txt"].map(|name| (name, None));
        check(&ask(&w, Pattern::Glob("*.txt".into())), &want, None);
    }

    #[test]
    fn link_cycles_pipes_binaries_and_ignored_files_are_passed_by() {
        let (_keep, w) = dir();
        let root = format!("{w}/root");
        fs::create_dir_all(format!("{root}/.git")).expect("made");
        fs::create_dir_all(format!("{root}/sub")).expect("made");
        fs::write(format!("{w}/outside.txt"), "needle").expect("written");
        fs::write(format!("{root}/a.txt"), "hay\nneedle one two\n").expect("written");
        fs::write(format!("{root}/sub/.hidden.rs"), "needle").expect("written");
        fs::write(format!("{root}/.git/x"), "needle").expect("written");
        fs::write(format!("{root}/skip.me"), "needle").expect("written");
        fs::write(format!("{root}/.gitignore"), "skip.me\n").expect("written");
        fs::write(format!("{root}/bin"), b"needle\n\0\0").expect("written");
        symlink(".", format!("{root}/loop")).expect("linked");
        symlink("..", format!("{root}/up")).expect("linked");
        let made = std::process::Command::new("mkfifo")
            .arg(format!("{root}/pipe"))
            .status()
            .expect("mkfifo runs");
        assert!(made.success());
        let both: &[_] = &[
            ("a.txt", Some((2, "needle one t"))),
            ("sub/.hidden.rs", Some((1, "needle"))),
        ];
        check(&ask(&root, line("needle", None)), both, None);
        check(&ask(&root, line("needle", Some("*.rs"))), &both[1..], None);
        check(
            &ask(&root, Pattern::Glob("*.rs".into())),
            &[("sub/.hidden.rs", None)],
            None,
        );
        check(&ask(&root, Pattern::Glob("sub/*.txt".into())), &[], None);
        check(
            &ask(&format!("{root}/a.txt"), line("needle", None)),
            &[("", Some((2, "needle one t")))],
            None,
        );
        check(
            &ask(&format!("{root}/pipe"), line("needle", None)),
            &[],
            None,
        );
        let one = Search {
            max_hits: 1,
            ..ask(&root, line("needle", None))
        };
        check(&one, &both[..1], Some(Cut::Hits));
        let next = Search {
            skip: 1,
            ..one.clone()
        };
        check(&next, &both[1..], None);
        check(&Search { skip: 2, ..one }, &[], None);
        let short = Search {
            max_text: 13,
            ..ask(&root, line("needle", None))
        };
        check(&short, &both[..1], Some(Cut::Hits));
        let globs = Search {
            skip: 1,
            ..ask(&root, Pattern::Glob("sub/.*".into()))
        };
        check(&globs, &[], None);
        let none = Search {
            time: Duration::ZERO,
            ..ask(&root, line("needle", None))
        };
        check(&none, &[], Some(Cut::Time));
        for what in [
            line("(", None),
            line("a", Some("[")),
            Pattern::Glob("{".into()),
        ] {
            assert!(search(&ask(&root, what), &Stop::default()).is_err());
        }
    }
}
