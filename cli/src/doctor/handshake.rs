//! The program itself, started as an editor starts it: whether it answers, in time, and with nothing but frames. What it does
//! stays in memory, and no model is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use reasonix_core::wire::{Message, RequestId, RpcError, rpc};
use serde::Deserialize;
use serde_json::json;

use super::Finding;
use super::editors::Facts;
use crate::flags::invocation::DoctorPlan;
use crate::render::text::one_line;

/// An answer may take this long, and so may the end.
const TIME: Duration = Duration::from_secs(10);

/// What a client says that is nobody in particular.
const PLAIN: &str = r#"{"protocolVersion":1,"clientCapabilities":{}}"#;

/// Longest part of a line or of diagnostics that is shown, bytes.
const SHOWN: usize = 200;

/// Nesting that is read.
const DEPTH: usize = 128;

/// Starts `program` and speaks to it.
pub(super) fn look(program: &Path, plan: &DoctorPlan) -> Vec<Finding> {
    let facts = plan.editor.map(super::editors::Editor::facts);
    let mut findings = Vec::new();
    match Talk::start(program, plan) {
        Ok(mut talk) => {
            let said = talk.whole(facts.as_ref(), &plan.cwd, &mut findings);
            if let Err(why) = said {
                findings.push(Finding::problem("handshake", why, talk.diagnostics()));
            }
        }
        Err(error) => findings.push(Finding::problem(
            "handshake",
            format!("{} does not start: {error}", program.display()),
            "",
        )),
    }
    findings
}

/// A running agent. It does not outlive this.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    /// Its output, line by line; its end is the end of the channel.
    lines: Receiver<Vec<u8>>,
    /// What it said on standard error, once that is closed.
    errors: Receiver<String>,
    asked: u64,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // It is over already if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of an answer to `initialize` that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hello {
    protocol_version: u64,
    #[serde(default)]
    auth_methods: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    id: String,
}

/// The part of an answer to `session/new` that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    session_id: String,
    modes: Option<Modes>,
    #[serde(default)]
    config_options: Vec<Option_>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Modes {
    current_mode_id: String,
}

/// A choice that a client shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Option_ {
    id: String,
    current_value: Option<serde_json::Value>,
}

impl Talk {
    fn start(program: &Path, plan: &DoctorPlan) -> std::io::Result<Self> {
        let mut child = Command::new(program)
            .arg("acp")
            .args(&plan.acp)
            .arg("--ephemeral")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("it is a pipe");
        let errors = child.stderr.take().expect("it is a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let (sender, said) = channel();
        thread::spawn(move || {
            let mut text = Vec::new();
            let mut errors = errors;
            let _ = errors.by_ref().take(64 << 10).read_to_end(&mut text);
            // The rest is read too, so that nobody waits for a reader.
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
            let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
        });
        Ok(Self {
            child,
            input,
            lines,
            errors: said,
            asked: 0,
        })
    }

    /// All that an editor does before the first prompt, and the end.
    fn whole(
        &mut self,
        facts: Option<&Facts>,
        cwd: &str,
        found: &mut Vec<Finding>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let hello = self.ask("initialize", facts.map_or(PLAIN, |it| it.initialize))?;
        let hello = hello.map_err(|error| format!("initialize is refused: {error}"))?;
        let hello: Hello = read("initialize", &hello)?;
        if hello.protocol_version != 1 {
            return Err(format!(
                "it speaks version {} of the protocol",
                hello.protocol_version
            ));
        }
        found.push(Finding::ok(
            "handshake",
            format!(
                "initialize is answered after {} ms",
                begun.elapsed().as_millis()
            ),
        ));
        if let (
            Some(Facts {
                authenticates: true,
                ..
            }),
            Some(method),
        ) = (facts, hello.auth_methods.first())
        {
            let params = json!({ "methodId": method.id }).to_string();
            if let Err(error) = self.ask("authenticate", &params)? {
                found.push(Finding::problem(
                    "sign-in",
                    format!("{} is refused: {}", method.id, error.message),
                    "Run: reasonix setup",
                ));
            }
        }
        let params = json!({ "cwd": cwd, "mcpServers": [] }).to_string();
        match self.ask("session/new", &params)? {
            Ok(opened) => {
                let opened = read("session/new", &opened)?;
                found.push(Finding::ok(
                    "session",
                    format!("a session is opened in {cwd}"),
                ));
                self.session(&opened, facts.is_some_and(|it| it.legacy))?;
            }
            Err(error) => found.push(Finding::problem(
                "session",
                format!("session/new is refused: {}", error.message),
                how_to(&error),
            )),
        }
        self.end(facts.is_some_and(|it| it.terminates))?;
        found.push(Finding::ok(
            "standard output",
            "nothing but frames, and an end in time",
        ));
        Ok(())
    }

    /// What is done with a new session.
    fn session(&mut self, opened: &Opened, legacy: bool) -> Result<(), String> {
        let id = &opened.session_id;
        if legacy {
            if let Some(modes) = &opened.modes {
                let params = json!({ "sessionId": id, "modeId": modes.current_mode_id });
                self.must("session/set_mode", &params.to_string())?;
            }
            let model = opened.config_options.iter().find(|it| it.id == "model");
            if let Some(model) = model.and_then(|it| it.current_value.as_ref()) {
                let params = json!({ "sessionId": id, "modelId": model });
                self.must("session/set_model", &params.to_string())?;
            }
        }
        self.must("session/close", &json!({ "sessionId": id }).to_string())
    }

    fn must(&mut self, method: &str, params: &str) -> Result<(), String> {
        match self.ask(method, params)? {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{method} is refused: {}", error.message)),
        }
    }

    /// The answer to a request. An error if there is none, or something that is no frame.
    fn ask(&mut self, method: &str, params: &str) -> Result<Result<String, RpcError>, String> {
        self.asked += 1;
        let id = self.asked;
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        let input = self.input.as_mut().expect("it is closed at the end only");
        // Where nobody reads any more, what it said before its end tells why.
        let _ = input.write_all(request.as_bytes());
        let end = Instant::now() + TIME;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "no answer to {method} within {} seconds",
                        TIME.as_secs()
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("it ended during {method}"));
                }
            };
            match frame(&line)? {
                Message::Response { id: of, result } if of.as_u64() == Some(id) => {
                    return Ok(result.map(ToOwned::to_owned));
                }
                Message::Response { id: of, .. } => {
                    return Err(format!("it answered {}, which nobody asked", shown(&of)));
                }
                Message::Request { .. } | Message::Notification { .. } => {}
            }
        }
    }

    /// Its end, as the editor brings it about.
    fn end(&mut self, terminate: bool) -> Result<(), String> {
        match terminate {
            true => self.terminate(),
            false => self.input = None,
        }
        let end = Instant::now() + TIME;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => drop(frame(&line)?),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("it does not end within {} seconds", TIME.as_secs()));
                }
            }
        }
        // Its output is closed, so it is at its end.
        let status = self.child.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("it ended with {status}")),
        }
    }

    #[cfg(unix)]
    fn terminate(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        // One that is over already needs no signal.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) {
        self.input = None;
    }

    /// What it said on standard error; it is ended for that.
    fn diagnostics(&mut self) -> String {
        self.input = None;
        let _ = self.child.kill();
        // What it started may live on and keep the pipe open.
        let text = self
            .errors
            .recv_timeout(Duration::from_secs(1))
            .unwrap_or_default();
        text.lines()
            .map(|line| one_line(line, SHOWN))
            .take(5)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The frame in a line of output; anything else there breaks editors.
fn frame(line: &[u8]) -> Result<Message<'_>, String> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    rpc::read(text, DEPTH).map_err(|_| {
        let shown = one_line(&String::from_utf8_lossy(text), SHOWN);
        format!("standard output has something that is no frame: {shown}")
    })
}

