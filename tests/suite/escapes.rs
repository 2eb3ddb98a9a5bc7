//! Escapes: every way out of a session's folders that is known, tried by the file tools and by
//! commands, on a real disk and with the real kernel, by both programs. Nothing outside may change,
//! also while somebody swaps a folder of the session for a link as fast as they can.
//!
//! `REASONIX_TEST_SWAP_SECONDS=60 cargo test -p reasonix-tests --test conformance escapes::` swaps
//! for a minute a program; by default two seconds.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

fn name(path: &Path) -> String {
    path.to_str()
        .expect("a test folder has a plain name")
        .into()
}

/// Everything beneath a folder: its path, what it is, what it holds.
fn all(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let data = fs::symlink_metadata(&path).expect("it is there");
        let what = if data.is_dir() {
            let entries = fs::read_dir(&path).expect("it can be listed");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
            "folder".into()
        } else if data.is_file() {
            format!("file {:?}", fs::read(&path).expect("it can be read"))
        } else {
            format!("{:?}", data.file_type())
        };
        found.push((path, what));
    }
    found.sort();
    found
}

/// A place with links of every kind in its workspace, and secrets beside it.
fn place() -> Place {
    let place = Place::new();
    let (work, out) = (place.work(), place.out());
    for folder in ["in", "deep/er"] {
        fs::create_dir_all(work.join(folder)).expect("made");
    }
    fs::write(work.join("in/file"), "inside").expect("written");
    fs::create_dir(out.join("kept")).expect("made");
    fs::write(out.join("secret"), "secret").expect("written");
    fs::write(out.join("kept/more"), "more").expect("written");
    let out = name(&out);
    for (to, link) in [
        (out.as_str(), "to_out"),
        ("../out", "to_out_relative"),
        ("../../out", "deep/up"),
        (&format!("{out}/secret"), "to_secret"),
        (&format!("{out}/new"), "to_nothing"),
        (&format!("{out}/none/new"), "to_deep_nothing"),
        ("to_secret", "to_link"),
        ("..", "parent"),
        ("/", "top"),
        ("/proc/self/root", "proc"),
        ("/proc/self/cwd", "cwd"),
        ("cycle", "cycle"),
        ("/dev/zero", "zero"),
    ] {
        symlink(to, work.join(link)).expect("linked");
    }
    let made = std::process::Command::new("mkfifo")
        .arg(work.join("pipe"))
        .status();
    assert!(made.expect("mkfifo runs").success());
    place
}

/// Paths that lead out of the workspace, or to no file.
fn ways_out(place: &Place) -> Vec<String> {
    let (work, out) = (name(&place.work()), name(&place.out()));
    let long = "x".repeat(300);
    let mut ways: Vec<String> = [
        "../out/secret",
        "in/../../out/secret",
        "./in/.././../out/secret",
        "to_out/secret",
        "to_out/new",
        "to_out_relative/secret",
        "to_out/kept/more",
        "to_out/kept",
        "deep/up/secret",
        "deep/er/../up/new",
        "to_secret",
        "to_nothing",
        "to_deep_nothing",
        "to_link",
        "parent/out/secret",
        "cycle",
        "cycle/x",
        "zero",
        "pipe",
        "pipe/x",
        "a\0b",
        "..",
        "../out/n\u{2028}w",
        "TO_OUT/../../out/secret",
        "to_out/SECRET",
    ]
    .map(String::from)
    .into();
    ways.extend([
        format!("{out}/secret"),
        format!("{out}/new"),
        format!("/{out}/secret"),
        format!("{work}/../out/secret"),
        format!("{work}x/../out/new"),
        format!("/proc/self/root{out}/secret"),
        format!("/proc/self/root{out}/new"),
        format!("/proc/thread-self/root{out}/new"),
        format!("top{out}/secret"),
        format!("proc{out}/new"),
        "cwd/etc/reasonix-escaped".into(),
        "/dev/shm/reasonix-escaped".into(),
        "/dev/stdin".into(),
        "/etc/reasonix-escaped".into(),
        "~/reasonix-escaped".into(),
        format!("../out/{long}"),
        format!("to_out/{}", "y/".repeat(3000)),
        format!("{out}/kept/../secret"),
    ]);
    ways
}

