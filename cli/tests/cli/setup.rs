//! `setup`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::JoinHandle;

use crate::{PROGRAMS, Place, finish, say};

/// An endpoint that answers one request with `answer`; gives back the request.
fn endpoint(answer: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut reader = BufReader::new(stream);
        let (mut request, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            request.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");
        request.push_str(&String::from_utf8(body).expect("text"));
        reader
            .get_mut()
            .write_all(answer.as_bytes())
            .expect("it reads");
        request
    });
    (url, thread)
}

const ANSWERS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\
    \"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":null}]}\n\n\
    data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\
    \"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";

const REFUSES: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\
    content-length: 38\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"no such key 12345\"}}";

#[test]
fn a_key_goes_into_env_alone_and_the_connection_is_tested() {
    for program in PROGRAMS {
        let place = Place::new();
        let (url, asked) = endpoint(ANSWERS);
        let args = [
            "setup",
            "--provider",
            "mine",
            "--base-url",
            &url,
            "--model",
            "m",
            "--key-stdin",
        ];
        let mut command = place.command(program, &args);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        say(&mut child, "sk-0123456789\n");
        let ended = finish(child);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.contains("It works"), "{}", ended.out);
        let request = asked.join().expect("the endpoint");
        assert!(request.contains("Bearer sk-0123456789"), "{request}");
        assert!(
            request.contains("\"max_tokens\":1") || request.contains("\"max_completion_tokens\":1"),
            "{request}"
        );

        let env = place.read("home/.reasonix/.env").expect("written");
        assert_eq!(env, "MINE_API_KEY=sk-0123456789\n");
        let config = place.read("home/.reasonix/config.toml").expect("written");
        assert!(
            config.contains("api_key_env = \"MINE_API_KEY\""),
            "{config}"
        );
        for text in [&config, &ended.out, &ended.err] {
            assert!(!text.contains("sk-0123456789"), "{text}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let meta = std::fs::metadata(place.path("home/.reasonix/.env")).expect("meta");
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn a_test_that_fails_says_why_without_the_key() {
    let place = Place::new();
    let (url, asked) = endpoint(REFUSES);
    let args = [
        "setup",
        "--provider",
        "mine",
        "--base-url",
        &url,
        "--model",
        "m",
        "--from-env",
        "OTHER",
    ];
    let mut command = place.command(PROGRAMS[0], &args);
    let child = command
        .env("OTHER", "sk-secret-key")
        .spawn()
        .expect("it starts");
    let ended = finish(child);
    asked.join().expect("the endpoint");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("401"), "{}", ended.err);
    assert!(!ended.err.contains("sk-secret-key"), "{}", ended.err);
    assert!(place.read("home/.reasonix/.env").is_some(), "it is kept");
}

#[test]
fn nobody_listening_is_said() {
    let place = Place::new();
    let args = [
        "setup",
        "--provider",
        "local",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    ];
    let ended = place.run(PROGRAMS[1], &args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("the test failed"), "{}", ended.err);
}

#[test]
fn a_broken_file_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("home/.reasonix")).expect("home");
    let broken = "default_model =\n";
    place.write("home/.reasonix/config.toml", broken);
    let args = ["setup", "--provider", "local", "--model", "m", "--no-test"];
    let ended = place.run(PROGRAMS[0], &args);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("line 1"), "{}", ended.err);
    let config = place.read("home/.reasonix/config.toml");
    assert_eq!(config.as_deref(), Some(broken));
}

#[test]
fn without_questions_everything_is_said_by_flags_and_what_is_missing_is_named() {
    let place = Place::new();
    let begin = ["setup", "--non-interactive", "--no-test"];
    for (flags, missing) in [
        (&[][..], "--provider"),
        (&["--provider", "mine"], "--base-url"),
        (
            &["--provider", "mine", "--base-url", "https://m.test/v1"],
            "--model",
        ),
        (
            &[
                "--provider",
                "mine",
                "--base-url",
                "https://m.test/v1",
                "--model",
                "m",
            ],
            "--key-stdin",
        ),
        (&["--provider", "deepseek"], "--key-stdin"),
        (
            &["--provider", "mine", "--base-url", "m.test"],
            "--base-url",
        ),
        (
            &["--provider", "deepseek", "--from-env", "NOT_SET"],
            "NOT_SET",
        ),
    ] {
        for program in PROGRAMS {
            let ended = place.run(program, &[&begin[..], flags].concat());
            assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
            assert!(ended.err.contains(missing), "{flags:?}: {}", ended.err);
            assert_eq!(place.read("home/.reasonix/config.toml"), None);
            assert_eq!(place.read("home/.reasonix/.env"), None);
        }
    }
    // A key is no argument.
    let ended = place.run(PROGRAMS[0], &["setup", "--key", "sk-1234567890"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(!ended.err.contains("sk-1234567890"), "{}", ended.err);
}

#[test]
fn without_questions_a_key_comes_from_standard_input_or_a_variable_and_a_second_run_keeps_it() {
    for program in PROGRAMS {
        let place = Place::new();
        let begin = [
            "setup",
            "--non-interactive",
            "--no-test",
            "--provider",
            "deepseek",
        ];
        let mut command = place.command(program, &[&begin[..], &["--key-stdin"]].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        say(&mut child, "sk-from-standard-input\n");
        let ended = finish(child);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let env = || place.read("home/.reasonix/.env").expect("written");
        assert_eq!(env(), "DEEPSEEK_API_KEY=sk-from-standard-input\n");
        let ended = place.run(program, &begin);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(env(), "DEEPSEEK_API_KEY=sk-from-standard-input\n");
        let args = [&begin[..], &["--from-env", "OTHER"]].concat();
        let mut command = place.command(program, &args);
        let child = command.env("OTHER", "sk-from-a-variable").spawn();
        let ended = finish(child.expect("it starts"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(env(), "DEEPSEEK_API_KEY=sk-from-a-variable\n");
        // An empty input is no key.
        let ended = place.run(program, &[&begin[..], &["--key-stdin"]].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(env(), "DEEPSEEK_API_KEY=sk-from-a-variable\n");
    }
}