fn read<'a, T: Deserialize<'a>>(method: &str, answer: &'a str) -> Result<T, String> {
    serde_json::from_str(answer).map_err(|error| format!("the answer to {method} is odd: {error}"))
}

fn how_to(error: &RpcError) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        how_to: String,
    }
    let data = error
        .data
        .as_ref()
        .and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    data.map(|data| data.how_to).unwrap_or_default()
}

fn shown(id: &RequestId) -> String {
    let mut text = Vec::new();
    id.write_json(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::Level;
    use super::*;
    use crate::host;

    /// What is found about a program that is this shell script.
    fn found(script: &str) -> Vec<Finding> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("agent");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("set");
        look(
            &program,
            &DoctorPlan {
                config: host::config().expect("random bytes"),
                home: None,
                cwd: "/".into(),
                editor: None,
                offline: true,
                json: false,
                acp: Vec::new(),
            },
        )
    }

    #[test]
    fn a_program_that_says_anything_else_is_found_out() {
        const HELLO: &str =
            r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'"#;
        const NEW: &str = r#"read -r line; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no model","data":{"howTo":"do it"}}}'"#;
        for (script, wanted) in [
            ("echo loading".into(), "no frame: loading"),
            (format!("{HELLO}; echo done; cat"), "no frame: done"),
            (
                format!("{HELLO}; {NEW}; read -r line; echo bye"),
                "no frame: bye",
            ),
            (format!("{HELLO}; {NEW}; cat; exit 3"), "exit status: 3"),
            ("exit 0".into(), "it ended"),
            (
                r#"read -r line; echo '{"jsonrpc":"2.0","id":7,"result":{}}'"#.into(),
                "it answered 7, which nobody asked",
            ),
            (
                r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}'"#
                    .into(),
                "version 2",
            ),
        ] {
            let findings = found(&script);
            let bad = findings.iter().rfind(|it| it.level == Level::Problem);
            let text = bad.map_or("", |it| &it.text);
            assert!(text.contains(wanted), "{wanted}: {findings:?}");
        }
        let findings = found(&format!("{HELLO}; {NEW}; cat"));
        let refused = findings
            .iter()
            .find(|it| it.what == "session")
            .expect("it is told");
        assert_eq!(refused.todo.as_deref(), Some("do it"));
        assert_eq!(findings.last().map(|it| it.what), Some("standard output"));
    }

    #[test]
    fn what_a_program_that_fails_says_is_shown() {
        let findings = found("echo 'no such flag' >&2; exit 2");
        assert_eq!(findings[0].todo.as_deref(), Some("no such flag"));
    }
}
