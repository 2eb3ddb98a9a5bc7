//! Sessions that are stored: what one agent writes another one reads.

mod disks;
mod lists;

use alloc::string::ToString;

use super::*;
use crate::call::{Contents, Entry, Holder, Listing, Part};

/// A disk in memory, as far as sessions need one.
#[derive(Clone, Default)]
pub(super) struct Disk {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Those of them that are links.
    pub(super) links: BTreeSet<String>,
    locks: BTreeMap<String, bool>,
    /// Appends and writes fail.
    pub(super) full: bool,
    /// Folders cannot be removed.
    stuck: bool,
}

impl Disk {
    pub(super) fn answer(&mut self, call: &Call) -> Option<Result<Outcome, IoFault>> {
        let missing = || IoFault::new(IoKind::NotFound, "not there");
        Some(match call {
            Call::Write(write) if self.full && write.path.starts_with("/h/") => {
                Err(IoFault::new(IoKind::Full, "no space is left"))
            }
            Call::Append(_) if self.full => Err(IoFault::new(IoKind::Full, "no space is left")),
            Call::Append(append) => {
                let file = self.files.entry(append.path.clone()).or_default();
                file.extend_from_slice(&append.bytes);
                Ok(Outcome::Appended)
            }
            Call::Write(write) if write.path.starts_with("/h/") => {
                self.files.insert(write.path.clone(), write.bytes.clone());
                Ok(Outcome::Written)
            }
            Call::ReadAt { path, at, max, .. } => match self.files.get(path) {
                Some(file) => {
                    let from = usize::try_from(*at).expect("small").min(file.len());
                    let to = from.saturating_add(*max).min(file.len());
                    Ok(Outcome::Part(Part {
                        bytes: file[from..to].to_vec(),
                        size: file.len() as u64,
                    }))
                }
                None => Err(missing()),
            },
            Call::Lock { path, .. } => match self.locks.insert(path.clone(), true) {
                None | Some(false) => {
                    self.files.entry(path.clone()).or_default();
                    Ok(Outcome::Locked)
                }
                Some(true) => Ok(Outcome::Held(Holder {
                    pid: Some(7),
                    ..Holder::default()
                })),
            },
            Call::Unlock { path } => {
                self.locks.insert(path.clone(), false);
                Ok(Outcome::Unlocked)
            }
            Call::RemoveTree { .. } if self.stuck => {
                Err(IoFault::new(IoKind::Denied, "not allowed"))
            }
            Call::Remove { path, .. } if path.starts_with("/h/") => {
                self.files.remove(path);
                Ok(Outcome::Removed)
            }
            Call::RemoveTree { path, .. } => {
                let inside = format!("{path}/");
                self.files.retain(|file, _| !file.starts_with(&inside));
                self.locks.retain(|file, _| !file.starts_with(&inside));
                Ok(Outcome::Removed)
            }
            Call::List { path, .. } if path == "/h/cache/mcp" => {
                let entry = |file: &String| Entry {
                    name: file["/h/cache/mcp/".len()..].to_string(),
                    kind: FileKind::File,
                    link: false,
                    size: 1,
                };
                let files = self
                    .files
                    .keys()
                    .filter(|it| it.starts_with("/h/cache/mcp/"));
                let entries = files.map(entry).collect();
                Ok(Outcome::Listed(Listing { entries, more: 0 }))
            }
            Call::List { path, .. } if path == "/h/sessions" => {
                let mut entries: Vec<Entry> = Vec::new();
                for file in self.files.keys() {
                    let name = file["/h/sessions/".len()..].split('/').next();
                    let name = name.expect("a name").to_string();
                    if entries.last().is_none_or(|entry| entry.name != name) {
                        entries.push(Entry {
                            name,
                            kind: FileKind::Directory,
                            link: false,
                            size: 1,
                        });
                    }
                }
                Ok(Outcome::Listed(Listing { entries, more: 0 }))
            }
            Call::Resolve { path } if self.files.contains_key(path) => {
                Ok(Outcome::Resolved(Resolved {
                    real: path.clone(),
                    kind: FileKind::File,
                    link: self.links.contains(path),
                    owned: true,
                    links: 1,
                    size: self.files[path].len() as u64,
                }))
            }
            Call::Resolve { path } if path.starts_with("/h/sessions/") => {
                let inside = format!("{path}/");
                let there = self.files.keys().any(|file| file.starts_with(&inside));
                Ok(Outcome::Resolved(Resolved {
                    real: path.clone(),
                    kind: if there {
                        FileKind::Directory
                    } else {
                        FileKind::Missing
                    },
                    link: false,
                    owned: true,
                    links: 1,
                    size: 1,
                }))
            }
            Call::Read { path, .. } if self.files.contains_key(path) => {
                let bytes = self.files[path].clone();
                Ok(Outcome::Read(Contents { bytes }))
            }
            Call::Http(_)
            | Call::Process(_)
            | Call::Resolve { .. }
            | Call::Read { .. }
            | Call::Write(_)
            | Call::Remove { .. }
            | Call::Rename { .. }
            | Call::List { .. }
            | Call::Search(_)
            | Call::Reconfigure
            | Call::Custom(_) => return None,
        })
    }