/// A script of calls, each an answer of its own.
fn script(calls: &[(&str, Value)]) -> String {
    let mut lines = String::new();
    for (n, (tool, args)) in calls.iter().enumerate() {
        let call = json!({"tool": tool, "args": args, "id": format!("c{n}")});
        lines.push_str(&format!("{call}\n{{\"finish\":\"tool_calls\"}}\n"));
    }
    lines.push_str("{\"text\":\"k\"}\n{\"finish\":\"stop\"}\n");
    lines
}

fn begin(program: &str, place: &Place, calls: &[(&str, Value)]) -> (Running, String) {
    let model = format!("script:{}", place.script(&script(calls)).display());
    let most = (calls.len() + 2).to_string();
    let args = [
        "--model",
        &model,
        "--permission-mode",
        "bypassPermissions",
        "--max-steps",
        &most,
    ];
    let mut agent = Running::start(program, place, &args);
    let session = agent.open(json!({}), &place.work());
    (agent, session)
}

#[test]
fn no_path_leads_a_file_tool_out() {
    for program in PROGRAMS {
        let place = place();
        let mut calls = Vec::new();
        for way in ways_out(&place) {
            for (tool, args) in [
                ("write_file", json!({"path": way, "content": "escaped"})),
                (
                    "edit_file",
                    json!({"path": way, "old_string": "e", "new_string": "E", "replace_all": true}),
                ),
                (
                    "move_file",
                    json!({"source_path": "in/file", "destination_path": way}),
                ),
                ("read_file", json!({"path": way})),
            ] {
                calls.push((tool, args));
            }
            // These touch a link itself; what is inside may go, what it leads to may not.
            if ![
                "to_secret",
                "to_nothing",
                "to_deep_nothing",
                "to_link",
                "cycle",
                "zero",
            ]
            .contains(&way.as_str())
            {
                calls.push(("delete_file", json!({"path": way})));
                calls.push((
                    "move_file",
                    json!({"source_path": way, "destination_path": "taken"}),
                ));
            }
        }
        let (out, work) = (all(&place.out()), all(&place.work()));
        let (mut agent, session) = begin(program, &place, &calls);
        let answer = agent.ask(&json::prompt(1, &session, "go"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let ends = json::tool_ends(&agent.frames, &session);
        assert_eq!(ends.len(), calls.len());
        for (end, call) in ends.iter().zip(&calls) {
            assert_eq!(end, "failed", "{call:?}");
        }
        assert_eq!(all(&place.out()), out, "nothing outside changes");
        assert_eq!(all(&place.work()), work, "and nothing inside did");
        let (ended, laws) = agent.finish();
        laws.check();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn no_path_leads_a_command_out() {
    if !reasonix_blocking::ops::confine::level().confines_files() {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: nothing confines commands on this kernel"
        );
        return;
    }
    for program in PROGRAMS {
        let place = place();
        let quoted = |way: &str| format!("'{}'", way.replace('\'', "'\\''"));
        let mut calls = Vec::new();
        let ways = ways_out(&place);
        // What only writes where nobody keeps it is no escape.
        let tried = ways.iter().filter(|way| {
            !way.contains('\0')
                && !["pipe", "zero", "~/reasonix-escaped", "/dev/stdin"].contains(&way.as_str())
        });
        for way in tried {
            let way = quoted(way);
            let line = [
                format!("echo escaped > {way}; echo escaped >> {way}; truncate -s 0 {way}"),
                format!("cp in/file {way}; ln in/file {way}; ln -s x {way}; mkdir -p {way}"),
                format!("perl -e 'truncate shift, 0; unlink shift' {way} {way}"),
                // A link itself is inside, and may go.
                format!("[ -L {way} ] || {{ rm -rf {way}; mv {way} in/taken; ln {way} in/hard; }}"),
            ];
            let line = format!("{{ {}; }} 2>&1 | head -c 500", line.join("; "));
            calls.push(("bash", json!({"command": line})));
        }
        let out = all(&place.out());
        let (mut agent, session) = begin(program, &place, &calls);
        let answer = agent.ask(&json::prompt(1, &session, "go"));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert_eq!(json::tool_ends(&agent.frames, &session).len(), calls.len());
        assert_eq!(all(&place.out()), out, "nothing outside changes");
        for path in ["/dev/shm/reasonix-escaped", "/etc/reasonix-escaped"] {
            assert!(!Path::new(path).exists(), "{path}");
        }
        assert!(!place.home().join("reasonix-escaped").exists());
    }
}

/// Somebody who swaps `name` in `work` between a folder and a link to `out` as fast as they can.
struct Swapper {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

/// Renames. A tool may have made a folder of that name in the gap between two renames: it goes.
fn put(from: &Path, to: &Path, stop: &AtomicBool) {
    while fs::rename(from, to).is_err() && !stop.load(Ordering::Relaxed) {
        let _ = fs::remove_dir_all(to);
    }
}

impl Swapper {
    fn start(work: &Path, out: &Path) -> Self {
        let (folder, link, away) = (work.join("swapped"), work.join("link"), work.join("away"));
        fs::create_dir(&folder).expect("made");
        symlink(out, &link).expect("linked");
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                // folder → away, link → folder's name; and back.
                put(&folder, &away, &stop);
                put(&link, &folder, &stop);
                put(&folder, &link, &stop);
                put(&away, &folder, &stop);
                swaps += 1;
            }
            swaps
        });
        Self {
            over,
            thread: Some(thread),
        }
    }

    fn stop(&mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .map_or(0, |thread| thread.join().expect("it swaps"))
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn a_link_swapped_in_leads_nobody_out() {
    let seconds = std::env::var("REASONIX_TEST_SWAP_SECONDS");
    let seconds = seconds.ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let confined = reasonix_blocking::ops::confine::level().confines_files();
    for program in PROGRAMS {
        let place = Place::new();
        let (work, out) = (place.work(), place.out());
        for file in ["secret", "victim"] {
            fs::write(out.join(file), file).expect("written");
        }
        fs::create_dir(out.join("folder")).expect("made");
        let mut calls = vec![
            (
                "write_file",
                json!({"path": "swapped/new", "content": "escaped"}),
            ),
            (
                "write_file",
                json!({"path": "swapped/secret", "content": "escaped"}),
            ),
            (
                "write_file",
                json!({"path": "swapped/folder/new", "content": "escaped"}),
            ),
            (
                "write_file",
                json!({"path": "swapped/a/b/c", "content": "escaped"}),
            ),
            (
                "edit_file",
                json!({"path": "swapped/secret", "old_string": "secret", "new_string": "escaped"}),
            ),
            ("delete_file", json!({"path": "swapped/victim"})),
            (
                "move_file",
                json!({"source_path": "swapped/victim", "destination_path": "taken"}),
            ),
            (
                "move_file",
                json!({"source_path": "mine", "destination_path": "swapped/mine"}),
            ),
            ("write_file", json!({"path": "mine", "content": "m"})),
        ];
        if confined {
            let line = "for n in 1 2 3 4 5 6 7 8; do echo x > swapped/new; rm -f swapped/victim; echo x > swapped/secret; done 2>/dev/null";
            calls.push(("bash", json!({"command": line})));
        }
        let before = all(&out);
        let round: Vec<_> = std::iter::repeat_n(calls.clone(), 40).flatten().collect();
        let (mut agent, session) = begin(program, &place, &round);
        let mut swapper = Swapper::start(&work, &out);
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut turns = 0;
        while Instant::now() < end {
            // The script begins anew with every session.
            let cwd = name(&work);
            let session = match turns {
                0 => session.clone(),
                n => {
                    let answer = agent.ask(&json::new_session(100 + n, &cwd));
                    answer["result"]["sessionId"]
                        .as_str()
                        .expect("it opens")
                        .into()
                }
            };
            agent.ask(&json::prompt(100_000 + turns, &session, "go"));
            turns += 1;
            assert_eq!(all(&out), before, "{program}: nothing outside changes");
        }
        let swaps = swapper.stop();
        assert_eq!(all(&out), before, "{program}: nothing outside changes");
        let calls = calls.len() as u64 * 40 * turns;
        let _ = writeln!(
            std::io::stderr(),
            "escapes: {program}: {calls} calls, {swaps} swaps, nothing changed outside"
        );
        agent.finish().1.check();
    }
}
