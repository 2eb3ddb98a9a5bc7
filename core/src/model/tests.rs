//! Whole runs against a provider that answers the n-th request with the n-th reply, on a virtual
//! clock. Streams are fed whole, in small pieces and byte by byte, which must not matter.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::endpoint::tests::provider;
use super::*;
use crate::call::{Call, News, Opened, Outcome, Stream};
use crate::error::{IoFault, IoKind};
use crate::limits::Limits;
use crate::settings::Model;
use crate::time::{Duration, Instant};

/// What the provider does with one request.
#[derive(Clone)]
struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    end: End,
}

#[derive(Clone)]
enum End {
    /// The body ends well.
    Close,
    /// The connection breaks behind it.
    Cut,
    /// Silence behind it.
    Hang,
    /// Not even a head comes.
    Silent,
    /// There is no connection.
    Refused(IoKind),
    /// A comment every so often, so many times, then the body.
    Comments(Duration, u32),
}

fn http(status: u16, kind: &str, body: &str) -> Reply {
    Reply {
        status,
        headers: Vec::from([("content-type".into(), kind.into())]),
        body: body.into(),
        end: End::Close,
    }
}

fn sse(parts: &[String]) -> Reply {
    http(200, "text/event-stream; charset=utf-8", &parts.concat())
}

fn json(status: u16, body: &str) -> Reply {
    http(status, "application/json", body)
}