    /// What is left when the process is gone.
    fn after_the_end(&self) -> Self {
        Self {
            locks: BTreeMap::new(),
            ..self.clone()
        }
    }

    fn transcript(&mut self) -> &mut Vec<u8> {
        self.files
            .get_mut(&transcript(SESSION))
            .expect("there is a transcript")
    }
}

fn transcript(id: &str) -> String {
    format!("/h/sessions/{id}/transcript.jsonl")
}

const SCRIPT: &str = concat!(
    "{\"thought\":\"first\"}\n{\"text\":\"then \"}\n{\"thought\":\"more\"}\n{\"text\":\"look\"}\n",
    "{\"tool\":\"todo_write\",\"args\":{\"todos\":[{\"content\":\"x\",\"status\":\"pending\"}]},\"id\":\"t\"}\n",
    "{\"tool\":\"ls\",\"args\":{\"path\":\"/w\"},\"id\":\"a\"}\n",
    "{\"tool\":\"nope\",\"args\":{},\"id\":\"b\"}\n{\"finish\":\"tool_calls\"}\n",
    "{\"text\":\"half\"}\n{\"cut\":true}\n",
    "{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n",
);

pub(super) fn world(disk: &Disk, script: &str) -> World {
    let mut config = config();
    config.host.home = Some("/h".into());
    config.script = Some(Script::parse(script).expect("the script is good"));
    let mut world = World::of(config);
    world.disk = Some(disk.clone());
    let clock = WallClock { unix_ms: 1_000_000 };
    world.input(Input::Wall(clock));
    world
}

impl World {
    pub(super) fn load(&mut self, id: u32, session: &str) {
        let params = format!("{{\"sessionId\":\"{session}\",\"cwd\":\"/w\",\"mcpServers\":[]}}");
        self.request(id, "session/load", &params);
    }

    pub(super) fn ends(&mut self) -> Disk {
        self.disk.as_ref().expect("it has a disk").after_the_end()
    }

    pub(super) fn history(&self) -> Vec<crate::model::ChatMessage> {
        let session = self.agent.sessions.values().next();
        let session = session.expect("a session is open");
        session.engine.history().messages().to_vec()
    }
}

/// What a person sees of updates: texts of one message joined, each call with its last status.
fn picture(lines: &[String]) -> Vec<String> {
    let mut seen: Vec<(String, String)> = Vec::new();
    for line in lines {
        let Some(at) = line.find("\"update\":") else {
            continue;
        };
        let update: serde_json::Value =
            serde_json::from_str(&line[at + 9..line.len() - 2]).expect("an update is JSON");
        let kind = update["sessionUpdate"]
            .as_str()
            .expect("a kind")
            .to_string();
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let of = format!("{kind} {}", update["messageId"]);
                let text = update["content"]["text"].as_str().unwrap_or("[block]");
                match seen.last_mut() {
                    Some((last, all)) if *last == of => all.push_str(text),
                    _ => seen.push((of, text.into())),
                }
            }
            // How far it came is not remembered while it runs.
            "tool_call_update" if update["status"] == "in_progress" => {}
            "tool_call" | "tool_call_update" | "plan" => seen.push((kind, update.to_string())),
            _ => {}
        }
    }
    seen.into_iter()
        .map(|(of, text)| format!("{of}: {text}"))
        .collect()
}

#[test]
fn a_loaded_session_looks_and_thinks_as_it_did() {
    let mut first = world(&Disk::default(), SCRIPT).session();
    first.go();
    first.pass(Duration::from_secs(5));
    let live = picture(&first.lines);
    let mut answer = first.sees("\"id\":1,\"result\"");
    assert!(
        answer.contains("\"transcriptPath\":\"/h/sessions/"),
        "{answer}"
    );
    answer.clear();
    let mut second = world(&first.ends(), SCRIPT);
    second.load(5, SESSION);
    let replayed = picture(&second.lines);
    assert_eq!(replayed[0], "user_message_chunk \"u1\": go");
    assert_eq!(replayed[1..], live[..]);
    assert!(
        live.iter().any(|line| line.contains("\"failed\"")),
        "{live:#?}"
    );
    assert!(live.iter().any(|line| line.contains("half")), "{live:#?}");
    second.sees("\"id\":5,\"result\"");
    assert_eq!(second.history(), first.history());
    // Its messages go on with new ids.
    second.go();
    let line = second.sees("agent_thought_chunk");
    assert!(line.contains("\"messageId\":\"m4\""), "{line}");
    // The same by `session/resume`, without a picture.
    let mut third = world(&first.ends(), SCRIPT);
    let params = format!("{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/w/\"}}");
    third.request(6, "session/resume", &params);
    assert_eq!(picture(&third.lines), Vec::<String>::new());
    third.sees("\"id\":6,\"result\"");
    assert_eq!(third.history(), first.history());
}

