//! What stored sessions cost: to load a long one, to list many, to keep a message for later. Time
//! and memory stand in one table with other sizes, which shows how they grow, or with a limit that is
//! measured in turn: `cargo bench -p reasonix-blocking --bench sessions`. With `-- 50` behind it all is
//! done with sizes and rounds that are 50 times smaller: whether it works, not what it costs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reasonix_blocking::{Client, config};
use reasonix_core::agent::Config;
use reasonix_core::engine::record::{Assistant, Author, End, Header, Reason, Record, Said, User};
use reasonix_core::model::Script;
use reasonix_core::protocol::methods::{ListSessions, LoadSession};
use reasonix_core::protocol::schema::{
    ClientCapabilities, Json, ListSessionsRequest, LoadSessionRequest, SessionId,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent};
use reasonix_core::store::{Journal, Summary};

/// Counts what is held, the agent's threads and the client's.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(size: usize) {
    let live = LIVE.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there for a moment.
        more(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    // `cargo test` only looks whether it builds.
    if std::env::args().any(|arg| arg == "--bench") {
        let smaller = std::env::args().find_map(|arg| arg.parse().ok());
        let scale = Scale(smaller.unwrap_or(1).max(1));
        loads(scale);
        lists(scale);
        messages(scale);
    }
}

/// How many times smaller all is.
#[derive(Clone, Copy)]
struct Scale(usize);

impl Scale {
    fn of(self, size: usize) -> usize {
        (size / self.0).max(2)
    }
}

/// Sizes whose costs are seen beside each other, each twice the one before it.
const MESSAGES: [usize; 5] = [1_250, 2_500, 5_000, 10_000, 20_000];
const SESSIONS: [usize; 4] = [1_250, 2_500, 5_000, 10_000];

/// How often each is measured, and a message is put in.
const ROUNDS: usize = 10;
const PUT_IN: usize = 300;

const TEXT: &str = "The check fails since the total is computed before the list is sorted. ";

/// A load with its whole replay.
fn loads(scale: Scale) {
    println!("load with its replay | median | a message | most held | a byte of the transcript");
    for messages in MESSAGES {
        // A prompt and its answer are two.
        let messages = scale.of(messages) / 2 * 2;
        let home = tempfile::tempdir().expect("a folder");
        let size = store(home.path(), "long", messages);
        let (time, held) = measured(home.path(), scale, |client| {
            assert_eq!(load(client, "long"), messages);
        });
        let share = held as f64 / size as f64;
        let each = time / messages as u32;
        println!(
            "{messages} messages, {size} bytes | {time:.1?} | {each:.2?} | {held} | {share:.2}"
        );
    }
}

/// The first page of a list, by an agent that just began.
fn lists(scale: Scale) {
    println!("first page of a list | median | a session | most held | a session");
    for sessions in SESSIONS.map(|sessions| scale.of(sessions)) {
        let home = tempfile::tempdir().expect("a folder");
        for n in 0..sessions {
            store(home.path(), &format!("session-{n}"), 2);
        }
        for (cwd, expected, filter) in [
            (None, sessions.min(100), ""),
            (Some("/elsewhere"), 0, ", none in the folder asked for"),
        ] {
            let (time, held) = measured(home.path(), scale, |client| {
                let mut request = ListSessionsRequest::default();
                request.cwd = cwd.map(Into::into);
                let page = client.call::<ListSessions>(&request);
                let Ok(AgentAnswer::ListSessions(Ok(page))) = page else {
                    panic!("{page:?}")
                };
                assert_eq!(page.sessions.len(), expected);
            });
            let each = time / sessions as u32;
            let share = held / sessions;
            println!("{sessions} sessions{filter} | {time:.1?} | {each:.2?} | {held} | {share}");
        }
    }
}

