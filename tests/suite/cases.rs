//! Faults that agents of this kind have had, as data: what is on disk, what the provider streams,
//! what the client does, what must come of it. Run against both programs.

use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value};
use reasonix_tests::process::{PROGRAMS, Place, Running};
use reasonix_tests::provider::{Answer, Provider, Step};
use reasonix_tests::sim::Card;

/// One fault that must not come back.
pub struct Case {
    /// What is protected.
    pub name: &'static str,
    /// Files of the workspace.
    pub files: &'static [(&'static str, &'static [u8])],
    /// What else the place needs.
    pub setup: fn(&Place),
    /// More lines for the provider's table in the configuration.
    pub settings: &'static str,
    /// Flags of `acp`.
    pub flags: &'static [&'static str],
    /// Client capabilities.
    pub client: fn() -> Value,
    /// What the provider answers; `$W` stands for the workspace.
    pub answers: Vec<Answer>,
    /// How the client answers permission requests.
    pub card: Card,
    /// What the client does.
    pub drive: fn(&mut Run),
    /// What must come of it.
    pub expect: Vec<Expect>,
}

/// What must come of it.
#[derive(Clone, Debug)]
pub enum Expect {
    /// The last prompt stops so.
    Stop(&'static str),
    /// The last prompt fails, with this code and a message or data that holds this.
    Fails(i64, &'static str),
    /// What the agent said, joined, is this.
    Said(&'static str),
    /// The tool calls ended so, in the order they were announced.
    Ends(&'static [&'static str]),
    /// A file has these bytes.
    File(&'static str, &'static [u8]),
    /// There is no such file.
    NoFile(&'static str),
    /// The provider was asked this often.
    Requests(usize),
    /// The messages behind the last user's or assistant's words in request `n` (from 0) hold this.
    Told(usize, &'static str),
    /// They do not hold this.
    NotTold(usize, &'static str),
    /// This often was the person asked.
    Asked(usize),
    /// It took no longer than this.
    Within(Duration),
}

/// A case that is running.
pub struct Run {
    /// The agent.
    pub agent: Running,
    /// Its folders.
    pub place: Place,
    /// Its provider.
    pub provider: Provider,
    /// The session.
    pub session: String,
    /// The id of the last request.
    pub last: u64,
}

impl Run {
    /// Sends a prompt; gives its id.
    pub fn prompt(&mut self, text: &str) -> u64 {
        self.last += 1;
        let message = json::prompt(self.last, &self.session, text);
        self.agent.send(&message);
        self.last
    }

    /// Cancels the session's turn.
    pub fn cancel(&mut self) {
        self.agent.send(&json::cancel(&self.session));
    }

    /// Sends a prompt and reads until it is answered.
    pub fn turn(&mut self, text: &str) -> Value {
        let id = self.prompt(text);
        self.agent.answer(id)
    }

    /// Reads until an update of this kind.
    pub fn update(&mut self, kind: &str) -> Value {
        self.agent.until(kind, |frame| {
            json::update(frame, "").is_some_and(|update| update["sessionUpdate"] == kind)
        })
    }

    /// Reads until a tool call has this status.
    pub fn status(&mut self, status: &str) {
        self.agent.until(status, |frame| {
            json::update(frame, "").is_some_and(|update| update["status"] == status)
        });
    }
}

/// A case with nothing in it: one prompt to a provider that says `k`.
pub fn case(name: &'static str, answers: Vec<Answer>, expect: Vec<Expect>) -> Case {
    Case {
        name,
        files: &[],
        setup: |_| {},
        settings: "",
        flags: &[],
        client: || json::json!({}),
        answers,
        card: Card::Choose("allow_once"),
        drive: |run| {
            run.turn("go");
        },
        expect,
    }
}

/// Runs the cases, each against both programs.
#[track_caller]
pub fn check(cases: Vec<Case>) {
    for case in &cases {
        for program in PROGRAMS {
            check_one(program, case);
        }
    }
}

#[track_caller]
fn check_one(program: &str, case: &Case) {
    let name = format!("{} ({program})", case.name);
    let place = Place::new();
    for (file, bytes) in case.files {
        place.write(file, bytes);
    }
    (case.setup)(&place);
    let work = place.work().to_str().expect("a plain name").to_string();
    let provider = Provider::start(
        case.answers
            .iter()
            .map(|answer| in_place(answer, &work))
            .collect(),
    );
    place.configure(&provider.url(), case.settings);
    let mut agent = Running::start(program, &place, case.flags);
    agent.cards = [case.card.clone()].into();
    let session = agent.open((case.client)(), &place.work());
    let mut run = Run {
        agent,
        place,
        provider,
        session,
        last: 1,
    };
    let from = Instant::now();
    (case.drive)(&mut run);
    let took = from.elapsed();

    let last = json::answer_to(&run.agent.frames, run.last).cloned();
    let seen = Seen {
        took,
        last: last.unwrap_or_else(|| panic!("{name}: the last request has no answer")),
        run: &run,
    };
    for expect in &case.expect {
        seen.check(&name, expect);
    }
    let requests = run.provider.requests();
    for request in &requests {
        well_formed(&name, request);
    }
    let Run { agent, .. } = run;
    let (ended, laws) = agent.finish();
    laws.check();
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    assert!(!ended.errors.contains("panicked"), "{name}: {ended:?}");
    assert!(ended.took < Duration::from_secs(5), "{name}: {ended:?}");
}

/// What was seen of a case.
struct Seen<'a> {
    took: Duration,
    last: Value,
    run: &'a Run,
}

impl Seen<'_> {
    #[track_caller]
    fn check(&self, name: &str, expect: &Expect) {
        let frames = &self.run.agent.frames;
        let context = || format!("{name}: {expect:?}\nerrors: {}", self.run.agent.errors());
        match expect {
            Expect::Stop(reason) => {
                assert_eq!(
                    self.last["result"]["stopReason"],
                    *reason,
                    "{}\n{}",
                    context(),
                    self.last
                );
            }
            Expect::Fails(code, text) => {
                let error = &self.last["error"];
                assert_eq!(error["code"], *code, "{}\n{}", context(), self.last);
                assert!(error.to_string().contains(text), "{}\n{error}", context());
            }
            Expect::Said(text) => {
                assert_eq!(json::said(frames, ""), *text, "{}", context());
            }
            Expect::Ends(ends) => {
                assert_eq!(
                    json::tool_ends(frames, ""),
                    *ends,
                    "{}\n{frames:#?}",
                    context()
                );
            }
            Expect::File(file, bytes) => {
                let found = std::fs::read(self.run.place.file(file)).unwrap_or_default();
                assert!(
                    found == *bytes,
                    "{}: {:?}\n{frames:#?}",
                    context(),
                    String::from_utf8_lossy(&found)
                );
            }
            Expect::NoFile(file) => {
                assert!(!self.run.place.file(file).exists(), "{}", context());
            }
            Expect::Requests(times) => {
                assert_eq!(self.run.provider.requests().len(), *times, "{}", context());
            }
            Expect::Told(request, text) => {
                let told = self.told(*request);
                assert!(told.contains(text), "{}\n{told}", context());
            }
            Expect::NotTold(request, text) => {
                let told = self.told(*request);
                assert!(!told.contains(text), "{}\n{told}", context());
            }
            Expect::Asked(times) => {
                assert_eq!(self.run.agent.asked.len(), *times, "{}", context());
            }
            Expect::Within(time) => {
                assert!(self.took <= *time, "{}: {:?}", context(), self.took);
            }
        }
    }

    /// The texts of the tool and user messages of a request, joined.
    fn told(&self, request: usize) -> String {
        let requests = self.run.provider.requests();
        let messages = requests
            .get(request)
            .map(|request| request["messages"].clone());
        let messages = messages.unwrap_or_default();
        let texts = messages
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|message| {
                let role = message["role"].as_str()?;
                let content = &message["content"];
                let text = content
                    .as_str()
                    .map_or_else(|| content.to_string(), String::from);
                matches!(role, "tool" | "user").then_some(text)
            });
        texts.collect::<Vec<_>>().join("\n")
    }
}

fn in_place(answer: &Answer, work: &str) -> Answer {
    let steps = answer.steps.iter().map(|step| match step {
        Step::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Step::Bytes(text.replace("$W", work).into_bytes()),
            Err(_) => step.clone(),
        },
        Step::Dribble(_) | Step::Pause(_) | Step::Hang | Step::Cut | Step::HangThenReset => {
            step.clone()
        }
    });
    Answer {
        steps: steps.collect(),
        ..answer.clone()
    }
}

/// Each assistant tool call has exactly one tool message before the next words, ids are unique and
/// not empty, and arguments are the text of a JSON object.
#[track_caller]
pub fn well_formed(name: &str, request: &Value) {
    let mut known = std::collections::BTreeSet::new();
    let mut due: Vec<String> = Vec::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let at = due.iter().position(|due| due == id);
                due.remove(
                    at.unwrap_or_else(|| panic!("{name}: a result of no call: {request:#}")),
                );
            }
            Some("system" | "user" | "assistant") => {
                assert!(
                    due.is_empty(),
                    "{name}: calls without results {due:?}: {request:#}"
                );
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let id = call["id"].as_str().unwrap_or_default().to_string();
                    assert!(!id.is_empty(), "{name}: an empty id: {request:#}");
                    assert!(known.insert(id.clone()), "{name}: {id} twice: {request:#}");
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    let object = serde_json::from_str::<serde_json::Map<String, Value>>(arguments);
                    assert!(object.is_ok(), "{name}: arguments {arguments:?}");
                    due.push(id);
                }
            }
            other => panic!("{name}: role {other:?}"),
        }
    }
    assert!(
        due.is_empty(),
        "{name}: calls without results {due:?}: {request:#}"
    );
}
