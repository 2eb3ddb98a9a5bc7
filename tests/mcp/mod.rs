//! An MCP server that behaves as it is told, badly for the most part: a program on its standard
//! streams, Streamable HTTP, or the older HTTP with server-sent events. Knows no client.
//!
//! Manners are words, and they add up: `flood noise exits`. Those of every transport:
//!
//! | word | what it does |
//! | --- | --- |
//! | `deaf` | never answers `initialize` |
//! | `old` | speaks a version that nobody knows |
//! | `names` | has tools whose names clash, are empty or long |
//! | `many` | has 500 tools |
//! | `cursors` | gives the same cursor with every page |
//! | `changes` | has other tools after the first call, and says so while it runs |
//! | `restless` | says after every list that it has changed |
//! | `twice` | answers each call twice, and what nobody asked |
//! | `asks` | pings, asks for roots, sampling, a form and nonsense; answers a call with what it heard |
//! | `silent` | never answers a call |
//! | `huge` | answers a call with 64 MiB |
//! | `long` | answers a call with 4 MiB, which a client takes |
//! | `shows` | answers a call with all it was given: variables, arguments, headers |
//! | `blames` | the same, as an error of the protocol |
//! | `fails` | answers a call by a failed tool |
//! | `gossips` | puts the same into its tools, its log, its progress and what it asks the person |
//! | `confesses` | refuses `initialize` with the same |

mod stdio;
mod web;

use serde_json::{Value, json};

pub use stdio::serve;
pub use web::Web;

/// What a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    /// Sends one message.
    Say(String),
    /// Ends, with its last words.
    End(i32, &'static str),
}

/// The server behind any transport.
#[derive(Debug)]
struct Server {
    manners: Vec<String>,
    /// All it was given, for those that say it again.
    given: String,
    lists: usize,
    calls: usize,
    /// The call that waits for answers to questions.
    held: Option<Value>,
    heard: Vec<String>,
}

/// What `asks` asks: ids and methods.
const QUESTIONS: [(&str, &str); 6] = [
    ("1", "ping"),
    ("\"p\"", "ping"),
    ("2", "roots/list"),
    ("3", "sampling/createMessage"),
    ("4", "foo/bar"),
    ("5", "elicitation/create"),
];

impl Server {
    fn new(manners: &[String], given: String) -> Self {
        Self {
            manners: manners.to_vec(),
            given,
            lists: 0,
            calls: 0,
            held: None,
            heard: Vec::new(),
        }
    }

    fn is(&self, word: &str) -> bool {
        self.manners.iter().any(|it| it == word)
    }

