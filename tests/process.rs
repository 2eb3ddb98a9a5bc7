//! The real programs on pipes: started in a home and a workspace of their own, spoken to in frames,
//! judged by the same laws as a simulated agent. Knows no more of them than an editor does.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use reasonix_core::time::Instant as Moment;

use crate::editor::Editor;
use crate::json::{self, Value};
use crate::laws::Laws;
use crate::sim::{Card, reply_to_card};

/// The two programs.
pub const PROGRAMS: [&str; 2] = ["reasonix", "reasonix-blocking"];

/// The path of a program, built once if it has to be. `REASONIX_BIN_DIR` names a folder with both.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("REASONIX_BIN_DIR") {
            return folder.into();
        }
        let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "-q", "--bin=reasonix", "--bin=reasonix-blocking"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the programs do not build");
        // target/debug/deps/conformance-… → target/debug
        let this = std::env::current_exe().expect("a test knows where it is");
        let folder = this.ancestors().nth(2).expect("it is two folders deep");
        folder.into()
    });
    folder.join(name)
}

/// Keys that nobody may ever see: in `.env`, in the environment of every program, and those that tests
/// give to MCP servers. Whoever runs a program here looks for them in all it says and leaves behind.
pub const PLANTED: [(&str, &str); 7] = [
    ("PLANTED_KEY", "sk-planted-in-env-file-5f1c9a"),
    ("DEEPSEEK_API_KEY", "sk-planted-in-environment-77d2e0"),
    ("MCP_ENV", "mcp-planted-in-variable-91ab3f"),
    ("MCP_ARG", "mcp-planted-in-argument-c04d57"),
    ("MCP_HEADER", "mcp-planted-in-header-2e86f1"),
    ("MCP_LOGIN", "mcp-planted-in-login-b7309d"),
    ("MCP_QUERY", "mcp-planted-in-query-4fa6c2"),
];

/// What stands in every planted key, and in little else.
const PLANTED_MARK: &str = "planted-in-";

/// The name of a planted key that is in there, if one is.
pub fn leak(bytes: &[u8]) -> Option<&'static str> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PLANTED_MARK));
    let marks: Vec<usize> = MARK.find_iter(bytes).collect();
    if marks.is_empty() {
        return None;
    }
    let holds = |key: &str| {
        let before = key.find(PLANTED_MARK).expect("every key has the mark");
        let from = |at: &usize| bytes.get(at.checked_sub(before)?..);
        let mut places = marks.iter().filter_map(from);
        places.any(|rest| rest.starts_with(key.as_bytes()))
    };
    let found = PLANTED.iter().find(|(_, key)| holds(key));
    found.map(|(name, _)| *name)
}

/// Panics if a planted key is in there; not while another panic tells what is wrong.
#[track_caller]
pub fn no_leak(what: &str, bytes: &[u8]) {
    if let (Some(name), false) = (leak(bytes), std::thread::panicking()) {
        panic!("the value of {name} is in {what}");
    }
}

/// A home and a workspace on disk, gone when dropped.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// Empty folders.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["home", "work", "out"] {
            std::fs::create_dir(folder.path().join(name)).expect("an empty folder takes another");
        }
        let place = Self { folder };
        let (name, key) = PLANTED[0];
        place.keep_key(&format!("{name}={key}\n"));
        place
    }

    /// Writes `.env`, for its owner alone.
    pub fn keep_key(&self, text: &str) {
        let path = self.home().join(".env");
        std::fs::write(&path, text).expect("the home can be written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mine = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, mine).expect("it is ours");
        }
    }

    /// `REASONIX_HOME`.
    pub fn home(&self) -> PathBuf {
        self.real("home")
    }

    /// The workspace, links resolved.
    pub fn work(&self) -> PathBuf {
        self.real("work")
    }

    /// A folder beside the workspace.
    pub fn out(&self) -> PathBuf {
        self.real("out")
    }

    /// A file of the workspace.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Writes a file of the workspace, its folders too.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders");
        std::fs::write(path, bytes).expect("the workspace can be written");
    }

    /// Writes a configuration with one provider `local` and its model `tiny`.
    pub fn configure(&self, url: &str, more: &str) {
        let key = match more.contains("api_key_env") {
            true => String::new(),
            false => format!("api_key_env = \"{}\"\n", PLANTED[0].0),
        };
        let text = format!(
            "default_model = \"local/tiny\"\n\n[providers.local]\nbase_url = \"{url}\"\n{key}{more}\nmodels = [{{ id = \"tiny\", context_window = 128000 }}]\n"
        );
        std::fs::write(self.home().join("config.toml"), text).expect("the home can be written");
    }

    /// Writes a script for the scripted model and gives its path.
    pub fn script(&self, lines: &str) -> PathBuf {
        let path = self.home().join("script.jsonl");
        std::fs::write(&path, lines).expect("the home can be written");
        path
    }

    fn real(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        path.canonicalize().expect("it was made")
    }
}