impl Reply {
    fn end(self, end: End) -> Self {
        Self { end, ..self }
    }

    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn delta(delta: &str) -> String {
    data(&format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#))
}

fn t(text: &str) -> String {
    delta(&format!(r#"{{"content":{text:?}}}"#))
}

fn r(text: &str) -> String {
    delta(&format!(r#"{{"reasoning_content":{text:?}}}"#))
}

fn call(index: u32, id: &str, name: &str, arguments: &str) -> String {
    delta(&format!(
        r#"{{"tool_calls":[{{"index":{index},"id":{id:?},"type":"function","function":{{"name":{name:?},"arguments":{arguments:?}}}}}]}}"#
    ))
}

fn fin(reason: &str) -> String {
    data(&format!(
        r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":{reason:?}}}]}}"#
    ))
}

fn done() -> String {
    data("[DONE]")
}

fn say(text: &str) -> Reply {
    sse(&[t(text), fin("stop"), done()])
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
struct Played {
    /// What was shown, attempts marked by `|`, thoughts by `~`.
    shown: String,
    requests: usize,
    pauses: Vec<Duration>,
    took: Duration,
    /// Calls aborted.
    aborts: usize,
    result: Result<Answer, ModelFault>,
}

fn endpoint() -> Endpoint {
    let mut provider = provider("p", "http://h/v1");
    provider.idle_timeout = Duration::from_secs(5);
    Endpoint::new(&provider, &Model::default(), None)
}

fn run_of(endpoint: &Endpoint) -> ModelRun {
    let messages = [ChatMessage::user("hi")];
    ModelRun::http(
        Instant::ZERO,
        endpoint,
        &messages,
        &[],
        &Limits::default(),
        3,
    )
}

/// Plays `replies`, their bodies cut into pieces of `piece` bytes.
fn play_pieces(endpoint: &Endpoint, replies: &[Reply], piece: usize) -> Played {
    let mut run = run_of(endpoint);
    let mut replies: VecDeque<Reply> = replies.iter().cloned().collect();
    let mut now = Instant::ZERO;
    let mut news: VecDeque<(Instant, News<'static>)> = VecDeque::new();
    let mut out = Played {
        shown: String::new(),
        requests: 0,
        pauses: Vec::new(),
        took: Duration::ZERO,
        aborts: 0,
        result: Err(ModelFault::new(FaultKind::Garbage, "no end")),
    };
    for _ in 0..100_000 {
        while let Some(event) = run.next_event(now) {
            match event {
                ModelEvent::Start(Call::Http(_)) => {
                    out.requests += 1;
                    let reply = replies.pop_front().expect("a reply for each request");
                    news = answer(now, &reply, piece);
                }
                ModelEvent::Start(other) => panic!("{other:?}"),
                ModelEvent::Abort => {
                    out.aborts += 1;
                    news.clear();
                }
                ModelEvent::Attempt => out.shown.push('|'),
                ModelEvent::Text(text) => out.shown.push_str(&text),
                ModelEvent::Thought(text) => {
                    out.shown.push('~');
                    out.shown.push_str(&text);
                }
                ModelEvent::Retrying { after, .. } => out.pauses.push(after),
                ModelEvent::Finished(answer) => out.result = Ok(answer),
                ModelEvent::Failed(fault) => out.result = Err(fault),
            }
        }
        let deadline = run.deadline();
        assert!(
            deadline.is_none_or(|deadline| deadline.at > now),
            "a served deadline moves"
        );
        match (news.front(), deadline) {
            (Some((at, _)), deadline) if deadline.is_none_or(|deadline| *at <= deadline.at) => {
                let (at, news) = news.pop_front().expect("it is in front");
                now = now.max(at);
                run.handle_news(now, &news);
            }
            (_, Some(deadline)) => {
                now = deadline.at;
                run.handle_timeout(now);
            }
            (_, None) => break,
        }
    }
    out.took = now.elapsed();
    out
}

fn answer(now: Instant, reply: &Reply, piece: usize) -> VecDeque<(Instant, News<'static>)> {
    let mut at = now;
    let mut news = VecDeque::new();
    let opened = News::Opened(Opened {
        status: reply.status,
        headers: reply.headers.clone(),
    });
    let fault = |kind, text: &str| News::Failed(IoFault::new(kind, text));
    match reply.end {
        End::Silent => return news,
        End::Refused(kind) => {
            news.push_back((at, fault(kind, "no connection")));
            return news;
        }
        End::Comments(every, times) => {
            news.push_back((at, opened));
            for _ in 0..times {
                at = at.plus(every);
                news.push_back((at, bytes(b": keep-alive\n\n")));
            }
        }
        End::Close | End::Cut | End::Hang => news.push_back((at, opened)),
    }
    for piece in reply.body.as_bytes().chunks(piece) {
        news.push_back((at, bytes(piece)));
    }
    match reply.end {
        End::Cut => news.push_back((at, fault(IoKind::Unreachable, "connection reset"))),
        End::Close | End::Comments(..) => news.push_back((at, News::Done(Outcome::Ended))),
        End::Hang | End::Silent | End::Refused(_) => {}
    }
    news
}

fn bytes(bytes: &[u8]) -> News<'static> {
    News::Bytes {
        stream: Stream::Out,
        bytes: Vec::leak(bytes.to_vec()),
    }
}

fn play(replies: &[Reply]) -> Played {
    play_at(&endpoint(), replies)
}

fn play_at(endpoint: &Endpoint, replies: &[Reply]) -> Played {
    let whole = play_pieces(endpoint, replies, usize::MAX);
    for piece in [1, 7, 64] {
        assert_eq!(
            play_pieces(endpoint, replies, piece),
            whole,
            "pieces of {piece}"
        );
    }
    whole
}

/// One request, and an answer that ends by `finish` after showing `shown`.
fn check(reply: Reply, shown: &str, finish: FinishReason) -> Answer {
    let out = play(&[reply]);
    assert_eq!(out.shown, shown);
    assert_eq!(out.requests, 1);
    let answer = out.result.expect("an answer");
    assert_eq!(answer.finish, finish);
    answer
}

fn check_fault(reply: Reply, kind: FaultKind, told: &str) {
    let out = play(&[reply]);
    assert_eq!(out.requests, 1, "{told}");
    let fault = out.result.expect_err("a fault");
    assert_eq!(fault.kind, kind, "{fault}");
    assert!(fault.message.contains(told), "{fault} should tell {told}");
}

#[test]
fn keep_alive_comments_are_no_data() {
    let comments = String::from(": keep-alive\n\n: keep-alive\n\n: keep-alive\n\n:\n\n");
    let parts = [
        comments,
        t("a"),
        ": x\n".into(),
        t("b"),
        fin("stop"),
        done(),
    ];
    check(sse(&parts), "|ab", FinishReason::Stop);
}

#[test]
fn a_field_needs_no_space_and_an_event_no_single_line() {
    let chunk = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let (begin, end) = chunk.split_at(12);
    let parts = [
        format!("data:{chunk}\n\n"),
        format!("data:  {chunk}\n\n"),
        format!("data: {begin}\ndata: {end}\r\n\r\n"),
        "data:[DONE]\n\n".into(),
    ];
    let out = play(&[sse(&parts).end(End::Hang)]);
    assert_eq!(out.shown, "|aaa");
    assert!(out.result.is_ok());
    // The end mark ends it: the connection gets a moment to end by itself, no more.
    assert_eq!(out.aborts, 1);
    assert!(out.took <= Duration::from_millis(100), "{:?}", out.took);
}

#[test]
fn calls_that_share_an_index_stay_apart() {
    let (a, b) = (r#"{"path":"a.txt"}"#, r#"{"path":"b.txt"}"#);
    let parts = [
        call(0, "a", "read", a),
        call(0, "b", "read", b),
        fin("tool_calls"),
        done(),
    ];
    let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
    let got: Vec<_> = answer
        .calls
        .iter()
        .map(|c| (&*c.id, &*c.arguments))
        .collect();
    assert_eq!(got, [("a", a), ("b", b)]);
}

#[test]
fn call_pieces_without_index_join_the_latest_call() {
    let parts = [
        delta(r#"{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"pa"}}]}"#),
        delta(r#"{"tool_calls":[{"index":null,"function":{"arguments":"th\":\"x\"}"}}]}"#),
        delta(r#"{"tool_calls":[{"id":"b","function":{"name":"read","arguments":{"path": 1}}}]}"#),
        fin("tool_calls"),
        done(),
    ];
    let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
    let got: Vec<_> = answer
        .calls
        .iter()
        .map(|c| (&*c.id, &*c.arguments))
        .collect();
    assert_eq!(got, [("a", r#"{"path":"x"}"#), ("b", r#"{"path": 1}"#)]);
}

#[test]
fn empty_arguments_are_an_empty_object() {
    let parts = [call(0, "c1", "now", ""), fin("tool_calls"), done()];
    let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
    assert_eq!(
        (&*answer.calls[0].arguments, &answer.calls[0].fault),
        ("{}", &None)
    );
}

#[test]
fn arguments_that_are_cut_have_a_fault_and_do_not_poison_the_history() {
    for broken in [r#"{"path":"n.txt","content":"abc"#, "{path: 'a'"] {
        let parts = [call(0, "c1", "write", broken), fin("tool_calls"), done()];
        let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
        let call = &answer.calls[0];
        assert!(call.fault.is_some());
        assert_eq!((&*call.arguments, call.history_arguments()), (broken, "{}"));
    }
}

#[test]
fn only_a_finish_reason_or_the_end_mark_ends_an_answer() {
    // A stream that ends before that is made again, and never taken for an answer.
    let cut = sse(&[t("par")]);
    let out = play(&[cut.clone(), cut.clone().end(End::Cut), cut]);
    assert_eq!((&*out.shown, out.requests), ("|par|par|par", 3));
    let fault = out.result.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Transient);
    assert_eq!(
        fault.message,
        "the stream of p ended without a finish reason (after 2 repeats)"
    );

    check(sse(&[t("full"), done()]), "|full", FinishReason::Stop);
    check(sse(&[t("full"), fin("stop")]), "|full", FinishReason::Stop);
    check(
        sse(&[t("full"), fin("stop")]).end(End::Cut),
        "|full",
        FinishReason::Stop,
    );

    let whole_call = sse(&[call(0, "c", "read", "{}")]).end(End::Cut);
    let out = play(&[whole_call, say("k")]);
    assert_eq!((&*out.shown, out.requests), ("||k", 2));
    assert!(out.result.unwrap().calls.is_empty());
}

#[test]
fn text_behind_a_finish_reason_is_shown_too() {
    check(
        sse(&[t("a"), fin("stop"), t("b")]),
        "|ab",
        FinishReason::Stop,
    );
}

#[test]
fn a_finish_reason_without_the_end_mark_waits_for_usage_only_a_moment() {
    let usage = data(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#);
    let out = play(&[sse(&[t("a"), fin("length"), usage]).end(End::Hang)]);
    let answer = out.result.unwrap();
    assert_eq!(
        (answer.finish, answer.usage.unwrap().prompt),
        (FinishReason::Length, 7)
    );
    assert_eq!((out.took, out.aborts), (Duration::from_secs(2), 1));
}

#[test]
fn chunks_without_choices_do_no_harm() {
    let parts = [
        t("a"),
        fin("stop"),
        data(r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#),
        data(r#"{"choices":null,"usage":null}"#),
        data("{}"),
        done(),
    ];
    let answer = check(sse(&parts), "|a", FinishReason::Stop);
    let usage = answer.usage.unwrap();
    assert_eq!((usage.prompt, usage.completion), (5, 2));
}

#[test]
fn a_request_that_is_refused_for_good_is_sent_once() {
    for status in [400, 402, 403, 404, 422] {
        let body = r#"{"error":{"message":"not like this"}}"#;
        check_fault(json(status, body), FaultKind::Permanent, "not like this");
    }
    check_fault(json(401, "{}"), FaultKind::Auth, "p answered 401");
    let long = r#"{"error":{"message":"maximum context length is 8 tokens"}}"#;
    check_fault(json(400, long), FaultKind::ContextOverflow, "8 tokens");
    check_fault(json(302, ""), FaultKind::Permanent, "p answered 302");
}

#[test]
fn what_may_pass_later_is_sent_again_after_a_pause() {
    let busy = json(429, r#"{"error":{"message":"slow"}}"#).header("retry-after", "7");
    let down = Reply {
        end: End::Refused(IoKind::Unreachable),
        ..json(0, "")
    };
    let out = play(&[busy, down, json(503, ""), say("k")]);
    assert_eq!((&*out.shown, out.requests), ("||||k", 4));
    assert_eq!(out.pauses[0], Duration::from_secs(7));
    assert!(
        (1000..1250).contains(&out.pauses[1].as_millis()),
        "{:?}",
        out.pauses
    );
    assert!(
        (2000..2250).contains(&out.pauses[2].as_millis()),
        "{:?}",
        out.pauses
    );
    assert!(out.result.is_ok());

    let out = play(&[(); 11].map(|()| json(500, "boom")));
    assert_eq!(
        out.result.unwrap_err().message,
        "p answered 500: boom (after 10 repeats)"
    );
}

#[test]
fn what_cannot_pass_is_not_sent_again() {
    let wrong = Reply {
        end: End::Refused(IoKind::Unsupported),
        ..json(0, "")
    };
    check_fault(
        wrong,
        FaultKind::Permanent,
        "p cannot be reached: no connection",
    );
    let mut endpoint = endpoint();
    endpoint.missing_key = Some("P_KEY".into());
    let out = play_at(&endpoint, &[]);
    assert_eq!(
        (out.requests, out.result.unwrap_err().kind),
        (0, FaultKind::Auth)
    );
}

#[test]
fn silence_is_a_timeout_and_comments_are_life() {
    let timed_out = |out: Played| {
        assert_eq!((out.requests, out.aborts), (2, 2));
        let fault = out.result.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout);
        assert!(fault.message.contains("5 s (idle timeout)"), "{fault}");
    };
    let head_only = sse(&[]).end(End::Hang);
    timed_out(play(&[head_only.clone(), head_only]));
    let nothing = sse(&[]).end(End::Silent);
    timed_out(play(&[nothing.clone(), nothing]));
    let some = sse(&[t("a")]).end(End::Hang);
    let out = play(&[some.clone(), some]);
    assert_eq!(out.shown, "|a|a");
    timed_out(out);

    let alive = say("late").end(End::Comments(Duration::from_secs(4), 5));
    let out = play(&[alive]);
    assert_eq!((&*out.shown, out.took), ("|late", Duration::from_secs(20)));
    assert!(out.result.is_ok());
}

#[test]
fn the_same_call_in_one_answer_is_one_call() {
    let one = call(0, "c1", "shell", r#"{"command":"echo x >> log"}"#);
    let parts = [one.clone(), one, fin("tool_calls"), done()];
    let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
    assert_eq!(answer.calls.len(), 1);
}

#[test]
fn unknown_and_empty_names_and_ids_are_passed_on() {
    let parts = [
        call(0, "", "no_such_tool", "{}"),
        call(1, "", "", "{}"),
        fin("stop"),
        done(),
    ];
    let answer = check(sse(&parts), "|", FinishReason::ToolCalls);
    let got: Vec<_> = answer.calls.iter().map(|c| (&*c.id, &*c.name)).collect();
    assert_eq!(got, [("", "no_such_tool"), ("", "")]);
}

#[test]
fn empty_finish_reasons_and_null_members_mean_nothing() {
    let odd = data(
        r#"{"choices":[{"index":0,"finish_reason":"","delta":{"role":"","content":null,"tool_calls":null}}],"usage":null,"error":null}"#,
    );
    let parts = [
        odd.clone(),
        odd.clone(),
        t("a"),
        odd.clone(),
        t("b"),
        fin("stop"),
        odd,
        done(),
    ];
    check(sse(&parts), "|ab", FinishReason::Stop);
}

#[test]
fn a_plain_json_answer_counts_and_what_is_no_answer_is_named() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"h"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    for reply in [
        json(200, whole),
        json(200, &format!("\n\n {whole}\n")),
        sse(&[whole.into()]),
    ] {
        let answer = check(reply, "|~ha", FinishReason::Stop);
        assert_eq!(answer.usage.unwrap().prompt, 3);
    }
    check_fault(
        json(200, ""),
        FaultKind::Garbage,
        "answered 200 with an empty body",
    );
    check_fault(
        http(200, "text/plain", "\n \n"),
        FaultKind::Garbage,
        "an empty body",
    );
    let page = "\n<!doctype html><title>Sign in</title><p>…";
    check_fault(
        http(200, "text/html", page),
        FaultKind::Garbage,
        "an HTML page (Sign in)",
    );
    check_fault(
        http(200, "text/plain", "It works!"),
        FaultKind::Garbage,
        "text/plain",
    );
    check_fault(
        json(200, r#"{"ok":true}"#),
        FaultKind::Garbage,
        "holds no answer",
    );
    check_fault(
        json(200, r#"{"choices":[{"#),
        FaultKind::Garbage,
        "no chunk",
    );
    check_fault(
        sse(&[data("oops")]),
        FaultKind::Garbage,
        "no chunk of an answer",
    );
}

#[test]
fn errors_inside_an_answer_are_told_apart() {
    let error = |code: &str| {
        data(&format!(
            r#"{{"error":{{"message":"sorry","code":{code}}}}}"#
        ))
    };
    check_fault(
        sse(&[t("a"), error("400")]),
        FaultKind::Permanent,
        "p reported an error: sorry",
    );
    check_fault(
        sse(&[error("\"context_length_exceeded\"")]),
        FaultKind::ContextOverflow,
        "sorry",
    );
    let out = play(&[
        sse(&[t("a"), error("502")]),
        sse(&[error("\"busy\"")]),
        say("k"),
    ]);
    assert_eq!((&*out.shown, out.requests), ("|a||k", 3));
    let gone = sse(&[t("a"), fin("insufficient_system_resource"), done()]);
    let out = play(&[gone, say("k")]);
    assert_eq!(out.shown, "|a|k");
}

#[test]
fn an_unknown_finish_reason_is_a_fault() {
    let parts = [t("a"), fin("bored"), done()];
    check_fault(
        sse(&parts),
        FaultKind::Garbage,
        "unknown finish reason \"bored\"",
    );
    check_fault(
        sse(&[fin("tool_calls"), done()]),
        FaultKind::Garbage,
        "called none",
    );
    let filtered = sse(&[t("a"), fin("content_filter"), done()]);
    check(filtered, "|a", FinishReason::ContentFilter);
}

#[test]
fn thoughts_and_text_come_apart() {
    let both = delta(r#"{"reasoning":"hm","reasoning_content":"hm","content":"a"}"#);
    let parts = delta(r#"{"content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}"#);
    let answer = check(
        sse(&[r("so"), both, parts, done()]),
        "|~so~hmabc",
        FinishReason::Stop,
    );
    assert_eq!((&*answer.reasoning, &*answer.text), ("sohm", "abc"));
}

#[test]
fn an_answer_and_an_event_have_a_longest_length() {
    let long = "x".repeat(300_000);
    let parts: Vec<String> = (0..60).map(|_| t(&long)).collect();
    let out = play_pieces(&endpoint(), &[sse(&parts)], usize::MAX);
    assert!(
        out.result
            .unwrap_err()
            .message
            .contains("longer than 16777216 bytes")
    );
    let long = t(&"x".repeat(2 << 20));
    let out = play_pieces(&endpoint(), &[sse(&[long])], 4096);
    assert!(out.result.unwrap_err().message.contains("cannot be read"));
}

/// The texts of a run whose bytes come at these milliseconds.
fn timed(bytes_at: &[(u64, String)]) -> Vec<(u64, String)> {
    let mut run = run_of(&endpoint());
    let at = |ms| Instant::since_start(Duration::from_millis(ms));
    let head = sse(&[]);
    let mut shown = Vec::new();
    let mut news = VecDeque::from([(
        0,
        News::Opened(Opened {
            status: head.status,
            headers: head.headers,
        }),
    )]);
    news.extend(
        bytes_at
            .iter()
            .map(|(ms, text)| (*ms, bytes(text.as_bytes()))),
    );
    let mut now = 0;
    loop {
        while let Some(event) = run.next_event(at(now)) {
            if let ModelEvent::Text(text) | ModelEvent::Thought(text) = event {
                shown.push((now, String::from(&*text)));
            }
        }
        let due = run.deadline().expect("a deadline").at.elapsed().as_millis() as u64;
        match news.front() {
            Some((ms, next)) if *ms <= due => {
                now = *ms;
                run.handle_news(at(now), next);
                news.pop_front();
            }
            _ if due > 1000 => return shown,
            _ => {
                now = due;
                run.handle_timeout(at(now));
            }
        }
    }
}

#[test]
fn text_is_joined_by_time_and_not_by_reads() {
    let own = |ms: u64, text: &str| (ms, String::from(text));
    // The first at once, then what came in 16 ms, whatever the reads were.
    assert_eq!(
        timed(&[
            (0, t("a")),
            (1, t("b")),
            (2, t("c")),
            (17, t("d")),
            (18, t("e") + &t("f"))
        ]),
        [own(0, "a"), own(17, "bc"), own(33, "def")]
    );
    // What is no text sends it out; so does thinking after saying.
    assert_eq!(
        timed(&[
            (0, t("a") + &t("b") + &call(0, "x", "y", "{}")),
            (1, t("c")),
            (2, r("d"))
        ]),
        [own(0, "a"), own(0, "b"), own(2, "c"), own(18, "d")]
    );
    // So does a full frame.
    let long = "x".repeat(5000);
    assert_eq!(
        timed(&[(0, t("a") + &t("b") + &t(&long))]),
        [own(0, "a"), own(0, &format!("b{long}"))]
    );
}

#[test]
fn a_parent_that_does_not_drain_bounds_what_is_taken() {
    let limits = Limits::default();
    let mut run = run_of(&endpoint());
    let now = Instant::ZERO;
    while run.next_event(now).is_some() {}
    let head = sse(&[]);
    run.handle_news(
        now,
        &News::Opened(Opened {
            status: 200,
            headers: head.headers,
        }),
    );
    while run.next_event(now).is_some() {}
    assert_eq!(run.room(), limits.call_window);
    let text = t("x").repeat(limits.call_window / t("x").len());
    run.handle_news(now, &bytes(text.as_bytes()));
    assert!(run.room() < 100);
    // Its silence is not the model's: nothing times out while it is slow.
    let late = now.plus(Duration::from_secs(900));
    run.handle_timeout(late);
    assert_eq!(run.deadline(), None);
    run.held_until(late);
    let mut shown = 0;
    for now in [late, late.plus(limits.coalesce)] {
        while let Some(event) = run.next_event(now) {
            let ModelEvent::Text(text) = event else {
                panic!("{event:?}");
            };
            shown += text.len();
        }
    }
    assert_eq!(shown, text.len() / t("x").len());
    assert_eq!(run.room(), limits.call_window);
}

#[test]
fn a_cancelled_run_aborts_its_call_and_keeps_what_was_shown() {
    let mut run = run_of(&endpoint());
    let now = Instant::ZERO;
    while run.next_event(now).is_some() {}
    let head = sse(&[]);
    run.handle_news(
        now,
        &News::Opened(Opened {
            status: 200,
            headers: head.headers,
        }),
    );
    run.handle_news(now, &bytes((t("shown") + &t("held")).as_bytes()));
    assert_eq!(run.next_event(now), Some(ModelEvent::Text("shown".into())));
    assert_eq!(run.next_event(now), None);
    run.cancel();
    assert_eq!(run.next_event(now), Some(ModelEvent::Abort));
    assert_eq!(run.next_event(now), None);
    run.handle_news(now, &News::Done(Outcome::Ended));
    assert_eq!(
        (run.next_event(now), run.deadline(), run.room()),
        (None, None, 0)
    );
    assert_eq!(run.partial_text(), "shown");
}

proptest::proptest! {
    /// Whatever a provider sends, in whatever pieces: one end, the same for any pieces.
    #[test]
    fn any_stream_ends_once_and_the_same_however_it_is_cut(
        parts in proptest::collection::vec(0..ODD.len() + 8, 0..12),
        cut in proptest::option::of(0..40_usize),
        broken: bool,
        piece in 1..50_usize,
    ) {
        let parts: Vec<String> = parts.into_iter().map(odd).collect();
        let mut body = parts.concat().into_bytes();
        body.truncate(body.len() - cut.unwrap_or(0).min(body.len()));
        let mut reply = sse(&[]).end(if broken { End::Cut } else { End::Close });
        reply.body = String::from_utf8_lossy(&body).into_owned();
        let mut endpoint = endpoint();
        endpoint.max_retries = 0;
        let whole = play_pieces(&endpoint, core::slice::from_ref(&reply), usize::MAX);
        let cut = play_pieces(&endpoint, &[reply], piece);
        proptest::prop_assert_eq!(&whole, &cut);
        if let Ok(answer) = whole.result {
            proptest::prop_assert_eq!(
                whole.shown.replace(['|', '~'], "").len(),
                answer.text.len() + answer.reasoning.len()
            );
        }
    }
}

/// Pieces of streams as nobody should send them.
const ODD: [&str; 16] = [
    ": c\n\n",
    "\u{feff}",
    "data:\n\n",
    "event: error\ndata: {\"error\":\"x\"}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":7,\"tool_calls\":{}}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[null,{}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"message\":{\"content\":\"whole\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":-1}}\n\n",
    "data: []\n\n",
    "{\"choices\":",
    "<p>",
    "\r",
];

fn odd(which: usize) -> String {
    match which {
        0 | 1 => t("text"),
        2 => r("thought"),
        3 => call(0, "a", "read", "{}"),
        4 => call(0, "b", "read", "{"),
        5 => fin("stop"),
        6 => fin("tool_calls"),
        7 => done(),
        odd => ODD[odd - 8].into(),
    }
}

mod scripts {
    use alloc::string::ToString;

    use super::*;

    /// What the answers of the prompts show: attempts `|`, thoughts `~`, calls `!`, faults `#`,
    /// and the finish reasons.
    fn played(cursor: &mut ScriptCursor, prompt: &str, answers: usize) -> Vec<String> {
        cursor.begin_turn([prompt].into_iter());
        (0..answers).map(|_| one(cursor).0).collect()
    }

    fn one(cursor: &mut ScriptCursor) -> (String, Duration, usize) {
        let limits = Limits::default();
        let mut now = Instant::ZERO;
        let mut run = ModelRun::script(now, cursor.next_answer(), &limits);
        let (mut shown, mut events) = (String::new(), 0);
        loop {
            let Some(event) = run.next_event(now) else {
                let Some(deadline) = run.deadline() else {
                    return (shown, now.elapsed(), events);
                };
                assert!(deadline.at > now);
                now = deadline.at;
                run.handle_timeout(now);
                continue;
            };
            events += 1;
            match event {
                ModelEvent::Start(_) | ModelEvent::Abort => panic!("a script needs no call"),
                ModelEvent::Attempt => shown.push('|'),
                ModelEvent::Text(text) => shown.push_str(&text),
                ModelEvent::Thought(text) => shown.push_str(&format!("~{}", &*text)),
                ModelEvent::Retrying { .. } => {}
                ModelEvent::Finished(answer) => {
                    for call in answer.calls {
                        shown.push_str(&format!("!{}:{}{}", call.id, call.name, call.arguments));
                    }
                    shown.push_str(&format!(" {:?}", answer.finish));
                }
                ModelEvent::Failed(fault) => shown.push_str(&format!("#{:?}", fault.kind)),
            }
        }
    }

    fn cursor(script: &str) -> ScriptCursor {
        Script::parse(script).unwrap().answers(&Limits::default())
    }

    #[test]
    fn every_step_is_played() {
        let script = r#"
{"thought":"hm"}
{"text":"hé"}
{"chunk":2}
{"text":"aéb"}
{"tool":"read_file","args":{"path":"a"},"id":"t1"}
{"tool":"now"}
{"tool":"bad","args":"{path"}
{"usage":{"prompt_tokens":3,"completion_tokens":4}}
{"finish":"tool_calls"}
{"text":"cut"}
{"finish":"length"}
{"finish":"content_filter"}
{"sleep_ms":50}
{"repeat":{"chunks":3,"size":2}}
{"error":{"status":400,"message":"no"}}
{"text":"last"}"#;
        let got = played(&mut cursor(script), "x", 6);
        assert_eq!(
            got,
            [
                "|~hmhéaéb!t1:read_file{\"path\":\"a\"}!script_7:now{}!script_8:bad{path ToolCalls",
                "|cut Length",
                "| ContentFilter",
                "|ababab#Permanent",
                "|last Stop",
                "|script ended Stop",
            ]
        );
    }

    #[test]
    fn a_text_comes_whole_or_in_pieces_of_whole_characters() {
        let mut cursor = cursor(
            "{\"text\":\"hello\"}\n{\"finish\":\"stop\"}\n{\"chunk\":1}\n{\"text\":\"a😀b\"}",
        );
        cursor.begin_turn(["x"].into_iter());
        // Attempt, text, end; attempt, three texts, end.
        assert_eq!([one(&mut cursor).2, one(&mut cursor).2], [3, 5]);
    }

    #[test]
    fn a_prompt_takes_the_first_branch_it_names_from_its_beginning() {
        let script = r#"{"text":"p1"}
{"finish":"stop"}
{"text":"p2"}
{"when":{"prompt_contains":"red"}}
{"text":"r1"}
{"finish":"stop"}
{"text":"r2"}
{"when":{"prompt_contains":"re"}}
{"text":"other"}"#;
        let mut cursor = cursor(script);
        assert_eq!(played(&mut cursor, "x", 1), ["|p1 Stop"]);
        assert_eq!(
            played(&mut cursor, "a red one", 3),
            ["|r1 Stop", "|r2 Stop", "|script ended Stop"]
        );
        assert_eq!(played(&mut cursor, "red", 1), ["|r1 Stop"]);
        assert_eq!(played(&mut cursor, "green", 1), ["|other Stop"]);
        assert_eq!(
            played(&mut cursor, "x", 2),
            ["|p2 Stop", "|script ended Stop"]
        );
    }

    #[test]
    fn errors_and_cuts_are_repeated_with_the_next_answer() {
        let script = r#"{"error":{"status":429,"retry_after":1}}
{"text":"par"}
{"cut":true}
{"text":"k"}
{"finish":"stop"}
{"hang":true}
{"text":"n"}"#;
        let mut cursor = cursor(script);
        cursor.begin_turn(["x"].into_iter());
        let (shown, took, _) = one(&mut cursor);
        assert_eq!(shown, "||par|k Stop");
        assert!(
            took >= Duration::from_secs(2) && took < Duration::from_secs(3),
            "{took:?}"
        );
        assert_eq!(
            one(&mut cursor),
            ("|#Timeout".to_string(), Duration::from_secs(300), 2)
        );
        assert_eq!(one(&mut cursor).0, "|n Stop");
    }

    #[test]
    fn repeats_that_never_came_are_not_used_up() {
        let mut cursor = cursor("{\"error\":{\"status\":503}}\n{\"text\":\"k\"}");
        cursor.begin_turn(["x"].into_iter());
        let limits = Limits::default();
        let mut run = ModelRun::script(Instant::ZERO, cursor.next_answer(), &limits);
        assert_eq!(run.next_event(Instant::ZERO), Some(ModelEvent::Attempt));
        assert!(matches!(
            run.next_event(Instant::ZERO),
            Some(ModelEvent::Retrying { .. })
        ));
        run.cancel();
        assert_eq!(
            (run.next_event(Instant::ZERO), run.deadline()),
            (None, None)
        );
        cursor.rewind(run.script_position().unwrap());
        assert_eq!(one(&mut cursor).0, "|k Stop");
    }

    #[test]
    fn a_plan_streams_what_the_prompt_says_for_every_prompt() {
        let mut cursor = cursor(r#"{"plan":"prompt"}"#);
        for (prompt, shown) in [
            (r#"{"chunks":2,"size":3}"#, "|abcabc Stop"),
            (
                r#"{"chunks":1,"size":10,"text":"mixed"}"#,
                "|said \"so\"\n Stop",
            ),
            ("{}", "| Stop"),
            ("hello", "| Stop"),
            (
                r#"{"chunks":9,"size":999999999}"#,
                "|chunks of 999999999 bytes were asked for; 33554432 at most Stop",
            ),
        ] {
            assert_eq!(played(&mut cursor, prompt, 1), [shown], "{prompt}");
        }
        cursor.begin_turn(["see", "{", r#" {"chunks":3,"size":1,"pace_us":1500}"#].into_iter());
        let (shown, took, _) = one(&mut cursor);
        assert_eq!((&*shown, took), ("|aaa Stop", Duration::from_micros(4500)));
    }

    #[test]
    fn a_plan_makes_its_text_once_and_waits_for_its_parent() {
        let mut cursor = cursor(r#"{"plan":"prompt"}"#);
        let limits = Limits::default();
        let mut texts = Vec::new();
        for _ in 0..2 {
            cursor.begin_turn([r#"{"chunks":200000,"size":32}"#].into_iter());
            let mut run = ModelRun::script(Instant::ZERO, cursor.next_answer(), &limits);
            assert_eq!(run.next_event(Instant::ZERO), Some(ModelEvent::Attempt));
            let mut count = 0;
            loop {
                match run.next_event(Instant::ZERO) {
                    Some(ModelEvent::Text(Text::Shared(text))) => {
                        count += 1;
                        texts.push(text.as_ptr());
                    }
                    Some(ModelEvent::Finished(answer)) => {
                        assert_eq!(answer.text.len(), limits.load_kept);
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(count, 200_000);
        }
        texts.dedup();
        assert_eq!(texts.len(), 1);

        // A parent that refuses sees no deadline, and nothing is lost or skipped.
        cursor.begin_turn([r#"{"chunks":2,"size":1,"pace_us":1000}"#].into_iter());
        let mut run = ModelRun::script(Instant::ZERO, cursor.next_answer(), &limits);
        assert_eq!(run.next_event(Instant::ZERO), Some(ModelEvent::Attempt));
        assert_eq!(
            run.next_event(Instant::ZERO),
            Some(ModelEvent::Text("a".into()))
        );
        assert_eq!(run.next_event(Instant::ZERO), None);
        let late = Instant::since_start(Duration::from_secs(9));
        run.handle_timeout(late);
        assert_eq!(run.deadline(), None);
        assert_eq!(run.next_event(late), Some(ModelEvent::Text("a".into())));
        assert_eq!(run.next_event(late), None);
        run.cancel();
        assert_eq!((run.next_event(late), run.partial_text()), (None, "aa"));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (script, line, told) in [
            ("{\"text\":\"a\"}\n\nnot json", 3, "expected"),
            ("{\"txt\":\"a\"}", 1, "unknown field `txt`"),
            ("{}", 1, "no step"),
            (
                "{\"text\":\"a\",\"thought\":\"b\"}",
                1,
                "more than one step",
            ),
            (
                "{\"text\":\"a\",\"id\":\"b\"}",
                1,
                "args and id belong to a tool",
            ),
            ("{\"finish\":\"bored\"}", 1, "unknown variant `bored`"),
            ("{\"chunk\":0}", 1, "at least 1"),
            ("{\"cut\":false}", 1, "only true"),
            ("{\"hang\":false}", 1, "only true"),
            ("{\"error\":{\"status\":200}}", 1, "no status of a refusal"),
            ("{\"error\":{\"state\":500}}", 1, "unknown field"),
            ("{\"usage\":{}}", 1, "prompt_tokens"),
            ("{\"plan\":\"file\"}", 1, "unknown variant"),
            ("{\"when\":{}}", 1, "prompt_contains"),
            ("[1]", 1, ""),
        ] {
            let error = Script::parse(script).unwrap_err();
            assert_eq!(error.line, line, "{script}");
            assert!(error.to_string().starts_with(&format!("line {line}: ")));
            assert!(error.reason.contains(told), "{script}: {error}");
        }
        assert!(Script::parse("\u{feff}{\"text\":\"a\"}\r\n\r\n").is_ok());
    }
}
