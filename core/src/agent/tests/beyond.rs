//! What only some clients take: each gets it if it asked for it, and the plainer thing if not.

use super::*;

/// All that a client can ask for beyond the plain turn.
const ALL: &str = r#"{"plan":{},"subagents":{},"session":{"notices":{},"compaction":{}}}"#;

/// A session of a client with these capabilities.
fn session(config: Config, capabilities: &str) -> World {
    let mut world = World::of(config);
    let params = format!("{{\"protocolVersion\":1,\"clientCapabilities\":{capabilities}}}");
    world.request(0, "initialize", &params);
    world.lines.clear();
    world.session()
}

fn scripted(script: &str) -> Config {
    let mut config = config();
    config.script = Some(Script::parse(script).expect("the script is good"));
    config
}

#[test]
fn a_list_of_what_is_to_be_done_is_a_plan_with_an_id_only_for_who_asked() {
    let write = |todos: &str| {
        format!(
            "{{\"tool\":\"todo_write\",\"args\":{{\"todos\":[{todos}]}}}}\n{{\"finish\":\"tool_calls\"}}\n"
        )
    };
    let todo = r#"{"content":"dig","status":"pending"}"#;
    let script = format!("{}{}{{\"text\":\"done\"}}\n", write(todo), write(""));
    let entry = r#""entries":[{"content":"dig","priority":"high","status":"pending"}]"#;
    for (capabilities, set, removed) in [
        (
            "{}",
            format!(r#""update":{{"sessionUpdate":"plan",{entry}}}"#),
            r#""update":{"sessionUpdate":"plan","entries":[]}"#,
        ),
        (
            ALL,
            format!(
                r#""update":{{"sessionUpdate":"plan_update","plan":{{"type":"items","planId":"todos",{entry}}}}}"#
            ),
            r#""update":{"sessionUpdate":"plan_removed","planId":"todos"}"#,
        ),
    ] {
        let mut world = session(scripted(&script), capabilities);
        world.go();
        world.sees(&set);
        world.sees(removed);
        world.sees("end_turn");
    }
}

#[test]
fn that_commands_can_write_the_agents_own_files_is_said_when_the_session_opens() {
    let said = "Commands of this session can change the agent's own files";
    for (home, confined, capabilities, expected) in [
        ("/w/.reasonix", true, ALL, true),
        ("/w", true, ALL, true),
        ("/w", true, "{}", false),
        ("/w/.reasonix", false, ALL, false),
        ("/ww", true, ALL, false),
        ("/h", true, ALL, false),
    ] {
        let mut config = scripted("{\"text\":\"done\"}\n");
        config.host.home = Some(home.into());
        if confined {
            config.host.sandbox = crate::settings::Sandboxing::Landlock { abi: 4 };
        }
        let mut world = World::of(config);
        let params = format!("{{\"protocolVersion\":1,\"clientCapabilities\":{capabilities}}}");
        world.request(0, "initialize", &params);
        world.open_session(1);
        let lines = world.lines.join("\n");
        assert_eq!(
            lines.contains(said),
            expected,
            "{home} {confined} {capabilities}"
        );
        world.go();
        world.sees("end_turn");
    }
}

#[test]
fn a_compaction_is_shown_with_its_summary_or_is_one_message() {
    let say = |text: &str| format!("{{\"text\":\"{text}\"}}\n{{\"finish\":\"stop\"}}\n");
    let script = say("done").repeat(10) + &say("we dug") + &say("more");
    for (capabilities, seen, unseen) in [
        (
            "{}",
            Vec::from([r#""text":"\n\n[compacted 13 messages]\n\n""#]),
            "compaction",
        ),
        (
            ALL,
            Vec::from([
                r#""compactionId":"c11","status":"in_progress""#,
                r#""compactionId":"c11","status":"completed","summary":[{"type":"text","text":"Summary of the conversation so far:\nwe dug"}]"#,
            ]),
            "[compacted",
        ),
    ] {
        let mut config = scripted(&script);
        config.limits.max_history = 61;
        let mut world = session(config, capabilities);
        for _ in 0..11 {
            world.go();
        }
        let lines = world.lines.join("\n");
        assert!(!lines.contains(unseen), "{lines}");
        for part in seen {
            world.sees(part);
        }
    }
}

#[test]
fn what_went_wrong_is_a_notice_or_a_message_and_what_goes_on_is_a_notice_or_nothing() {
    let script = "{\"error\":{\"status\":503}}\n{\"text\":\"done\"}\n";
    for (capabilities, asked) in [("{}", false), (ALL, true)] {
        let mut world = session(scripted(script), capabilities);
        world.go();
        world.pass(Duration::from_secs(60));
        let lines = world.lines.join("\n");
        let told =
            lines.contains(r#""sessionUpdate":"notice","severity":"info","title":"The model"#);
        assert_eq!(told, asked, "{lines}");
        world.sees("end_turn");
    }
}

#[test]
fn a_subagent_is_a_session_of_its_own_only_for_who_asked() {
    let script = concat!(
        r#"{"tool":"task","id":"t","args":{"description":"look","prompt":"find it"}}"#,
        "\n{\"finish\":\"tool_calls\"}\n",
        r#"{"tool":"ls","id":"a","args":{}}"#,
        "\n{\"finish\":\"tool_calls\"}\n{\"text\":\"found\"}\n{\"finish\":\"stop\"}\n{\"text\":\"done\"}\n"
    );
    for (capabilities, asked) in [("{}", false), (ALL, true)] {
        let mut world = session(scripted(script), capabilities);
        world.go();
        let lines = world.lines.join("\n");
        for part in [
            "subagent_update",
            "session_message",
            r#""type":"session""#,
            r#""state":{"state":"idle","stopReason":"end_turn"}"#,
        ] {
            assert_eq!(lines.contains(part), asked, "{part}: {lines}");
        }
        assert!(!lines.contains(r#""content":[]"#), "{lines}");
        if asked {
            let child = format!("{SESSION}.1");
            world.sees(&format!(
                r#""update":{{"sessionUpdate":"subagent_update","sessionId":"{child}","title":"look","capabilities":{{"cancel":{{}}}},"state":{{"state":"running"}}"#
            ));
            world.sees(&format!(
                r#""content":[{{"type":"session","sessionId":"{child}"}}]"#
            ));
        }
        world.sees(r#""sessionUpdate":"tool_call","toolCallId":"a""#);
        world.sees(r#""text":"found""#);
        world.sees(r#""toolCallId":"t","status":"completed""#);
        world.sees("end_turn");
    }
}

#[test]
fn a_subagent_is_cancelled_by_itself_by_who_was_told_that_it_can_be() {
    let script = concat!(
        r#"{"tool":"task","id":"t","args":{"description":"look","prompt":"find it"}}"#,
        "\n{\"finish\":\"tool_calls\"}\n{\"hang\":true}\n{\"text\":\"done\"}\n"
    );
    for (capabilities, told) in [("{}", false), (ALL, true)] {
        let mut world = session(scripted(script), capabilities);
        world.go();
        world.lines.clear();
        let cancel = format!(r#""method":"session/cancel","params":{{"sessionId":"{SESSION}.1"}}"#);
        world.say(&cancel);
        let lines = world.lines.join("\n");
        assert_eq!(lines.contains("end_turn"), told, "{lines}");
        if told {
            let ended = format!(
                r#"{{"sessionUpdate":"subagent_update","sessionId":"{SESSION}.1","capabilities":null,"state":{{"state":"idle","stopReason":"cancelled"}}}}"#
            );
            world.sees(&ended);
            world.sees(r#""toolCallId":"t","status":"failed""#);
            world.sees(r#""text":"done""#);
        } else {
            assert_eq!(lines, "", "it is nobody's business");
        }
        // It is over, or was never one that can be cancelled.
        world.lines.clear();
        world.say(&cancel);
        assert_eq!(world.lines.join("\n"), "");
    }
}

#[test]
fn a_client_says_what_the_model_is_told() {
    let mut config = config();
    config.settings.providers.push(Provider {
        name: "p".into(),
        base_url: "http://127.0.0.1".into(),
        api_key_env: None,
        api_key: None,
        max_retries: 0,
        idle_timeout: Duration::from_secs(60),
        models: Vec::from([Model {
            id: "m".into(),
            ..Model::default()
        }]),
    });
    let ask = |mode: &str, content: &str| {
        format!(
            r#"{{"cwd":"/w","mcpServers":[],"systemPrompt":{{"mode":"{mode}","content":[{content}]}}}}"#
        )
    };
    let text = r#"{"type":"text","text":"be brief"}"#;
    for (mode, own) in [("append", true), ("override", false)] {
        let mut world = World::of(config.clone());
        world.request(5, "session/new", &ask(mode, text));
        world.sees(SESSION);
        world.held = |call| matches!(call, Call::Http(_));
        world.go();
        let request = world.open.values().find_map(|call| {
            if let Call::Http(request) = call {
                core::str::from_utf8(&request.body).ok()
            } else {
                None
            }
        });
        let request = request.expect("the model is asked");
        assert!(request.contains("be brief"), "{request}");
        assert_eq!(request.contains("You are a coding agent"), own, "{request}");
    }
    for (mode, content) in [
        ("replace", text),
        ("append", ""),
        (
            "append",
            r#"{"type":"image","mimeType":"image/png","data":""}"#,
        ),
    ] {
        let mut world = World::of(config.clone());
        world.request(5, "session/new", &ask(mode, content));
        world.sees_only(r#""id":5,"error":{"code":-32602"#);
    }
}