impl Drop for Place {
    /// What is left behind holds no key.
    fn drop(&mut self) {
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type());
                let small = entry.metadata().is_ok_and(|data| data.len() < 16 << 20);
                match kind {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() && small && entry.file_name() != ".env" => {
                        if let Ok(bytes) = std::fs::read(&path) {
                            no_leak(&path.display().to_string(), &bytes);
                        }
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}

/// A running agent and its client.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Arc<Mutex<String>>,
    /// Every frame heard, as JSON.
    pub frames: Vec<Value>,
    /// Every byte heard.
    pub bytes: Vec<u8>,
    /// The laws of the exchange.
    pub laws: Laws,
    /// How permission requests are answered; the last one counts for all that follow.
    pub cards: VecDeque<Card>,
    /// The permission requests so far.
    pub asked: Vec<Value>,
    /// The editor's buffers: answers to `fs/read_text_file`.
    pub buffers: BTreeMap<String, String>,
    /// Answers to other methods than the client knows by itself.
    pub answers: BTreeMap<String, Value>,
    /// Who answers to `fs/*`, `terminal/*` and `elicitation/*` in the place of those buffers, at once.
    pub editor: Option<Editor>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none: a signal.
    pub code: Option<i32>,
    /// What it wrote on standard error.
    pub errors: String,
    /// How long after its input was closed.
    pub took: Duration,
}

impl Running {
    /// Starts `name acp ARGS…` in this place.
    pub fn start(name: &str, place: &Place, args: &[&str]) -> Self {
        let mut command = Command::new(program(name));
        command.arg("acp").args(args).current_dir("/");
        command
            .env("REASONIX_HOME", place.home())
            .env("HOME", place.home());
        let (name, key) = PLANTED[1];
        command.env(name, key);
        command.env_remove("RUST_LOG");
        Self::spawn(command)
    }

    /// Starts any agent.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped above");
        let stderr = child.stderr.take().expect("piped above");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                if send.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let kept = errors.clone();
        std::thread::spawn(move || {
            let mut reader = stderr;
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..read]);
                if let Ok(mut kept) = kept.lock() {
                    kept.push_str(&text);
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            errors,
            frames: Vec::new(),
            bytes: Vec::new(),
            laws: Laws::default(),
            cards: [Card::Choose("allow_once")].into(),
            asked: Vec::new(),
            buffers: BTreeMap::new(),
            answers: BTreeMap::new(),
            editor: None,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote on standard error so far.
    pub fn errors(&self) -> String {
        self.errors
            .lock()
            .map(|errors| errors.clone())
            .unwrap_or_default()
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.send_all(std::slice::from_ref(message));
    }

    /// Sends messages in one write.
    pub fn send_all(&mut self, messages: &[Value]) {
        let lines: Vec<_> = messages.iter().map(json::line).collect();
        for line in &lines {
            self.laws.sent(line);
        }
        self.write(&lines.concat());
    }

    /// Sends bytes as they are; the laws do not ask for answers to them.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.laws.sent_raw(bytes);
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        // A program that has ended takes no more; what it said shows why.
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Stops listening: the reading end of its output is closed with the next line it writes.
    pub fn go_away(&mut self) {
        self.lines = channel().1;
    }

    /// Waits for the next frame and answers it if it is a request. None: its output has ended.
    #[track_caller]
    pub fn next(&mut self, what: &str, end: Instant) -> Option<Value> {
        let left = end.saturating_duration_since(Instant::now());
        let line = match self.lines.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!(
                "never came: {what}\nlast frames: {:#?}\nstderr: {}",
                self.frames.iter().rev().take(6).collect::<Vec<_>>(),
                self.errors()
            ),
        };
        self.bytes.extend_from_slice(&line);
        let frame = self.laws.heard(&line);
        let frame =
            frame.unwrap_or_else(|| panic!("not a frame: {}", String::from_utf8_lossy(&line)));
        self.frames.push(frame.clone());
        if !self.hears(&frame)
            && let Some(reply) = self.reply(&frame)
        {
            self.send(&reply);
        }
        Some(frame)
    }