/// A message for later, durable before it is answered; and the limit for it: the same line with a
/// bare sync, in turn, on the same disk.
fn messages(scale: Scale) {
    let home = tempfile::tempdir().expect("a folder");
    let mut client = client(home.path());
    let session = client.new_session("/").expect("a session");
    let mut call = |method: &str, rest: &str| {
        let params = format!("{{\"sessionId\":\"{}\"{rest}}}", session.as_str());
        let params = Json::from_text(params).expect("it is JSON");
        let method = format!("_reasonix.io/session/inbox/{method}");
        client
            .call_vendor(&method, &params)
            .expect("it is answered")
    };
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.path().join("file"))
        .expect("a file can be made");
    let line = [b'x'; 400];
    let text = format!(",\"text\":\"{TEXT}\"");
    let mut times: [Vec<Duration>; 4] = Default::default();
    // The first one is not counted: the session and its names are made safe with it.
    for round in 0..=scale.of(PUT_IN) {
        let mut timed = |at: usize, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            if round > 0 {
                times[at].push(start.elapsed());
            }
        };
        timed(0, &mut || {
            file.write_all(&line).expect("it can be written");
            file.sync_data().expect("it can be synced");
        });
        let mut answer = None;
        timed(1, &mut || answer = Some(call("enqueue", &text)));
        let answer = answer.expect("it was asked");
        let at = answer.get().find("\"itemId\":\"").expect("an id") + 10;
        let id = answer.get()[at..].split('"').next().expect("its end");
        let item = format!(",\"itemId\":\"{id}\"");
        timed(2, &mut || drop(call("delete", &item)));
        timed(3, &mut || drop(call("list", "")));
    }
    let [bare, put_in, taken_out, list] = times.map(median);
    let ratio = |time: Duration| time.as_secs_f64() / bare.as_secs_f64();
    println!(
        "a line and a bare sync | a message put in | taken out again | a request that needs no disk"
    );
    println!(
        "{bare:.1?} | {put_in:.1?} ({:.2}×) | {taken_out:.1?} ({:.2}×) | {list:.1?}",
        ratio(put_in),
        ratio(taken_out)
    );
    client.close().expect("it ends");
}

/// The median time of some rounds, each with an agent that just began, and the most that was held in
/// one beyond what was held before.
fn measured(home: &Path, scale: Scale, mut work: impl FnMut(&mut Client)) -> (Duration, usize) {
    let mut times = Vec::new();
    let mut held = 0;
    for _ in 0..scale.of(ROUNDS) {
        let mut client = client(home);
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let start = Instant::now();
        work(&mut client);
        times.push(start.elapsed());
        held = held.max(PEAK.load(Relaxed).saturating_sub(before));
        // Its locks are given back.
        client.close().expect("it ends");
    }
    (median(times), held)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A session of so many messages, as an agent leaves it; the size of its transcript.
fn store(home: &Path, id: &str, messages: usize) -> usize {
    let folder = home.join("sessions").join(id);
    fs::create_dir_all(&folder).expect("a folder can be made");
    let mut journal = Journal::memory(usize::MAX);
    let header = Header {
        v: 1,
        id: id.into(),
        cwd: "/".into(),
        created: 1,
        agent: "bench".into(),
    };
    journal.push(Some(1), &Record::Session(header), false);
    for n in 1..=messages as u64 / 2 {
        let user = User {
            id: n,
            from: Author::Person,
            text: TEXT.into(),
            images: Vec::new(),
            shown: None,
            item: None,
            mode: Default::default(),
        };
        let answer = Assistant {
            id: n,
            said: vec![Said::Text(TEXT.repeat(4))],
            ..Assistant::default()
        };
        let end = End {
            reason: Reason::EndTurn,
            message: None,
        };
        for record in [
            Record::User(user),
            Record::Assistant(answer),
            Record::End(end),
        ] {
            journal.push(Some(n), &record, false);
        }
    }
    let kept = journal.kept().expect("it is in memory");
    fs::write(folder.join("transcript.jsonl"), kept).expect("it can be written");
    let mut summary = Summary::new(id, "/", 1);
    summary.prompts = messages as u64 / 2;
    summary.title = TEXT.into();
    fs::write(folder.join("state.json"), summary.write()).expect("it can be written");
    kept.len()
}

fn client(home: &Path) -> Client {
    let mut config = Config::new([7; 32], config::host());
    config.host.home = home.to_str().map(Into::into);
    config.script = Script::parse("{\"text\":\"I\"}").ok();
    let mut client = Client::start(config).expect("an agent starts");
    let hello = client.initialize(ClientCapabilities::default());
    hello.expect("it answers");
    client
}

/// Until the request is answered; what is replayed is counted and dropped.
fn load(client: &mut Client, id: &str) -> usize {
    let request = LoadSessionRequest::new(SessionId::checked(id).expect("an id"), "/");
    client.ask::<LoadSession>(&request);
    let mut updates = 0;
    while let Some(event) = client.next_event().expect("it lives") {
        if let ClientEvent::Answered { answer, .. } = event {
            assert!(
                matches!(answer, AgentAnswer::LoadSession(Ok(_))),
                "{answer:?}"
            );
            return updates;
        }
        updates += 1;
    }
    panic!("it ended");
}
