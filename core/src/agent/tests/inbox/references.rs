//! Files that messages name.

use super::*;

#[test]
fn references_are_frozen_when_an_item_is_put_in() {
    let mut disk = Disk::default();
    disk.files.insert("/w/src/a.rs".into(), b"old".to_vec());
    let mut world = world(&disk, &says(3)).session();
    world.enqueues("fix @src/a.rs for @alice");
    if let Some(disk) = &mut world.disk {
        disk.files.insert("/w/src/a.rs".into(), b"new".to_vec());
    }
    let list = world.list();
    // Compared as values: the order of a text depends on who else is in the build.
    let refs = r#"[{"bytes":3,"kind":"frozen","path":"src/a.rs","preview":"old"}]"#;
    let refs: serde_json::Value = serde_json::from_str(refs).expect("it is JSON");
    assert_eq!(list["items"][0]["refs"], refs);
    world.go();
    let line = world.sees("user_message_chunk");
    assert!(
        line.contains("\"text\":\"fix @src/a.rs for @alice\""),
        "{line}"
    );
    world.sees(DONE);
    assert_eq!(
        world.heard()[1],
        "fix @src/a.rs for @alice\n\n<file path=\"src/a.rs\">\nold\n</file>"
    );
    // One that is not there.
    let more = ",\"text\":\"see @src/b.rs\"";
    let line = world.asks("inbox/enqueue", more).expect("an answer");
    assert!(line.contains("\"paused\":true"), "{line}");
    let id = item_id(&line);
    let list = world.list();
    assert_eq!(list["items"][0]["state"], "blocked");
    assert_eq!(list["items"][0]["blockCode"], "reference_failed");
    if let Some(disk) = &mut world.disk {
        disk.files.insert("/w/src/b.rs".into(), b"b".to_vec());
    }
    world.asks("inbox/refresh", &format!(",\"itemId\":\"{id}\""));
    assert_eq!(world.items(), ["see @src/b.rs queued"]);
}

#[test]
fn what_the_tools_may_not_read_is_not_frozen_and_no_key_is() {
    let mut disk = Disk::default();
    for (path, text) in [
        ("/w/conf", "key sk-abcdefgh12345678 end"),
        ("/w/secret/a", "hidden"),
        ("/h/.env", "hidden"),
        ("/etc/x", "hidden"),
    ] {
        disk.files.insert(path.into(), text.as_bytes().to_vec());
    }
    for (path, frozen) in [
        ("./conf", true),
        ("./secret/a", false),
        ("/h/.env", false),
        ("/etc/x", false),
    ] {
        let mut world = world(&disk, &says(2));
        let settings = &mut world.agent.config.settings;
        settings.permissions.deny.push("Read(secret/**)".into());
        let key = crate::secret::Secret::new("K", "sk-abcdefgh12345678");
        settings.secrets.push(key);
        world.agent.know_settings();
        let mut world = world.session();
        let more = format!(",\"text\":\"see @{path}\"");
        let line = world.asks("inbox/enqueue", &more).expect("an answer");
        assert_eq!(line.contains("\"paused\":true"), !frozen, "{line}");
        let shown = world.list().to_string();
        assert!(
            !shown.contains("hidden") && !shown.contains("sk-abc"),
            "{shown}"
        );
        if frozen {
            world.go();
            world.sees(DONE);
            let heard = world.heard();
            assert!(heard[1].contains("key [redacted] end"), "{heard:?}");
        }
        let kept = world.disk.as_ref().expect("it has a disk").files.iter();
        let mut kept = kept.filter(|(path, _)| path.starts_with("/h/sessions/"));
        let leaks = |bytes: &Vec<u8>| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.contains("hidden") || text.contains("sk-abc")
        };
        assert!(!kept.any(|(_, bytes)| leaks(bytes)), "{path}");
    }
}

#[test]
fn a_link_to_a_file_is_frozen_as_its_path_is() {
    let mut disk = Disk::default();
    disk.files.insert("/w/src/a b.rs".into(), b"old".to_vec());
    let mut world = world(&disk, &says(2)).session();
    world.enqueues("see @file:///w/src/a%20b.rs#L3");
    world.go();
    world.sees(DONE);
    assert_eq!(
        world.heard()[1],
        "see @file:///w/src/a%20b.rs#L3\n\n<file path=\"file:///w/src/a%20b.rs\">\nold\n</file>"
    );
    let line = world.asks("inbox/enqueue", ",\"text\":\"see @file:///w/none\"");
    assert!(line.expect("an answer").contains("\"paused\":true"));
}

#[test]
fn a_message_does_not_overtake_one_whose_references_are_read() {
    let mut world = world(&Disk::default(), &says(3)).session();
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(70, "inbox/enqueue", ",\"text\":\"one @a\"");
    world.wish(71, "inbox/enqueue", ",\"text\":\"two\"");
    world.wish(72, "inbox/enqueue", ",\"text\":\"three\"");
    assert_eq!(world.lines, Vec::<String>::new());
    // One that waits is taken back, and so is one that is being read.
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":71}");
    world.sees_only("\"id\":71,\"error\":{\"code\":-32800");
    world.held = |_| false;
    world.drive();
    world.sees("\"id\":70,\"result\"");
    world.sees_only("\"id\":72,\"result\"");
    assert_eq!(world.items(), ["one @a queued", "three queued"]);
    world.held = |call| matches!(call, Call::Read { .. });
    world.wish(73, "inbox/enqueue", ",\"text\":\"four @a\"");
    world.wish(74, "inbox/list", "");
    world.say("\"method\":\"$/cancel_request\",\"params\":{\"requestId\":73}");
    world.sees("\"id\":73,\"error\":{\"code\":-32800");
    world.sees_only("\"id\":74,\"result\"");
    world.held = |_| false;
    world.drive();
    assert_eq!(world.items(), ["one @a queued", "three queued"]);
}