#[test]
fn a_session_that_is_open_is_replayed_as_it_stands_and_its_turn_goes_on() {
    for ephemeral in [false, true] {
        let mut world = world(
            &Disk::default(),
            "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n{\"text\":\"more\"}\n{\"hang\":true}\n",
        );
        world.agent.config.ephemeral = ephemeral;
        // By pieces, in memory too.
        world.agent.config.limits.store_piece = 50;
        let mut world = world.session();
        world.go();
        let params = "{\"type\":\"text\",\"text\":\"again\"}";
        let params = format!("{{\"sessionId\":\"{SESSION}\",\"prompt\":[{params}]}}");
        world.request(2, "session/prompt", &params);
        world.sees("more");
        world.load(5, SESSION);
        let replayed = picture(&world.lines);
        assert_eq!(replayed[0], "user_message_chunk \"u1\": go");
        assert_eq!(replayed[1], "agent_message_chunk \"m1\": I");
        assert_eq!(replayed[2], "user_message_chunk \"u2\": again");
        world.sees("\"id\":5,\"result\"");
        world.sees("available_commands_update");
        world.cancel();
        world.sees("\"id\":2,\"result\":{\"stopReason\":\"cancelled\"");
    }
}

#[test]
fn a_session_can_be_loaded_from_its_first_answer_on_and_only_as_what_it_is() {
    let first = world(&Disk::default(), HANG).session();
    let disk = first.disk.clone().expect("a disk");
    for (params, wanted) in [
        (
            format!("{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/w\"}}"),
            "\"code\":\"session_locked\",\"holder\":{\"pid\":7",
        ),
        (
            format!("{{\"sessionId\":\"{SESSION}\",\"cwd\":\"/v\"}}"),
            "\"code\":\"cwd_mismatch\"",
        ),
        (
            "{\"sessionId\":\"nope-123\",\"cwd\":\"/w\"}".into(),
            "-32002",
        ),
        ("{\"sessionId\":\"../x\",\"cwd\":\"/w\"}".into(), "-32602"),
    ] {
        let mut second = world(&disk, HANG);
        second.request(5, "session/load", &params);
        second.sees_only(wanted);
        assert!(second.agent.openings.is_empty() && second.agent.calls.is_empty());
        assert_eq!(
            second.disk.expect("a disk").files,
            disk.files,
            "nothing is made"
        );
    }
    let mut second = world(&disk.after_the_end(), HANG);
    second.load(5, SESSION);
    second.sees("\"id\":5,\"result\"");
    second.sees_only("available_commands_update");
}

#[test]
fn what_is_closed_can_be_opened_elsewhere_at_once() {
    let mut world = world(&Disk::default(), HANG).session();
    world.go();
    world.request(
        5,
        "session/close",
        &format!("{{\"sessionId\":\"{SESSION}\"}}"),
    );
    world.sees(CANCELLED_STORED);
    world.sees("\"id\":5,\"result\":{}");
    let disk = world.disk.clone().expect("a disk");
    let mut second = self::world(&disk, HANG);
    second.load(5, SESSION);
    second.sees("\"id\":5,\"result\"");
}

const CANCELLED_STORED: &str = "\"id\":1,\"result\":{\"stopReason\":\"cancelled\"";

#[test]
fn what_is_new_follows_what_is_replayed() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"x\"},\"id\":\"a\"}\n{\"finish\":\"tool_calls\"}\n{\"text\":\"done\"}\n{\"finish\":\"stop\"}\n";
    let mut world = world(&Disk::default(), bash);
    world.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    let mut world = world.session();
    world.held = |call| matches!(call, Call::Process(_));
    world.go();
    world.sees("in_progress");
    // The command ends while the transcript is being read.
    world.held = |call| matches!(call, Call::ReadAt { .. } | Call::Process(_));
    world.load(5, SESSION);
    world.held = |call| matches!(call, Call::ReadAt { .. });
    world.drive();
    assert_eq!(world.lines, Vec::<String>::new());
    world.held = |_| false;
    world.drive();
    let order: Vec<_> = [
        "\"tool_call\"",
        "\"id\":5,\"result\"",
        "\"failed\"",
        "\"id\":1,\"result\"",
    ]
    .map(|part| world.lines.iter().position(|line| line.contains(part)))
    .into();
    assert!(
        order.iter().all(Option::is_some),
        "{order:?} {:#?}",
        world.lines
    );
    assert!(order.is_sorted(), "{order:?} {:#?}", world.lines);
}
