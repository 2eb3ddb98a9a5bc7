//! What the parts cost, each beside a peer or a limit in the same run:
//! `cargo bench -p reasonix-core --bench parts`.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use reasonix_core::limits::Limits;
use reasonix_core::protocol::methods::NewSession;
use reasonix_core::protocol::schema::{
    InitializeResponse, NewSessionResponse, ProtocolVersion, SessionId,
};
use reasonix_core::protocol::{AgentEvent, AgentSide, Asked, PeerInput, SideEffect, TextKind};
use reasonix_core::time::Instant;
use reasonix_core::wire::{SseDecoder, rpc, text};
use reasonix_core::{Machine, Next};

fn main() {
    divan::main();
}

const PROMPT: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"6f1c2a7e-0000-4000-8000-000000000000","prompt":[{"type":"text","text":"Find out why the check fails and fix it, please."}]}}"#;

fn plain(bytes: usize) -> String {
    "The quick brown fox jumps over the lazy dog. "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}

fn mixed(bytes: usize) -> String {
    "fn main() {\n\tlet s = \"caf\u{e9} \u{2192} \\d+\";\n}\n".repeat(bytes / 40)
}

/// A frame read: one scan, then its parts.
#[divan::bench]
fn read_a_prompt_frame(bencher: Bencher) {
    bencher
        .counter(BytesCount::of_str(PROMPT))
        .bench(|| rpc::read(black_box(PROMPT.as_bytes()), 128).is_ok());
}

/// The limit for it: serde_json looks at the same bytes and keeps nothing.
#[divan::bench]
fn read_a_prompt_frame_by_serde_ignoring_all(bencher: Bencher) {
    bencher
        .counter(BytesCount::of_str(PROMPT))
        .bench(|| serde_json::from_str::<serde::de::IgnoredAny>(black_box(PROMPT)).is_ok());
}

/// Text escaped for the wire.
#[divan::bench(args = ["plain", "mixed"])]
fn escape_8_kib(bencher: Bencher, kind: &str) {
    let input = if kind == "plain" {
        plain(8192)
    } else {
        mixed(8192)
    };
    let mut out = Vec::with_capacity(32 << 10);
    bencher.counter(BytesCount::of_str(&input)).bench_local(|| {
        out.clear();
        text::write_escaped(&mut out, black_box(&input));
        out.len()
    });
}

/// The peer for it.
#[divan::bench(args = ["plain", "mixed"])]
fn escape_8_kib_by_serde_json(bencher: Bencher, kind: &str) {
    let input = if kind == "plain" {
        plain(8192)
    } else {
        mixed(8192)
    };
    bencher
        .counter(BytesCount::of_str(&input))
        .bench(|| serde_json::to_string(black_box(&input)).map(|text| text.len()));
}

/// A side in the middle of a turn.
fn in_a_turn() -> (AgentSide, reasonix_core::ids::TurnKey) {
    let mut limits = Limits::default();
    limits.soft_output = usize::MAX;
    let mut side = AgentSide::new(limits);
    let mut asked: Option<Asked<NewSession>> = None;
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        PROMPT,
    ] {
        let bytes = [line.as_bytes(), b"\n"].concat();
        side.handle_input(Instant::ZERO, PeerInput::Received(&bytes));
        while let Next::Do(effect) = side.poll_effect() {
            match effect {
                SideEffect::Event(AgentEvent::Initialize { asked, .. }) => {
                    side.answer(asked, Ok(InitializeResponse::new(ProtocolVersion::V1)));
                }
                SideEffect::Event(AgentEvent::NewSession { asked: right, .. }) => {
                    asked = Some(right);
                    break;
                }
                SideEffect::Event(AgentEvent::Prompt { turn, .. }) => return (side, turn),
                SideEffect::Event(_) | SideEffect::Transmit(_) | SideEffect::Close(_) => {}
            }
        }
        if let Some(right) = asked.take() {
            let id = SessionId::from("6f1c2a7e-0000-4000-8000-000000000000");
            side.open(right, NewSessionResponse::new(id));
        }
    }
    panic!("the prompt begins a turn")
}

/// Chunks of 32 bytes through the whole side: encoded, queued, taken.
#[divan::bench]
fn send_1000_chunks(bencher: Bencher) {
    let (mut side, turn) = in_a_turn();
    let chunk = plain(32);
    bencher
        .counter(ItemsCount::new(1000_usize))
        .bench_local(|| {
            let mut bytes = 0;
            for _ in 0..1000 {
                if let Some(mut turn) = side.turn(turn) {
                    let sent = turn.text(TextKind::Message, &chunk, None);
                    debug_assert!(sent.is_ok());
                }
                while let Next::Do(SideEffect::Transmit(frame)) = side.poll_effect() {
                    bytes += frame.len();
                }
            }
            side.handle_input(Instant::ZERO, PeerInput::Unsent(0));
            bytes
        });
}

/// The limit for it: a finished frame is copied.
#[divan::bench]
fn send_1000_chunks_by_copying_a_frame(bencher: Bencher) {
    let frame = plain(208);
    let mut out = Vec::with_capacity(256 << 10);
    bencher
        .counter(ItemsCount::new(1000_usize))
        .bench_local(|| {
            out.clear();
            for _ in 0..1000 {
                out.extend_from_slice(black_box(frame.as_bytes()));
            }
            out.len()
        });
}

/// Server-sent events as a provider streams them.
#[divan::bench]
fn decode_1000_events(bencher: Bencher) {
    let event = r#"data: {"id":"x","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#;
    let stream = format!("{event}\n\n").repeat(1000);
    bencher.counter(BytesCount::of_str(&stream)).bench(|| {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut events = 0;
        for piece in stream.as_bytes().chunks(4096) {
            decoder.push(piece);
            while let Ok(Some(_)) = decoder.next_event() {
                events += 1;
            }
        }
        events
    });
}
