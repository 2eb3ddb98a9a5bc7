//! A simulated editor: what it answers to `fs/*`, `terminal/*` and `elicitation/*`, well or badly, and
//! what it saw of files and terminals. Knows no agent: frames in, frames out, each with its time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use reasonix_core::time::Instant;

use crate::json::{self, Value, json};

/// How the editor answers one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// As it should.
    Good,
    /// As it should, but so much later.
    Late(Duration),
    /// As it should, twice.
    Twice,
    /// With a result of another shape.
    Malformed,
    /// With −32603, and nothing done.
    Fails,
    /// Under an id that nobody asked with.
    OtherId,
    /// Not at all, and nothing done.
    Never,
}

/// The form that an editor's answers have. No two editors are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manners {
    /// The result of a file that was written.
    pub written: Value,
    /// Whether a file that was not written is told by a result that is a text, and not by an error.
    pub refuses_by_text: bool,
    /// Whether it knows `terminal/kill`.
    pub kills: bool,
    /// Whether it keeps lines, and so shows no newline at the end of a file.
    pub hides_end: bool,
    /// Whether it shows CRLF as LF.
    pub hides_returns: bool,
    /// What it ends each line of an open file with when it saves, also an empty one behind the last
    /// newline; none: it saves what it is given.
    pub line_end: Option<&'static str>,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            written: json!({}),
            refuses_by_text: false,
            kills: true,
            hides_end: false,
            hides_returns: false,
            line_end: None,
        }
    }
}

impl Manners {
    /// A text that it was given for an open file, as it saves it.
    fn saved(&self, text: &str) -> String {
        match self.line_end {
            None => text.into(),
            Some(end) => text.split('\n').flat_map(|line| [line, end]).collect(),
        }
    }
}

/// One terminal, as the editor sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The command line.
    pub command: String,
    /// Its working directory.
    pub cwd: String,
    /// The agent was told its id.
    pub told: bool,
    /// How often it was released.
    pub released: usize,
    /// A card showed it.
    pub shown: bool,
    /// It was told to end.
    pub killed: bool,
}

/// A simulated editor.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    /// How it answers, one a request; [`Habit::Good`] when none is left.
    pub habits: VecDeque<Habit>,
    /// How and with what results it answers cards, one a card, then by allowing them; none: somebody
    /// else answers them.
    pub cards: Option<VecDeque<(Habit, Value)>>,
    /// How it answers requests of a method, whatever else comes.
    pub always: BTreeMap<&'static str, Habit>,
    /// Open files.
    pub buffers: BTreeMap<String, String>,
    /// Files that it does not write.
    pub locked: BTreeSet<String>,
    /// Every file it wrote, in order, as it was told to.
    pub writes: Vec<(String, String)>,
    /// The same in its own form.
    pub files: Vec<(String, String)>,
    /// Whether what it writes reaches the disk too, and how much of it did.
    pub saves: Option<usize>,
    /// The form of its answers.
    pub manners: Manners,
    /// Commands take so long; none: until they are killed.
    pub command_takes: Option<Duration>,
    /// The exit code of commands.
    pub code: i32,
    /// What commands print.
    pub output: String,
    /// What a form is answered with: the whole result.
    pub form: Option<Value>,
    /// Terminals by their ids.
    pub terminals: BTreeMap<String, Terminal>,
    /// Every method that was asked, in order.
    pub asked: Vec<String>,
    /// The params of every `elicitation/create`.
    pub forms: Vec<Value>,
    /// Requests of the agent that it broke off.
    pub broken_off: Vec<Value>,
    /// What it saw that must not be.
    pub wrong: Vec<String>,
    /// Requests to wait for the end of a command, by terminal.
    pub waits: BTreeMap<String, Vec<(Value, Habit)>>,
    /// Answers on their way.
    pub due: VecDeque<(Instant, Value)>,
}

