//! The inbox of the programs, killed and begun again.

use reasonix_tests::json::{self, Value, json};
use reasonix_tests::process::{PROGRAMS, Place, Running};

/// What a request to the inbox of a session is answered.
#[track_caller]
fn ask(agent: &mut Running, id: u64, method: &str, session: &str, more: Value) -> Value {
    let mut params = more;
    params["sessionId"] = session.into();
    let method = format!("_reasonix.io/session/inbox/{method}");
    let answer = agent.ask(&json::request(id, &method, params));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// What the items of a list say.
fn texts(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("always a list");
    let texts = items.iter().map(|item| item["preview"].as_str());
    texts.map(|text| text.expect("a text")).collect()
}

#[test]
fn what_was_answered_survives_a_kill_and_runs_once() {
    let said = "{\"text\":\"first\"}\n{\"finish\":\"stop\"}\n{\"text\":\"second\"}\n{\"finish\":\"stop\"}\n{\"text\":\"third\"}\n";
    for program in PROGRAMS {
        let place = Place::new();
        let model = format!("script:{}", place.script(said).display());
        let arguments = ["--model", model.as_str()];
        let start = |place: &Place, session: &str| {
            let mut agent = Running::start(program, place, &arguments);
            agent.ask(&json::initialize(1));
            let cwd = place.work();
            let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
            let answer = agent.ask(&json::request(2, "session/load", params));
            assert!(answer.get("error").is_none(), "{program}: {answer}");
            agent
        };
        let mut agent = Running::start(program, &place, &arguments);
        let session = agent.open(json!({}), &place.work());
        let one = json!({"text": "one", "idempotencyKey": "k"});
        let put = ask(&mut agent, 10, "enqueue", &session, one.clone());
        ask(&mut agent, 11, "enqueue", &session, json!({"text": "two"}));
        agent.kill();

        let mut agent = start(&place, &session);
        let list = ask(&mut agent, 10, "list", &session, json!({}));
        assert_eq!(texts(&list), ["one", "two"], "{program}");
        assert_eq!(list["paused"], true);
        assert_eq!(list["recoveredCount"], 2);
        let again = ask(&mut agent, 11, "enqueue", &session, one.clone());
        assert_eq!(
            (&again["itemId"], &again["idempotent"]),
            (&put["itemId"], &json!(true))
        );
        ask(
            &mut agent,
            12,
            "setPaused",
            &session,
            json!({"paused": false}),
        );
        let answer = agent.ask(&json::prompt(13, &session, "go"));
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{program}: {answer}"
        );
        assert_eq!(
            json::said(&agent.frames, &session)
                .matches("second")
                .count(),
            1
        );
        assert!(json::said(&agent.frames, &session).ends_with("third"));
        agent.kill();

        let mut agent = start(&place, &session);
        let list = ask(&mut agent, 10, "list", &session, json!({}));
        assert_eq!(
            (texts(&list).len(), &list["paused"]),
            (0, &json!(false)),
            "{program}"
        );
        let again = ask(&mut agent, 11, "enqueue", &session, one);
        assert_eq!(again["itemId"], put["itemId"]);
        let replayed = json::text_of(&agent.frames, &session, "user_message_chunk");
        assert_eq!(replayed, "goonetwo", "{program}");
        let (ended, laws) = agent.finish();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        laws.check();
    }
}
