//! `sessions show`: the transcript is read from its file, so that it needs no lock, no key and no
//! model, and does not care who has the session open. What is seen of a record is decided where
//! `session/load` has it from.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use reasonix_blocking::ops::plain::{self, Links};
use reasonix_core::agent::Replay;
use reasonix_core::engine::Record;
use reasonix_core::engine::record::{End, Header, Reason, VERSION};
use reasonix_core::limits::Limits;
use reasonix_core::protocol::schema::SessionId;
use reasonix_core::store::{Lines, SessionFiles};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::exit::{Exit, Failure};
use crate::out::warn;
use crate::render::age::ago;
use crate::render::screen::Screen;
use crate::render::styles::{BAD, DIM, WARN, styled};
use crate::render::text::one_line;

/// Longest reason of a failed turn, characters.
const MAX_REASON: usize = 400;

/// Prints the session for a person.
pub fn people(home: &str, id: &SessionId, now: u64) -> Result<Exit, Failure> {
    let mut out = anstream::stdout().lock();
    let mut picture = Picture::new(now);
    read(home, id, |record: Record| {
        let text = picture.record(&record);
        out.write_all(text.as_bytes())
    })
    .and_then(|unreadable| {
        let text = picture.end();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(Trouble::Output)?;
        tell(unreadable);
        Ok(())
    })
    .or_else(|trouble| ended(id, &trouble))?;
    Ok(Exit::Ok)
}

/// Prints its records as they are, one a line.
pub fn scripts(home: &str, id: &SessionId) -> Result<Exit, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    read(home, id, |record: Box<RawValue>| {
        writeln!(out, "{}", record.get())
    })
    .and_then(|unreadable| {
        out.flush().map_err(Trouble::Output)?;
        tell(unreadable);
        Ok(())
    })
    .or_else(|trouble| ended(id, &trouble))?;
    Ok(Exit::Ok)
}

/// Why a session is not shown to its end.
enum Trouble {
    Transcript(io::Error),
    Output(io::Error),
}

/// Gives every record to `take`; the number of lines that could not be read.
fn read<T: DeserializeOwned>(
    home: &str,
    id: &SessionId,
    mut take: impl FnMut(T) -> io::Result<()>,
) -> Result<usize, Trouble> {
    let limits = Limits::default();
    let path = SessionFiles::new(home, id.as_str()).transcript();
    let file = plain::open(Path::new(&path), Links::Refused);
    let mut file = file.map_err(|fault| Trouble::Transcript(io::Error::other(fault.message)))?;
    let mut lines = Lines::new(limits.max_record);
    let mut piece = vec![0; limits.store_piece];
    let mut unreadable = 0;
    loop {
        let count = match file.read(&mut piece) {
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Trouble::Transcript(e)),
        };
        match count {
            // The end of an append that is not over is no fault.
            0 => lines.finish(),
            count => lines.push(&piece[..count]),
        }
        while let Some(records) = lines.next_line::<T>() {
            unreadable += lines.take_unreadable();
            let mut records = records.into_iter();
            records.try_for_each(&mut take).map_err(Trouble::Output)?;
        }
        if count == 0 {
            return Ok(unreadable);
        }
    }
}

fn tell(unreadable: usize) {
    match unreadable {
        0 => {}
        1 => warn(format_args!(
            "One line of the transcript could not be read."
        )),
        _ => warn(format_args!(
            "{unreadable} lines of the transcript could not be read."
        )),
    }
}

/// A reader that has seen enough is no fault.
fn ended(id: &SessionId, trouble: &Trouble) -> Result<(), Failure> {
    let why = match trouble {
        Trouble::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Trouble::Output(error) => format!("cannot write to standard output: {error}"),
        Trouble::Transcript(error) => format!("the transcript of {id} cannot be read: {error}"),
    };
    Err(Failure::failed(why))
}

/// A session as a person reads it.
struct Picture {
    now: u64,
    limits: Limits,
    replay: Replay,
    screen: Screen,
    model: String,
}

impl Picture {
    fn new(now: u64) -> Self {
        Self {
            now,
            limits: Limits::default(),
            replay: Replay::new(),
            screen: Screen::new("", false),
            model: String::new(),
        }
    }

    fn record(&mut self, record: &Record) -> String {
        let mut text = self.beside(record);
        for update in self.replay.updates(record, &self.limits) {
            text.push_str(&self.screen.update(&update));
        }
        text
    }

