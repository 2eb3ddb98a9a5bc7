//! A server behind Streamable HTTP, and one behind the older SSE.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::world::{Asked, ECHO, HELLO, World, http, sse};
use crate::call::{Call, HeaderValue, HttpRequest, News};
use crate::error::{IoFault, IoKind};
use crate::ids::CallId;

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");
const TEXT: &str = r#"{"content":[{"type":"text","text":"hé"}]}"#;

impl World {
    /// Requests that run, oldest first.
    fn open(&self) -> Vec<(CallId, &HttpRequest)> {
        self.running
            .iter()
            .filter_map(|(id, call)| {
                let Call::Http(request) = call else {
                    return None;
                };
                Some((*id, request))
            })
            .collect()
    }

    /// The request that runs and posts this method.
    fn post(&self, method: &str) -> (CallId, Asked, BTreeMap<String, String>) {
        for (id, request) in self.open() {
            if request.method == "POST" {
                let asked = Asked::read(core::str::from_utf8(&request.body).unwrap());
                if asked.method == method {
                    return (id, asked, headers(request));
                }
            }
        }
        panic!("no {method} is posted: {:?}", self.open());
    }

    fn get(&self) -> (CallId, BTreeMap<String, String>) {
        let open = self.open();
        let found = open.iter().find(|(_, request)| request.method == "GET");
        let (id, request) = found.expect("a GET runs");
        (*id, headers(request))
    }

    fn answer(&mut self, id: CallId, head: &[(&str, &str)], body: &str) {
        self.opened(id, 200, head);
        self.say(id, body);
        self.ended(id);
    }

    fn shake_http(&mut self, session: &str) {
        let (id, asked, _) = self.post("initialize");
        let session = ("mcp-session-id", session);
        self.answer(id, &[JSON, session], &asked.result(HELLO));
        let (id, ..) = self.post("notifications/initialized");
        self.opened(id, 202, &[]);
        self.ended(id);
        let (id, asked, _) = self.post("tools/list");
        self.answer(id, &[JSON], &asked.result(ECHO));
        assert_eq!(self.status(), ["ready"]);
    }
}

fn headers(request: &HttpRequest) -> BTreeMap<String, String> {
    let text = |value: &HeaderValue| match value {
        HeaderValue::Plain(text) => text.clone(),
        HeaderValue::Bearer(key) | HeaderValue::Hidden(key) => key.reveal().into(),
    };
    let pairs = request.headers.iter();
    pairs
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

fn ready() -> World {
    let mut world = World::new(Vec::from([http("http://h/mcp")]));
    world.shake_http("s1");
    world
}

#[test]
fn configured_headers_session_and_version_are_on_every_request() {
    let mut world = World::new(Vec::from([http("http://h/mcp")]));
    let (id, asked, found) = world.post("initialize");
    assert_eq!(found["x-key"], "very-secret");
    let session = ("mcp-session-id", "s1");
    world.answer(id, &[JSON, session], &asked.result(HELLO));
    for method in ["notifications/initialized", "tools/list"] {
        let (id, asked, found) = world.post(method);
        assert_eq!(found["x-key"], "very-secret", "{method}");
        assert_eq!(found["mcp-session-id"], "s1", "{method}");
        match method {
            "tools/list" => world.answer(id, &[JSON], &asked.result(ECHO)),
            _ => {
                world.opened(id, 202, &[]);
                world.ended(id);
            }
        }
    }
    assert_eq!(world.status(), ["ready"]);
    let (get, found) = world.get();
    assert_eq!(found["x-key"], "very-secret");
    assert_eq!(found["mcp-session-id"], "s1");
    assert_eq!(found["mcp-protocol-version"], "2025-11-25");
    world.opened(get, 405, &[]);
    world.ended(get);
    let call = world.call("web__echo", "{}");
    let (id, asked, found) = world.post("tools/call");
    assert_eq!(found["x-key"], "very-secret");
    assert_eq!(found["mcp-session-id"], "s1");
    assert!(found["accept"].contains("text/event-stream"));
    world.answer(id, &[JSON], &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hé"));
    world.with(crate::mcp::Hub::close);
    let open = world.open();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].1.method, "DELETE");
    assert_eq!(headers(open[0].1)["mcp-session-id"], "s1");
    assert_eq!(headers(open[0].1)["x-key"], "very-secret");
    assert!(!format!("{:?}", open[0].1).contains("very-secret"));
}

