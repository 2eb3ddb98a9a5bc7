//! Sessions that are stored: what one agent writes another one reads.

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
    /// Appends fail.
    pub(super) full: bool,
    /// Folders cannot be removed.
    stuck: bool,
}

impl Disk {
    pub(super) fn answer(&mut self, call: &Call) -> Option<Result<Outcome, IoFault>> {
        let missing = || IoFault::new(IoKind::NotFound, "not there");
        Some(match call {
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
            | Call::Custom { .. } => return None,
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
fn what_was_under_way_when_the_agent_was_killed_is_ended_once() {
    let bash = "{\"tool\":\"bash\",\"args\":{\"command\":\"x\"},\"id\":\"a\"}\n{\"finish\":\"tool_calls\"}\n";
    let mut first = world(&Disk::default(), bash);
    first.agent.config.permission_mode = PermissionMode::parse("bypassPermissions").expect("known");
    let mut first = first.session();
    first.held = |call| matches!(call, Call::Process(_));
    first.go();
    first.sees("in_progress");
    let mut disk = first.ends();
    for round in 0..2 {
        let mut world = world(&disk, HANG);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        assert_eq!(seen.len(), 3, "{seen:#?}");
        assert!(seen[2].contains("\"failed\"") && seen[2].contains("The agent ended"));
        world.sees("\"id\":5,\"result\"");
        disk = world.ends();
        let text = core::str::from_utf8(disk.transcript()).expect("text");
        assert_eq!(text.matches("\"interrupted\"").count(), 1, "round {round}");
    }
}

#[test]
fn damage_is_passed_over_told_once_and_kept() {
    let two = "{\"text\":\"one\"}\n{\"finish\":\"stop\"}\n{\"text\":\"two\"}\n{\"finish\":\"stop\"}\n{\"text\":\"three\"}\n{\"finish\":\"stop\"}\n";
    let mut first = world(&Disk::default(), two).session();
    for _ in 0..3 {
        first.go();
    }
    let whole = first.ends();
    let mut damaged = whole.clone();
    let file = damaged.transcript();
    let at = file
        .windows(3)
        .position(|text| text == b"two")
        .expect("it is there");
    file[at - 20..at].fill(0);
    let before = file.clone();
    for round in 0..2 {
        let mut world = world(&damaged, HANG);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        for part in [
            "one",
            "three",
            "1 line of this session's history could not be read and is left out. It is still",
        ] {
            let found = seen.iter().filter(|line| line.contains(part)).count();
            assert_eq!(found, 1, "{part} in round {round}: {seen:#?}");
        }
        damaged = world.ends();
        assert!(damaged.transcript().starts_with(&before));
    }
    // A crash in the middle of the last append, at every byte.
    let mut file = whole.clone().transcript().clone();
    file.pop();
    let last = file.iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    for cut in last..=file.len() {
        let mut torn = whole.clone();
        torn.transcript().truncate(cut);
        let mut world = world(&torn, two);
        world.load(5, SESSION);
        let seen = picture(&world.lines);
        assert!(
            seen.last().expect("a picture").contains("three"),
            "{seen:#?}"
        );
        world.sees("\"id\":5,\"result\"");
        world.go();
        world.sees("\"id\":1,\"result\"");
        // What was written behind it can be read.
        let mut third = self::world(&world.ends(), two);
        third.load(5, SESSION);
        let seen = picture(&third.lines);
        assert!(
            seen.last().expect("a picture").contains("one"),
            "{cut}: {seen:#?}"
        );
        assert!(
            !seen.iter().any(|line| line.contains("could not be read")),
            "{seen:#?}"
        );
    }
}

#[test]
fn a_list_shows_what_was_prompted_and_what_is_open_newest_first() {
    let say = "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n".repeat(9);
    let mut disk = Disk::default();
    let mut ids = Vec::new();
    for n in 0..4_u8 {
        let mut config = config();
        config.seed = [n + 20; 32];
        config.host.home = Some("/h".into());
        config.script = Some(Script::parse(&say).expect("good"));
        let mut world = World::of(config);
        world.disk = Some(disk.clone());
        let clock = WallClock {
            unix_ms: 1000 * i64::from(n),
        };
        world.input(Input::Wall(clock));
        let cwd = if n == 1 { "/v" } else { "/w" };
        world.request(1, "session/new", &format!("{{\"cwd\":\"{cwd}\"}}"));
        let line = world.sees("\"id\":1");
        let at = line.find("sessionId\":\"").expect("an id") + 12;
        let id = line[at..at + 36].to_string();
        // The last one is never prompted.
        if n < 3 {
            let prompt = format!("{{\"type\":\"text\",\"text\":\"session {n}\"}}");
            let params = format!("{{\"sessionId\":\"{id}\",\"prompt\":[{prompt}]}}");
            world.request(2, "session/prompt", &params);
            world.sees("\"id\":2,\"result\"");
        }
        ids.push(id);
        disk = world.ends();
    }
    // A summary that is gone or damaged is made again.
    disk.files
        .remove(&format!("/h/sessions/{}/state.json", ids[0]));
    let listed = |world: &mut World, params: &str| {
        world.request(9, "session/list", params);
        let line = world.sees("\"id\":9");
        ids.iter()
            .enumerate()
            .filter_map(|(n, id)| Some((line.find(id.as_str())?, n)))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect::<Vec<_>>()
    };
    let mut world = world(&disk, HANG);
    assert_eq!(listed(&mut world, "{}"), [2, 1, 0]);
    assert_eq!(listed(&mut world, "{\"cwd\":\"/w/\"}"), [2, 0]);
    assert!(listed(&mut world, "{\"cwd\":\"/nowhere\"}").is_empty());
    world.agent.config.limits.list_page = 2;
    assert_eq!(listed(&mut world, "{}"), [2, 1]);
    world.request(9, "session/list", "{}");
    let line = world.sees("nextCursor");
    let at = line.find("nextCursor\":\"").expect("a cursor") + 13;
    let cursor = line[at..].split('"').next().expect("its end");
    let next = format!("{{\"cursor\":\"{cursor}\"}}");
    assert_eq!(listed(&mut world, &next), [0]);
    world.request(9, "session/list", "{\"cursor\":\"made-up\"}");
    world.sees("-32602");
    // One that nobody prompted goes after a week.
    assert!(
        world
            .disk
            .as_ref()
            .expect("a disk")
            .files
            .contains_key(&transcript(&ids[3]))
    );
    let clock = WallClock {
        unix_ms: 8 * 24 * 3_600_000,
    };
    world.input(Input::Wall(clock));
    assert_eq!(listed(&mut world, "{}"), [2, 1]);
    assert!(
        !world
            .disk
            .as_ref()
            .expect("a disk")
            .files
            .contains_key(&transcript(&ids[3]))
    );
    // Deleted: nothing is left of it, open or not.
    world.request(
        8,
        "session/delete",
        &format!("{{\"sessionId\":\"{}\"}}", ids[1]),
    );
    world.sees("\"id\":8,\"result\":{}");
    assert_eq!(listed(&mut world, "{}"), [2, 0]);
    world.load(7, &ids[2]);
    world.request(
        8,
        "session/delete",
        &format!("{{\"sessionId\":\"{}\"}}", ids[2]),
    );
    world.sees("\"id\":8,\"result\":{}");
    world.request(8, "session/delete", "{\"sessionId\":\"nope\"}");
    world.sees("\"id\":8,\"result\":{}");
    let left = world.disk.as_ref().expect("a disk");
    assert!(left.files.keys().all(|file| file.contains(ids[0].as_str())));
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
fn an_answer_waits_for_what_it_stands_for() {
    let mut world = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    )
    .session();
    world.held = |call| matches!(call, Call::Append(append) if append.durable);
    world.go();
    world.sees("agent_message_chunk");
    assert!(!world.lines.iter().any(|line| line.contains("\"id\":1")));
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"configId\":\"agent_preset\",\"value\":\"light\"}}"
    );
    world.request(3, "session/set_config_option", &params);
    assert_eq!(world.lines, Vec::<String>::new());
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":1,\"result\"");
    world.sees("\"id\":3,\"result\"");
    let mut second = self::world(&world.ends(), HANG);
    second.load(5, SESSION);
    let line = second.sees("\"id\":5,\"result\"");
    assert!(line.contains("\"currentValue\":\"light\""), "{line}");
}

#[test]
fn a_full_disk_is_told_once_and_the_turn_goes_on() {
    let say = "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n".repeat(2);
    let mut world = world(&Disk::default(), &say).session();
    world.disk.as_mut().expect("a disk").full = true;
    for told in [1, 0] {
        world.go();
        let told_now = world
            .lines
            .iter()
            .filter(|line| line.contains("[warning] This session is not saved: no space"))
            .count();
        assert_eq!(told_now, told);
        let answer = world.sees("\"id\":1,\"result\":{\"stopReason\":\"end_turn\"");
        assert!(!answer.contains("transcriptPath"), "{answer}");
    }
}

#[test]
fn what_a_later_version_wrote_is_read_and_not_changed() {
    let mut first = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    )
    .session();
    first.go();
    let mut disk = first.ends();
    let file = disk.transcript();
    let text = core::str::from_utf8(file)
        .expect("text")
        .replacen("\"v\":1", "\"v\":2", 1);
    *file = format!("{text}{{\"type\":\"later\",\"x\":1}}\n").into_bytes();
    let before = file.clone();
    let mut world = world(&disk, HANG);
    world.load(5, SESSION);
    assert_eq!(picture(&world.lines).len(), 2);
    world.sees("\"id\":5,\"result\"");
    world.go();
    world.sees("\"code\":\"read_only\"");
    assert_eq!(*world.ends().transcript(), before);
}

#[test]
fn a_list_removes_nothing_that_may_be_somebodys() {
    let mut first = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    )
    .session();
    first.go();
    let mut disk = first.ends();
    let folder = format!("/h/sessions/{SESSION}");
    let mut more = BTreeMap::new();
    for (path, bytes) in &disk.files {
        // A copy that somebody made by hand.
        more.insert(
            path.replace(SESSION, &format!("{SESSION}.bak")),
            bytes.clone(),
        );
    }
    more.insert("/h/sessions/.git/config".into(), b"x".to_vec());
    more.insert("/h/sessions/archive/old".into(), b"x".to_vec());
    // Messages that were left in a session that was never prompted.
    let other = SESSION.replace('f', "e");
    let header = format!(
        "{{\"type\":\"session\",\"v\":1,\"id\":\"{other}\",\"cwd\":\"/w\",\"created\":1}}\n"
    );
    more.insert(transcript(&other), header.into_bytes());
    more.insert(format!("/h/sessions/{other}/inbox.jsonl"), b"{}\n".to_vec());
    disk.files.extend(more);
    // Its first line is damaged and its summary is gone.
    disk.files.remove(&format!("{folder}/state.json"));
    disk.transcript()[3] = 0;
    let mut before = disk.files.clone();
    let mut world = world(&disk, HANG);
    world.input(Input::Wall(WallClock {
        unix_ms: 30 * 24 * 3_600_000,
    }));
    world.request(9, "session/list", "{}");
    world.sees("\"id\":9,\"result\"");
    let mut after = world.disk.expect("a disk").files;
    for files in [&mut before, &mut after] {
        files.retain(|path, _| !path.ends_with("/lock"));
    }
    assert_eq!(after, before);
}

