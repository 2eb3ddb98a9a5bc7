//! `sessions list`.

use std::io::{self, IsTerminal as _, Write as _};

use reasonix_core::protocol::schema::SessionInfo;

use super::find;
use crate::exit::Exit;
use crate::out::warn;
use crate::render::age::{ago, unix_ms};
use crate::render::styles::{BOLD, DIM, styled};
use crate::render::text::one_line;
use crate::terminal;

/// Longest title, characters: the agent cuts them to this.
const MAX_TITLE: usize = 80;

/// Shortest title that a narrow terminal gets, characters.
const MIN_TITLE: usize = 20;

/// Prints `sessions`, which are those of `folder` or of all folders; `all` are told apart by the
/// ids that are shown.
pub fn people(all: &[SessionInfo], folder: Option<&str>, home: Option<&str>, now: u64) -> Exit {
    let shown = of(all, folder);
    if shown.is_empty() {
        match folder {
            Some(folder) => warn(format_args!(
                "There is no session of {} yet; --all shows those of other folders.",
                one_line(folder, usize::MAX)
            )),
            None => warn(format_args!("There is no session yet.")),
        }
    }
    let width = match io::stdout().is_terminal() {
        true => terminal::width(),
        false => None,
    };
    let length = find::short_length(all);
    let rows = table(&shown, length, folder.is_none(), home, now, width);
    let mut out = anstream::stdout().lock();
    // A reader that has seen enough is no fault.
    let _ = out.write_all(rows.as_bytes()).and_then(|()| out.flush());
    Exit::Ok
}

/// Prints them for scripts: one object a line, as the protocol has it.
pub fn scripts(all: &[SessionInfo], folder: Option<&str>) -> Exit {
    let mut lines = Vec::new();
    for session in of(all, folder) {
        // It came as JSON.
        serde_json::to_writer(&mut lines, session).expect("strings only");
        lines.push(b'\n');
    }
    let mut out = io::stdout().lock();
    let _ = out.write_all(&lines).and_then(|()| out.flush());
    Exit::Ok
}

fn of<'a>(all: &'a [SessionInfo], folder: Option<&str>) -> Vec<&'a SessionInfo> {
    let here = |session: &&SessionInfo| {
        folder.is_none_or(|folder| find::same_folder(&session.cwd, folder))
    };
    all.iter().filter(here).collect()
}

fn table(
    sessions: &[&SessionInfo],
    length: usize,
    folders: bool,
    home: Option<&str>,
    now: u64,
    width: Option<usize>,
) -> String {
    let age = |session: &SessionInfo| {
        let updated = session.updated_at.as_deref().and_then(unix_ms);
        updated.map_or_else(String::new, |then| ago(now, then))
    };
    let folder = |session: &SessionInfo| match folders {
        true => one_line(&beneath_home(&session.cwd, home), usize::MAX),
        false => String::new(),
    };
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| (session, age(session), folder(session)))
        .collect();
    let longest = |of: &dyn Fn(&(&&SessionInfo, String, String)) -> usize| {
        rows.iter().map(of).max().unwrap_or(0)
    };
    let ages = longest(&|row| row.1.chars().count());
    let paths = longest(&|row| row.2.chars().count());
    let before = length + 2 + ages + 2 + if folders { paths + 2 } else { 0 };
    let title_width = match width {
        Some(width) => width.saturating_sub(before).clamp(MIN_TITLE, MAX_TITLE),
        None => MAX_TITLE,
    };
    let mut text = String::new();
    for (session, age, path) in &rows {
        let id = find::short(&session.session_id, length);
        text.push_str(&styled(BOLD, format_args!("{id:length$}")));
        text.push_str(&format!("  {}", styled(DIM, format_args!("{age:ages$}"))));
        if folders {
            text.push_str(&format!("  {path:paths$}"));
        }
        let title = match session.title.as_deref() {
            Some(title) => one_line(title, title_width),
            None => styled(DIM, "(no text)"),
        };
        text.push_str(&format!("  {title}\n"));
    }
    text
}

/// `path` with `~` for the person's home.
fn beneath_home(path: &str, home: Option<&str>) -> String {
    let rest = home.and_then(|home| path.strip_prefix(home));
    match rest {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reasonix_core::time::rfc3339;

    const NOW: u64 = 1_800_000_000_000;

    fn session(id: &str, cwd: &str, title: &str, age: u64) -> SessionInfo {
        let mut info = SessionInfo::new(id, cwd);
        info.title = (!title.is_empty()).then(|| title.into());
        info.updated_at = Some(rfc3339(NOW - age));
        info
    }

    #[track_caller]
    fn check(folders: bool, width: Option<usize>, wanted: &str) {
        let all = [
            session(
                "0123456789",
                "/home/me/project",
                "Make the tests pass",
                61_000,
            ),
            session("abcdefghij", "/home/me", "", 7_200_000),
            session("x", "/home/meander", "\u{1b}]0;x\u{7}", 0),
        ];
        let all: Vec<_> = all.iter().collect();
        let text = table(&all, 8, folders, Some("/home/me"), NOW, width);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), wanted);
    }

    #[test]
    fn sessions_are_a_table() {
        check(
            false,
            None,
            "01234567  1 minute ago  Make the tests pass\n\
             abcdefgh  2 hours ago   (no text)\n\
             x         just now      ␛]0;x␇\n",
        );
        check(
            true,
            None,
            "01234567  1 minute ago  ~/project      Make the tests pass\n\
             abcdefgh  2 hours ago   ~              (no text)\n\
             x         just now      /home/meander  ␛]0;x␇\n",
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_titles() {
        let all = [session("a", "/w", &"word ".repeat(20), 0)];
        let all: Vec<_> = all.iter().collect();
        for (width, title) in [(10, 20), (60, 40), (500, 80)] {
            let text = table(&all, 8, false, None, NOW, Some(width));
            let text = anstream::adapter::strip_str(&text).to_string();
            let shown = text.trim_end().chars().count() - (8 + 2 + 8 + 2);
            assert!(shown <= title && shown >= title - 4, "{width}: {text}");
        }
    }
}