impl Editor {
    /// Takes a frame of the agent. Whether it was for the editor.
    pub fn hear(&mut self, now: Instant, frame: &Value) -> bool {
        let method = frame["method"].as_str().unwrap_or_default();
        if method == "$/cancel_request" {
            self.broken_off.push(frame["params"]["requestId"].clone());
            return true;
        }
        if let Some(update) = json::update(frame, "") {
            self.see(update);
            return false;
        }
        if let ("session/request_permission", Some(cards)) = (method, &mut self.cards) {
            self.asked.push(method.into());
            let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            let (habit, outcome) = cards.pop_front().unwrap_or((Habit::Good, yes));
            match habit {
                Habit::Never => {}
                Habit::Fails => {
                    self.answer(now, json::error(&frame["id"], -32603, "the editor failed"));
                }
                Habit::Malformed => self.answer(now, json::result(&frame["id"], json!(7))),
                Habit::Good | Habit::Late(_) | Habit::Twice | Habit::OtherId => {
                    self.reply(now, &frame["id"], Ok(outcome), habit);
                }
            }
            return true;
        }
        let known = ["fs/", "terminal/", "elicitation/"];
        if !known.iter().any(|known| method.starts_with(known)) {
            return false;
        }
        self.asked.push(method.into());
        let habit = match self.always.get(method) {
            Some(habit) => *habit,
            None => self.habits.pop_front().unwrap_or(Habit::Good),
        };
        self.serve(now, &frame["id"], method, &frame["params"], habit);
        true
    }

    /// What it has to save, if it does.
    pub fn take_unsaved(&mut self) -> Vec<(String, String)> {
        let Some(saved) = &mut self.saves else {
            return Vec::new();
        };
        let from = std::mem::replace(saved, self.writes.len());
        self.files[from..].to_vec()
    }

