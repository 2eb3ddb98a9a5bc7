//! What is listed and what is removed of stored sessions.

use super::*;

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