    /// One message of the client.
    fn take(&mut self, text: &str) -> Vec<Act> {
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            return vec![Act::Say("not JSON".into())];
        };
        let Some(method) = message["method"].as_str() else {
            return self.answered(&message);
        };
        if message.get("id").is_none() {
            return Vec::new();
        }
        match method {
            "initialize" => self.hello(&message),
            "tools/list" => self.list(&message),
            "tools/call" => self.call(&message),
            "ping" => vec![result(&message, json!({}))],
            _ => vec![error(&message, -32601, "no such method")],
        }
    }

    fn hello(&self, message: &Value) -> Vec<Act> {
        if self.is("deaf") {
            return Vec::new();
        }
        if self.is("dies") {
            return vec![Act::End(3, "cannot open its database")];
        }
        if self.is("confesses") {
            return vec![error(message, -32603, &self.given)];
        }
        let version = if self.is("old") {
            "1999-01-01"
        } else {
            "2025-11-25"
        };
        vec![result(
            message,
            json!({
                "protocolVersion": version,
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "serverInfo": {"name": "misbehaving", "version": "1.2.3"},
            }),
        )]
    }

    fn list(&mut self, message: &Value) -> Vec<Act> {
        self.lists += 1;
        let named = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let mut tools = vec![named("echo")];
        if self.is("changes") && self.calls > 0 {
            tools = vec![named("later")];
        }
        if self.is("restless") {
            tools.push(named(&format!("t{}", self.lists % 2)));
        }
        if self.is("names") {
            let long = "n".repeat(200);
            for name in ["", " ", "a.b", "a/b", "a_b", "echo", "Ünïcode", "a\nb"] {
                tools.push(named(name));
            }
            tools.push(named(&long));
            tools.push(named(&format!("{long}2")));
            tools.push(json!({"title": "no name"}));
            tools.push(json!(7));
        }
        if self.is("many") {
            tools.extend((1..500).map(|n| named(&format!("tool{n}"))));
        }
        if self.is("gossips") {
            tools[0]["description"] = json!(format!("Says {}", self.given));
            tools[0]["inputSchema"]["title"] = json!(self.given);
        }
        let mut page = json!({"tools": tools});
        if self.is("cursors") {
            page["nextCursor"] = json!("again");
        }
        let mut acts = vec![result(message, page)];
        if self.is("restless") && self.lists < 200 {
            acts.push(changed());
        }
        acts
    }

    fn call(&mut self, message: &Value) -> Vec<Act> {
        self.calls += 1;
        let text = message["params"]["arguments"]["text"].as_str();
        let mut text = text.unwrap_or("nothing").to_string();
        let mut acts = Vec::new();
        if self.is("exits") {
            return vec![Act::End(7, "out of luck")];
        }
        if self.is("silent") {
            return acts;
        }
        if self.is("asks") {
            let ask = |(id, method): (&str, &str)| {
                let id: Value = serde_json::from_str(id).expect("written above");
                let params = json!({"message": "What?", "requestedSchema":
                    {"type": "object", "properties": {"a": {"type": "string"}}}});
                say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            };
            self.held = Some(message.clone());
            return QUESTIONS.into_iter().map(ask).collect();
        }
        if self.is("changes") {
            acts.push(changed());
        }
        if self.is("gossips") {
            let token = &message["params"]["_meta"]["progressToken"];
            let params = json!({"progressToken": token, "progress": 1, "message": self.given});
            acts.push(note("notifications/progress", params));
            let params = json!({"level": "error", "data": {"given": self.given}});
            acts.push(note("notifications/message", params));
            let params = json!({"message": self.given, "requestedSchema": {"type": "object",
                "properties": {"a": {"type": "string", "description": self.given}}}});
            acts.push(say(
                &json!({"jsonrpc": "2.0", "id": "g", "method": "elicitation/create", "params": params}),
            ));
        }
        if self.is("blames") {
            acts.push(error(message, -32000, &self.given));
            return acts;
        }
        if self.is("shows") {
            text = self.given.clone();
        }
        if self.is("fails") {
            let part = json!({"type": "text", "text": "disk full"});
            acts.push(result(message, json!({"isError": true, "content": [part]})));
            return acts;
        }
        if self.is("huge") {
            // By hand: it need not take long to make.
            let (id, text) = (&message["id"], "h".repeat(64 << 20));
            let part = format!(r#"{{"type":"text","text":"{text}"}}"#);
            let answer =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{part}]}}}}"#);
            return vec![Act::Say(answer)];
        }
        if self.is("long") {
            text = "l".repeat(4 << 20);
        }
        let mut answer = json!({"content": [{"type": "text", "text": text}]});
        if self.is("shows") {
            answer["structuredContent"] = json!({"given": self.given});
        }
        acts.push(result(message, answer));
        if self.is("twice") {
            let other = json!({"content": [{"type": "text", "text": "the second answer"}]});
            acts.push(result(message, other.clone()));
            acts.push(say(
                &json!({"jsonrpc": "2.0", "id": 99_999, "result": other}),
            ));
            acts.push(say(&json!({"jsonrpc": "2.0", "id": "x", "result": other})));
        }
        acts
    }

    fn answered(&mut self, message: &Value) -> Vec<Act> {
        if self.held.is_none() {
            return Vec::new();
        }
        let id = &message["id"];
        let what = match message["error"]["code"].as_i64() {
            Some(code) => json!(code),
            None => message["result"].clone(),
        };
        self.heard.push(format!("{id}: {what}"));
        if self.heard.len() < QUESTIONS.len() {
            return Vec::new();
        }
        self.heard.sort();
        let text = self.heard.join("\n");
        let held = self.held.take().unwrap_or_default();
        vec![result(
            &held,
            json!({"content": [{"type": "text", "text": text}]}),
        )]
    }
}

fn say(message: &Value) -> Act {
    Act::Say(message.to_string())
}

fn result(to: &Value, result: Value) -> Act {
    say(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result}))
}

fn error(to: &Value, code: i64, message: &str) -> Act {
    let error = json!({"code": code, "message": message});
    say(&json!({"jsonrpc": "2.0", "id": to["id"], "error": error}))
}

fn note(method: &str, params: Value) -> Act {
    say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn changed() -> Act {
    note("notifications/tools/list_changed", json!({}))
}
