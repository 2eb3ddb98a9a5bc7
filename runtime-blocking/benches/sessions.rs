//! What stored sessions cost: to load a long one, to list many, to keep a message for later, each
//! beside a size that shows whether time is linear, or a limit, in the same run:
//! `cargo bench -p reasonix-blocking --bench sessions`.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher};
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

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const TEXT: &str = "The check fails since the total is computed before the list is sorted. ";

/// A session of so many messages, as an agent leaves it.
fn store(home: &Path, id: &str, messages: usize) {
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

/// Load with its whole replay.
#[divan::bench(args = [100, 1_000, 10_000], sample_count = 10)]
fn load_messages(bencher: Bencher, messages: usize) {
    let home = tempfile::tempdir().expect("a folder");
    store(home.path(), "long", messages);
    bencher
        .counter(ItemsCount::new(messages))
        .with_inputs(|| client(home.path()))
        .bench_local_values(|mut client| {
            assert_eq!(load(&mut client, "long"), messages);
            client
        });
}

/// The first page of a list.
#[divan::bench(args = [50, 500, 5_000], sample_count = 10)]
fn list_sessions(bencher: Bencher, sessions: usize) {
    let home = tempfile::tempdir().expect("a folder");
    for n in 0..sessions {
        store(home.path(), &format!("session-{n}"), 2);
    }
    let mut client = client(home.path());
    bencher.counter(ItemsCount::new(sessions)).bench_local(|| {
        let page = client.call::<ListSessions>(&ListSessionsRequest::default());
        let Ok(AgentAnswer::ListSessions(Ok(page))) = page else {
            panic!("{page:?}")
        };
        assert_eq!(page.sessions.len(), sessions.min(100));
    });
}

/// A message for later, durable before it is answered.
#[divan::bench]
fn enqueue(bencher: Bencher) {
    let home = tempfile::tempdir().expect("a folder");
    let mut client = client(home.path());
    let session = client.new_session("/").expect("a session");
    let mut call = |method: &str, rest: &str| {
        let params = format!("{{\"sessionId\":\"{}\",{rest}}}", session.as_str());
        let params = Json::from_text(params).expect("it is JSON");
        let method = format!("_reasonix.io/session/inbox/{method}");
        client
            .call_vendor(&method, &params)
            .expect("it is answered")
    };
    bencher.bench_local(|| {
        let answer = call("enqueue", &format!("\"text\":\"{TEXT}\""));
        let at = answer.get().find("\"itemId\":\"").expect("an id") + 10;
        let id = answer.get()[at..].split('"').next().expect("its end");
        // Room for the next: one more sync.
        call("delete", &format!("\"itemId\":\"{id}\""));
    });
}

/// The limit for it: the same two lines, each with a bare sync.
#[divan::bench]
fn two_lines_and_two_syncs(bencher: Bencher) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("file");
    let mut file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .expect("a file can be made");
    let line = [b'x'; 400];
    bencher.bench_local(|| {
        for _ in 0..2 {
            file.write_all(&line).expect("it can be written");
            file.sync_data().expect("it can be synced");
        }
    });
}