#[test]
fn a_turn_that_waited_for_a_slow_disk_goes_on() {
    let mut world = world(
        &Disk::default(),
        "{\"text\":\"I\"}\n{\"finish\":\"stop\"}\n",
    );
    world.agent.config.limits.store_backlog = 10;
    let mut world = world.session();
    world.held = |call| matches!(call, Call::Append(_));
    let params = format!(
        "{{\"sessionId\":\"{SESSION}\",\"configId\":\"agent_preset\",\"value\":\"light\"}}"
    );
    world.request(3, "session/set_config_option", &params);
    world.go();
    assert_eq!(
        world
            .lines
            .iter()
            .filter(|line| line.contains("agent_message"))
            .count(),
        0
    );
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":3,\"result\"");
    world.sees("\"id\":1,\"result\"");
}

#[test]
fn a_delete_that_fails_leaves_a_session_that_is_closed_and_can_be_deleted() {
    let mut world = world(&Disk::default(), HANG).session();
    world.disk.as_mut().expect("a disk").stuck = true;
    let params = format!("{{\"sessionId\":\"{SESSION}\"}}");
    world.request(8, "session/delete", &params);
    world.sees("\"id\":8,\"error\":{\"code\":-32603");
    world.go();
    world.sees("\"id\":1,\"error\":{\"code\":-32002");
    world.load(5, SESSION);
    world.sees("\"id\":5,\"result\"");
    world.disk.as_mut().expect("a disk").stuck = false;
    world.request(8, "session/delete", &params);
    world.sees("\"id\":8,\"result\":{}");
    let left = world.disk.expect("a disk");
    assert!(left.files.is_empty(), "{:?}", left.files.keys());
}

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