#[test]
fn an_answer_by_events_may_be_cut_anywhere() {
    let event = |asked: &Asked| format!("id: 1\nevent: message\ndata: {}\n\n", asked.result(TEXT));
    for cut in 0..120 {
        let mut world = ready();
        let call = world.call("web__echo", "{}");
        let (id, asked, _) = world.post("tools/call");
        world.opened(id, 200, &[EVENTS]);
        let text = event(&asked).into_bytes();
        let cut = cut.min(text.len());
        for bytes in [&text[..cut], &text[cut..]] {
            let stream = crate::call::Stream::Out;
            if !bytes.is_empty() {
                world.news(id, News::Bytes { stream, bytes });
            }
        }
        assert_eq!(world.only(call), Ok("hé"), "cut at {cut}");
        assert!(
            world.aborted.contains(&id),
            "a stream stays open behind its answer"
        );
    }
}

#[test]
fn a_stream_that_breaks_off_is_read_on_after_the_pause_it_asked_for() {
    let mut world = ready();
    let (listening, _) = world.get();
    world.opened(listening, 405, &[]);
    world.ended(listening);
    let call = world.call("web__echo", "{}");
    let (id, asked, _) = world.post("tools/call");
    world.opened(id, 200, &[EVENTS]);
    world.say(id, "id: e7\nretry: 500\ndata:\n\n");
    world.ended(id);
    world.pass(Duration::from_millis(499));
    assert!(world.open().is_empty());
    world.pass(Duration::from_millis(1));
    let (get, found) = world.get();
    assert_eq!(found["last-event-id"], "e7");
    world.opened(get, 200, &[EVENTS]);
    world.say(get, &format!("data: {}\n\n", asked.result(TEXT)));
    assert_eq!(world.only(call), Ok("hé"));
}

#[test]
fn a_stream_that_only_breaks_off_is_given_up() {
    let mut world = ready();
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 200, &[EVENTS]);
    world.say(id, "id: 1\ndata:\n\n");
    world.ended(id);
    for _ in 0..20 {
        world.pass(Duration::from_secs(30));
        for (id, _) in world
            .open()
            .iter()
            .map(|(id, it)| (*id, it.method))
            .collect::<Vec<_>>()
        {
            world.opened(id, 200, &[EVENTS]);
            world.ended(id);
        }
    }
    assert!(world.only(call).unwrap_err().contains("broke off"));
    assert!(world.started.len() < 30);
}

#[test]
fn a_session_that_the_server_forgot_is_begun_anew_once() {
    let mut world = ready();
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 404, &[]);
    world.ended(id);
    let (_, _, found) = world.post("initialize");
    assert!(!found.contains_key("mcp-session-id"));
    world.shake_http("s2");
    let (id, asked, found) = world.post("tools/call");
    assert_eq!(found["mcp-session-id"], "s2");
    world.answer(id, &[JSON], &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hé"));
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 404, &[]);
    world.ended(id);
    world.shake_http("s3");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 404, &[]);
    world.ended(id);
    assert!(world.only(call).is_err());
}

#[test]
fn refusals_say_what_can_be_done() {
    for (status, words) in [
        (401, "credentials"),
        (403, "not allowed"),
        (404, "nothing is at"),
        (500, "HTTP 500"),
    ] {
        let mut world = World::new(Vec::from([http("http://h/mcp")]));
        let (id, ..) = world.post("initialize");
        world.opened(id, status, &[]);
        world.say(id, "very-secret\n");
        world.ended(id);
        let found = world.hub.status().next().unwrap();
        assert_eq!((found.status, found.http_status), ("failed", Some(status)));
        let error = found.error.unwrap();
        assert!(
            error.contains(words) && !error.contains("very-secret"),
            "{error}"
        );
        assert!(world.running.is_empty());
    }
}

