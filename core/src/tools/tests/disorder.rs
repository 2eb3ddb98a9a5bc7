use super::host::World;
use crate::call::*;
use crate::error::{IoFault, IoKind};
use crate::time::Instant;
use crate::tools::*;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const CALLS: [(&str, &str); 19] = [
    ("read_file", r#"{"path":"a"}"#),
    ("write_file", r#"{"path":"a","content":"x"}"#),
    (
        "edit_file",
        r#"{"path":"a","old_string":"a","new_string":"b"}"#,
    ),
    (
        "multi_edit",
        r#"{"path":"a","edits":[{"old_string":"a","new_string":"b"}]}"#,
    ),
    (
        "notebook_edit",
        r#"{"path":"a","cell_number":0,"new_source":"b"}"#,
    ),
    ("move_file", r#"{"source_path":"a","destination_path":"b"}"#),
    ("delete_file", r#"{"path":"a"}"#),
    ("ls", "{}"),
    ("glob", r#"{"pattern":"*"}"#),
    ("grep", r#"{"pattern":"a"}"#),
    ("bash", r#"{"command":"a"}"#),
    ("bash", r#"{"command":"a","run_in_background":true}"#),
    ("bash_output", r#"{"job_id":"job-1"}"#),
    ("kill_shell", r#"{"job_id":"job-1"}"#),
    ("wait", "{}"),
    (
        "todo_write",
        r#"{"todos":[{"content":"a","status":"pending"}]}"#,
    ),
    ("ask", r#"{"questions":[{"question":"a"}]}"#),
    ("web_fetch", r#"{"url":"http://a.test/"}"#),
    ("add_root", r#"{"path":"/out/a"}"#),
];

/// A small generator: the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn outcome(dice: &mut Dice) -> Outcome {
    let kinds = [
        FileKind::Missing,
        FileKind::File,
        FileKind::Directory,
        FileKind::Dangling,
        FileKind::Special,
    ];
    let reals = ["/w/a", "/w", "/", "", "relative", "/out/a", "/w/漢"];
    let contents: [&[u8]; 5] = [b"", b"a", b"a\0", b"\xFF\xFEa", b"\xFFa\r\nb\n"];
    match dice.below(10) {
        0 => Outcome::Ended,
        1 => Outcome::Exited(Exit {
            code: (dice.below(2) == 0).then_some(0),
            signal: (dice.below(2) == 0).then_some(9),
            dropped: dice.below(3),
            left: false,
        }),
        2 => Outcome::Written,
        3 => Outcome::Removed,
        4 => Outcome::Renamed,
        5 => Outcome::Listed(Listing {
            entries: Vec::new(),
            more: dice.below(2) as usize,
        }),
        6 => Outcome::Found(Found {
            hits: vec![Hit {
                path: "/w/a".into(),
                line: (dice.below(2) == 0).then(|| (0, String::new())),
            }],
            cut: None,
        }),
        7 => Outcome::Read(Contents {
            bytes: contents[dice.below(5) as usize].to_vec(),
        }),
        _ => Outcome::Resolved(Resolved {
            real: reals[dice.below(7) as usize].into(),
            kind: kinds[dice.below(5) as usize],
            link: dice.below(3) == 0,
            owned: true,
            links: 1,
            size: 0,
        }),
    }
}

#[test]
fn news_and_answers_in_any_order_never_panic_and_a_run_ends_once() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..20_000 {
        let (name, arguments) = CALLS[round % CALLS.len()];
        let mut world = World::new();
        let mut run = world.start(name, arguments);
        let (mut open, mut ends) = (false, 0);
        for _ in 0..30 {
            match dice.below(13) {
                0 => run.permitted(),
                1 => run.denied("no"),
                2 => run.answered(vec![Answer::Unanswered]),
                3 if dice.below(4) == 0 => run.cancel(),
                4 => world.now = run.deadline().map_or(world.now, |deadline| deadline.at),
                5 => world.now = Instant::ZERO,
                6 => world.news(
                    &mut run,
                    News::Bytes {
                        stream: Stream::Out,
                        bytes: b"a\xE6",
                    },
                ),
                7 => {
                    let fault = IoFault::new(IoKind::Other, "fault");
                    world.news(&mut run, News::Failed(fault));
                    open = false;
                }
                8 | 9 => {
                    world.news(&mut run, News::Done(outcome(&mut dice)));
                    open = false;
                }
                10 => {
                    let (status, headers) = match dice.below(4) {
                        0 => (302, vec![("location".into(), "http://b.test/".into())]),
                        1 => (302, vec![("location".into(), "x:".into())]),
                        2 => (200, vec![("content-type".into(), "image/png".into())]),
                        _ => (200, Vec::new()),
                    };
                    world.news(&mut run, News::Opened(Opened { status, headers }));
                }
                _ => {}
            }
            for steps in 0.. {
                assert!(steps < 20, "{name}: no rest");
                match world.step(&mut run) {
                    Step::Call(_) => {
                        assert!(!open && ends == 0, "{name}: two calls open");
                        open = true;
                    }
                    Step::Abort => assert!(open, "{name}: nothing to abort"),
                    Step::Detach(_) => open = false,
                    Step::Done(done) => {
                        assert!(!open && !done.text.is_empty(), "{name}");
                        ends += 1;
                    }
                    Step::Wait => break,
                    _ => assert_eq!(ends, 0, "{name}"),
                }
            }
            assert_eq!(run.has_open_call(), open, "{name}");
        }
        assert!(ends <= 1, "{name}");
    }
}