    /// Lets the editor hear a frame; whether it was for the editor.
    fn hears(&mut self, frame: &Value) -> bool {
        let Some(editor) = &mut self.editor else {
            return false;
        };
        let heard = editor.hear(Moment::ZERO, frame);
        for (path, text) in editor.take_unsaved() {
            let folder = Path::new(&path).parent().expect("a file is in a folder");
            std::fs::create_dir_all(folder).expect("folders");
            std::fs::write(&path, text).expect("the workspace can be written");
        }
        let said: Vec<_> = std::iter::from_fn(|| editor.take(Moment::ZERO)).collect();
        if !said.is_empty() {
            self.send_all(&said);
        }
        heard
    }

    /// Reads until `done` likes a frame, and gives it.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match self.next(what, end) {
                Some(frame) if done(&frame) => return frame,
                Some(_) => {}
                None => panic!("ended before {what}: {}", self.errors()),
            }
        }
    }

    /// Reads until request `id` is answered, and gives the answer.
    #[track_caller]
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        self.answer_after(0, id.into())
    }

    /// As [`answer`](Self::answer), passing over the first `seen` frames.
    #[track_caller]
    fn answer_after(&mut self, seen: usize, id: Value) -> Value {
        if let Some(answer) = json::answer_to(&self.frames[seen..], id.clone()) {
            return answer.clone();
        }
        self.until(&format!("the answer to {id}"), |frame| {
            frame.get("method").is_none() && frame["id"] == id
        })
    }

    /// Sends a request and reads until it is answered. An id may be used again: the answer to an
    /// earlier request of that id is not taken for this one's.
    #[track_caller]
    pub fn ask(&mut self, message: &Value) -> Value {
        let seen = self.frames.len();
        self.send(message);
        self.answer_after(seen, message["id"].clone())
    }

    /// Shakes hands and opens a session in `cwd`; gives its id.
    #[track_caller]
    pub fn open(&mut self, capabilities: Value, cwd: &Path) -> String {
        self.ask(&json::initialize_with(9001, capabilities));
        let cwd = cwd.to_str().expect("a test folder has a plain name");
        let answer = self.ask(&json::new_session(9002, cwd));
        let session = answer["result"]["sessionId"].as_str();
        session
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .into()
    }

    /// Closes its input, reads what is left and waits for its end; kills it after 10 s.
    #[track_caller]
    pub fn finish(mut self) -> (Ended, Laws) {
        let from = Instant::now();
        self.close_input();
        while self
            .next("the end of its output", from + Duration::from_secs(10))
            .is_some()
        {}
        let ended = self.wait(from);
        if ended.code == Some(0) {
            self.laws.closed();
        }
        (ended, std::mem::take(&mut self.laws))
    }

    /// Waits for its end; kills it after 10 s.
    pub fn wait(&mut self, from: Instant) -> Ended {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ended {
                    code: status.code(),
                    errors: self.errors(),
                    took: from.elapsed(),
                };
            }
            if from.elapsed() > Duration::from_secs(10) {
                // It is our own child and overdue.
                let _ = self.child.kill();
            }
            // Waits for a process, not for an order of events.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end, as a signal does.
    pub fn terminate(&self) {
        let sent = Command::new("kill")
            .args(["-TERM", &self.pid().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()), "it runs");
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn reply(&mut self, frame: &Value) -> Option<Value> {
        let (id, method) = (frame.get("id")?, frame.get("method")?.as_str()?);
        let params = &frame["params"];
        if let Some(answer) = self.answers.get(method) {
            return Some(json::result(id, answer.clone()));
        }
        match method {
            "session/request_permission" => {
                self.asked.push(params.clone());
                let card = match self.cards.len() {
                    0 | 1 => self.cards.front().cloned(),
                    _ => self.cards.pop_front(),
                };
                reply_to_card(id, params, &card?)
            }
            "fs/read_text_file" => {
                let path = params["path"].as_str().unwrap_or_default();
                Some(match self.buffers.get(path) {
                    Some(text) => json::result(id, json::json!({"content": text})),
                    None => json::error(id, -32002, "not open"),
                })
            }
            _ => Some(json::error(id, -32601, "not here")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        no_leak("a frame", &self.bytes);
        no_leak("standard error", self.errors().as_bytes());
    }
}