#[test]
fn what_is_no_answer_is_called_what_it_is() {
    let check = |status: u16, headers: &[(&str, &str)], body: &str, why: &str| {
        let mut world = World::new(Vec::from([http("http://h/mcp")]));
        let (id, ..) = world.post("initialize");
        world.opened(id, status, headers);
        world.say(id, body);
        world.ended(id);
        let error = world.hub.status().next().unwrap().error.unwrap_or_default();
        assert!(error.contains(why), "{why}: {error}");
    };
    check(
        405,
        &[],
        "",
        "HTTP 405; if it speaks the older transport, its `type` is sse",
    );
    check(
        200,
        &[JSON],
        "\u{1f}junk",
        "what it answered is no answer to this message",
    );
    check(200, &[JSON], "", "took the message and gave no answer");
    check(
        200,
        &[JSON, ("content-encoding", "gzip")],
        "\u{1f}",
        "something packed by gzip, which was not asked for",
    );
    // A stream that breaks off, and the rest of which nobody has.
    let mut world = ready();
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 200, &[EVENTS]);
    world.say(id, "id: 1\ndata:\n\n");
    world.ended(id);
    world.pass(Duration::from_secs(30));
    let rest = world.open().last().unwrap().0;
    world.opened(rest, 405, &[]);
    world.ended(rest);
    let why = world.only(call).unwrap_err();
    assert!(
        why.contains("broke off before the answer") && why.contains("HTTP 405"),
        "{why}"
    );
    // The older transport.
    let older = |status: u16, events: &str| {
        let mut world = World::new(Vec::from([sse("http://h:1/sse")]));
        let (stream, _) = world.get();
        world.opened(stream, status, &[EVENTS]);
        world.say(stream, events);
        if status != 200 {
            world.ended(stream);
        }
        world.pass(Duration::from_secs(10));
        String::from(world.hub.status().next().unwrap().error.unwrap())
    };
    for (status, events, why) in [
        (
            405,
            "",
            "HTTP 405; if it speaks Streamable HTTP, its `type` is http",
        ),
        (
            200,
            "",
            "within 10 s: its stream of events does not name the address",
        ),
        (
            200,
            "event: endpoint\ndata: ftp://h:1/m\n\n",
            "for messages to go to is no http address",
        ),
    ] {
        let error = older(status, events);
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let mut world = ready();
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 429, &[("retry-after", "3")]);
    world.ended(id);
    world.pass(Duration::from_secs(3));
    let (id, asked, _) = world.post("tools/call");
    world.answer(id, &[JSON], &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hé"));
}

#[test]
fn redirects_are_followed_on_the_same_host_only() {
    for (location, followed) in [
        ("/mcp/", true),
        ("http://h/other", true),
        ("http://evil/mcp", false),
        ("https://h/mcp", false),
    ] {
        let mut world = World::new(Vec::from([http("http://h/mcp")]));
        let (id, ..) = world.post("initialize");
        world.opened(id, 307, &[("location", location)]);
        world.ended(id);
        assert_eq!(!world.running.is_empty(), followed, "{location}");
        if !followed {
            assert_eq!(world.status(), ["failed"]);
        }
    }
}

#[test]
fn a_server_that_cannot_be_reached_fails_at_once_and_is_tried_again_at_its_next_use() {
    let mut world = ready();
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.news(
        id,
        News::Failed(IoFault::new(IoKind::Unreachable, "refused")),
    );
    assert!(world.only(call).unwrap_err().contains("refused"));
    assert_eq!(world.status(), ["idle"]);
    let call = world.call("web__echo", "{}");
    world.pass(Duration::from_secs(1));
    world.shake_http("s2");
    let (id, asked, _) = world.post("tools/call");
    world.answer(id, &[JSON], &asked.result(TEXT));
    assert_eq!(world.only(call), Ok("hé"));
}