    /// The next answer that is due, and when.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.iter().map(|(at, _)| *at).min()
    }

    /// Takes an answer that is due.
    pub fn take(&mut self, now: Instant) -> Option<Value> {
        let at = self.due.iter().position(|(at, _)| *at <= now)?;
        let (_, answer) = self.due.remove(at)?;
        if let Some(id) = answer["result"]["terminalId"].as_str()
            && let Some(terminal) = self.terminals.get_mut(id)
            && answer["id"].is_u64()
        {
            terminal.told = true;
        }
        Some(answer)
    }

    /// Panics unless each terminal that the agent knows of was released once, and only used before.
    #[track_caller]
    pub fn check(&self) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
        for (id, terminal) in &self.terminals {
            let due = usize::from(terminal.told);
            assert_eq!(terminal.released, due, "{id}: {terminal:?}");
        }
    }

    fn see(&mut self, update: &Value) {
        for item in update["content"].as_array().into_iter().flatten() {
            let Some(id) = item["terminalId"].as_str() else {
                continue;
            };
            match self.terminals.get_mut(id) {
                Some(terminal) if terminal.released == 0 => terminal.shown = true,
                Some(_) => self.wrong.push(format!("{id} is shown after its release")),
                None => self.wrong.push(format!("{id} is shown and is not there")),
            }
        }
    }

    fn serve(&mut self, now: Instant, id: &Value, method: &str, params: &Value, habit: Habit) {
        match habit {
            Habit::Never => {
                // A terminal is given back, whether that is answered or not.
                if method == "terminal/release" {
                    self.act(now, id, method, params, habit);
                }
                return;
            }
            Habit::Fails if method != "terminal/release" => {
                return self.answer(now, json::error(id, -32603, "the editor failed"));
            }
            Habit::Malformed if method != "terminal/release" => {
                let odd = json!({"content": 5, "terminalId": [], "output": {}, "action": 7});
                let odd = match method {
                    "fs/write_text_file" | "terminal/kill" | "terminal/wait_for_exit" => json!(7),
                    _ => odd,
                };
                return self.answer(now, json::result(id, odd));
            }
            Habit::Good
            | Habit::Late(_)
            | Habit::Twice
            | Habit::OtherId
            | Habit::Fails
            | Habit::Malformed => {}
        }
        if let Some(result) = self.act(now, id, method, params, habit) {
            self.reply(now, id, result, habit);
        }
    }

    /// Does what is asked; none: it is answered later.
    fn act(
        &mut self,
        now: Instant,
        id: &Value,
        method: &str,
        params: &Value,
        habit: Habit,
    ) -> Option<Result<Value, &'static str>> {
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_string();
        if method.starts_with("fs/") && !text("path").starts_with('/') {
            self.wrong
                .push(format!("a path that is not absolute: {params}"));
        }
        Some(match method {
            "fs/read_text_file" => match self.buffers.get(&text("path")) {
                Some(content) => {
                    let content = match self.manners.hides_returns {
                        true => content.replace("\r\n", "\n"),
                        false => content.clone(),
                    };
                    let shown = match self.manners.hides_end {
                        true => content.strip_suffix('\n').unwrap_or(&content),
                        false => &content,
                    };
                    Ok(json!({"content": shown}))
                }
                None => Err("not open"),
            },
            "fs/write_text_file" if self.locked.contains(&text("path")) => {
                match self.manners.refuses_by_text {
                    true => Ok(json!("not written")),
                    false => Err("not written"),
                }
            }
            "fs/write_text_file" => {
                self.writes.push((text("path"), text("content")));
                let content = match self.buffers.contains_key(&text("path")) {
                    true => self.manners.saved(&text("content")),
                    false => text("content"),
                };
                self.files.push((text("path"), content.clone()));
                self.buffers.insert(text("path"), content);
                Ok(self.manners.written.clone())
            }
            "elicitation/create" => {
                self.forms.push(params.clone());
                match &self.form {
                    Some(form) => Ok(form.clone()),
                    None => Ok(json!({"action": "decline"})),
                }
            }
            "terminal/create" => {
                let name = format!("term_{}", self.terminals.len() + 1);
                let terminal = Terminal {
                    command: text("command"),
                    cwd: text("cwd"),
                    ..Terminal::default()
                };
                self.terminals.insert(name.clone(), terminal);
                Ok(json!({"terminalId": name}))
            }
            _ => return self.use_terminal(now, id, method, &text("terminalId"), habit),
        })
    }

    fn use_terminal(
        &mut self,
        now: Instant,
        id: &Value,
        method: &str,
        name: &str,
        habit: Habit,
    ) -> Option<Result<Value, &'static str>> {
        let (code, takes) = (self.code, self.command_takes);
        let Some(terminal) = self.terminals.get_mut(name) else {
            self.wrong
                .push(format!("{method} of {name}, which is not there"));
            return Some(Err("no such terminal"));
        };
        if terminal.released > 0 {
            self.wrong
                .push(format!("{method} of {name} after its release"));
        }
        let exit = match terminal.killed {
            true => json!({"exitCode": null, "signal": "SIGTERM"}),
            false => json!({"exitCode": code, "signal": null}),
        };
        Some(Ok(match method {
            "terminal/output" => {
                let output = json!({"output": self.output, "truncated": false});
                return Some(Ok(output));
            }
            "terminal/wait_for_exit" => match takes {
                _ if terminal.killed => exit,
                Some(time) => {
                    self.due.push_back((now.plus(time), json::result(id, exit)));
                    return None;
                }
                None => {
                    let waits = self.waits.entry(name.into()).or_default();
                    waits.push((id.clone(), habit));
                    return None;
                }
            },
            "terminal/kill" if !self.manners.kills => return Some(Err("no such parameter")),
            "terminal/kill" | "terminal/release" => {
                terminal.killed = true;
                terminal.released += usize::from(method == "terminal/release");
                let end = json!({"exitCode": null, "signal": "SIGTERM"});
                for (wait, habit) in self.waits.remove(name).unwrap_or_default() {
                    self.reply(now, &wait, Ok(end.clone()), habit);
                }
                json!({})
            }
            _ => return Some(Err("no such method")),
        }))
    }

    fn reply(&mut self, now: Instant, id: &Value, result: Result<Value, &str>, habit: Habit) {
        let answer = |id: &Value| match &result {
            Ok(result) => json::result(id, result.clone()),
            Err(why) => json::error(id, -32002, why),
        };
        match habit {
            Habit::Good => self.answer(now, answer(id)),
            Habit::Late(time) => self.answer(now.plus(time), answer(id)),
            Habit::Twice => {
                self.answer(now, answer(id));
                self.answer(now, answer(id));
            }
            Habit::OtherId => self.answer(now, answer(&json!(format!("{id}")))),
            Habit::Malformed | Habit::Fails | Habit::Never => {}
        }
    }

    fn answer(&mut self, at: Instant, answer: Value) {
        self.due.push_back((at, answer));
    }
}