    /// What is said of a record beside what a load replays of it.
    fn beside(&mut self, record: &Record) -> String {
        if let Record::Session(header) = record {
            self.header(header)
        } else if let Record::Options(options) = record
            && options.model != self.model
        {
            self.model.clone_from(&options.model);
            let model = one_line(&self.model, 80);
            self.aside(&format!("The model is {model}."))
        } else if let Record::Summary { .. } = record {
            self.aside("From here on the model has a summary of what is above.")
        } else if let Record::End(end) = record {
            self.end_of_turn(end)
        } else {
            String::new()
        }
    }

    fn end(&mut self) -> String {
        self.screen.close_line()
    }

    fn header(&mut self, header: &Header) -> String {
        self.screen = Screen::new(&header.cwd, false);
        let (id, cwd) = (one_line(&header.id, 128), one_line(&header.cwd, usize::MAX));
        let mut text = self.aside(&format!("Session {id}"));
        let age = match header.created {
            0 => String::new(),
            created => format!(", begun {}", ago(self.now, created)),
        };
        text.push_str(&self.aside(&format!("in {cwd}{age}")));
        if header.v > VERSION {
            let note =
                "It was written by a later version; what this one does not know is left out.";
            text.push_str(&self.screen.line(&format!("{}\n", styled(WARN, note))));
        }
        text
    }

    fn aside(&mut self, text: &str) -> String {
        self.screen.line(&format!("{}\n", styled(DIM, text)))
    }

    fn end_of_turn(&mut self, end: &End) -> String {
        let why = end.message.as_deref().map(|why| one_line(why, MAX_REASON));
        let note = match end.reason {
            Reason::EndTurn => return self.screen.close_line(),
            Reason::MaxTokens => styled(WARN, "The answer was cut by the model's length limit."),
            Reason::MaxTurnRequests => styled(WARN, "The turn was ended by its number of steps."),
            Reason::Refusal => styled(WARN, "The model refused."),
            Reason::Cancelled => styled(WARN, "Cancelled."),
            Reason::Interrupted => styled(WARN, "The agent ended while the turn ran."),
            Reason::Failed => styled(BAD, "The turn failed."),
        };
        let why = why.map_or_else(String::new, |why| format!(" {why}"));
        self.screen.line(&format!("{note}{why}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &str, shown: &str) {
        let mut picture = Picture::new(7_200_000);
        let mut text = String::new();
        for line in lines.lines() {
            let record = serde_json::from_str(line).expect("a record");
            text.push_str(&picture.record(&record));
        }
        text.push_str(&picture.end());
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), shown);
    }

    const HEAD: &str = r#"{"type":"session","v":1,"id":"s","cwd":"/w","created":1,"agent":"x"}
{"type":"options","model":"a/b","preset":"balanced","approval":"ask"}
"#;

    #[test]
    fn a_session_reads_as_it_was_seen() {
        let turn = r#"{"type":"user","id":1,"text":"Fix it.\nPlease."}
{"type":"assistant","id":2,"said":[{"thought":"hm"},{"text":"I look."}],"calls":[]}
{"type":"call","id":"c","card":{"name":"read_file","title":"read_file x","kind":"read"}}
{"type":"result","id":"c","ok":true,"text":"x"}
{"type":"result","id":"never announced","ok":true,"text":"x"}
{"type":"from a later version","x":1}
{"type":"assistant","id":3,"said":[{"text":"Done."}]}
{"type":"end","reason":"end_turn"}
{"type":"options","model":"c/d","preset":"balanced","approval":"ask"}
{"type":"user","id":4,"text":"More."}
{"type":"user","id":5,"from":"host","text":"Not said by anybody."}
{"type":"assistant","id":6,"said":[{"text":"No"}],"extent":"partial"}
{"type":"end","reason":"failed","message":"no\nconnection"}
"#;
        check(
            &format!("{HEAD}{turn}"),
            "Session s\nin /w, begun 1 hour ago\nThe model is a/b.\n\n\
             > Fix it.\n> Please.\n\n\
             hm\nI look.\n✓ read_file x\nDone.\n\
             The model is c/d.\n\n\
             > More.\n\n\
             No\nThe turn failed. no connection\n",
        );
    }

    #[test]
    fn a_later_format_is_said() {
        let head = HEAD.replace("\"v\":1", "\"v\":2");
        check(
            &head,
            "Session s\nin /w, begun 1 hour ago\n\
             It was written by a later version; what this one does not know is left out.\n\
             The model is a/b.\n",
        );
    }
}