#[test]
fn the_endpoint_of_the_older_transport_is_on_its_own_host() {
    for (endpoint, expected) in [
        (
            "/messages?sessionId=1",
            Some("http://h:1/messages?sessionId=1"),
        ),
        ("messages?x=1", Some("http://h:1/base/messages?x=1")),
        ("http://h:1/m", Some("http://h:1/m")),
        ("http://other/m", None),
    ] {
        let mut world = World::new(Vec::from([sse("http://h:1/base/sse")]));
        let (stream, found) = world.get();
        assert_eq!(found["x-key"], "very-secret");
        world.opened(stream, 200, &[EVENTS]);
        world.say(stream, &format!("event: endpoint\ndata: {endpoint}\n\n"));
        let Some(expected) = expected else {
            assert_eq!(world.status(), ["failed"]);
            assert!(world.running.is_empty());
            continue;
        };
        let (id, asked, found) = world.post("initialize");
        assert_eq!(found["x-key"], "very-secret");
        let urls: Vec<_> = world.open().iter().map(|(_, it)| it.url.clone()).collect();
        assert_eq!(urls[1], expected);
        world.opened(id, 202, &[]);
        world.ended(id);
        world.say(
            stream,
            &format!("event: message\ndata: {}\n\n", asked.result(HELLO)),
        );
        let (_, asked, _) = world.post("tools/list");
        world.say(stream, &format!("data: {}\n\n", asked.result(ECHO)));
        assert_eq!(world.status(), ["ready"]);
        let call = world.call("web__echo", "{}");
        let (_, asked, _) = world.post("tools/call");
        world.say(stream, &format!("data: {}\n\n", asked.result(TEXT)));
        assert_eq!(world.only(call), Ok("hé"));
        world.ended(stream);
        assert_eq!(world.status(), ["idle"]);
        assert!(world.running.is_empty());
    }
}

#[test]
fn an_answer_without_an_end_is_not_read_on() {
    let mut world = ready();
    world.limits.max_mcp_message = 64;
    let call = world.call("web__echo", "{}");
    let (id, ..) = world.post("tools/call");
    world.opened(id, 200, &[("content-type", "application/json")]);
    world.say(id, &"x".repeat(100));
    assert!(world.aborted.contains(&id));
    assert!(world.only(call).unwrap_err().contains("longer"));
}

#[test]
fn an_answer_that_is_no_message_is_said_to_be_what_it_is() {
    for (head, said) in [
        (
            &[("content-type", "text/html; charset=utf-8")][..],
            "text/html, where application/json",
        ),
        (
            &[("content-type", "text/plain")],
            "text/plain, where application/json",
        ),
        (&[], "something without a content type, where"),
    ] {
        let mut world = World::new(Vec::from([http("http://h/mcp")]));
        let (id, ..) = world.post("initialize");
        world.answer(id, head, "<p>Welcome, very-secret</p>");
        let found = world.hub.status().next().unwrap();
        assert_eq!(found.status, "failed");
        let error = found.error.unwrap();
        assert!(error.contains(said), "{error}");
        // One that is up says it of the call.
        let mut world = ready();
        let call = world.call("web__echo", "{}");
        let (id, ..) = world.post("tools/call");
        world.answer(id, head, "");
        let error = world.only(call).unwrap_err();
        assert!(error.contains(said), "{error}");
        assert_eq!(world.status(), ["ready"]);
        // And the older transport of its stream.
        let mut world = World::new(Vec::from([sse("http://h/sse")]));
        let (stream, _) = world.get();
        world.opened(stream, 200, head);
        let error = world.hub.status().next().unwrap().error.unwrap();
        let kind = said.split(',').next().unwrap();
        assert!(
            error.contains("text/event-stream") && error.contains(kind),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_forgets_every_session_is_given_up() {
    let mut world = ready();
    let mut calls = Vec::new();
    for n in 0..10 {
        if world.status() != ["ready"] {
            break;
        }
        let call = world.call("web__echo", "{}");
        calls.push(call);
        let (id, ..) = world.post("tools/call");
        world.opened(id, 404, &[]);
        world.ended(id);
        if world.status() == ["connecting"] {
            world.shake_http(&format!("again-{n}"));
            let (id, ..) = world.post("tools/call");
            world.opened(id, 404, &[]);
            world.ended(id);
        }
    }
    assert_eq!(world.status(), ["idle"]);
    assert!(calls.len() < 10, "{} handshakes", calls.len());
    let error = world.hub.status().next().unwrap().error.unwrap();
    assert!(error.contains("again and again"), "{error}");
    for call in calls {
        assert!(world.only(call).is_err());
    }
}
