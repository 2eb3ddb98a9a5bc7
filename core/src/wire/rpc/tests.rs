//! Tests of messages: tables for the envelope, and what writers promise.

use super::*;
use alloc::format;
use alloc::string::String;
use proptest::prelude::*;
use serde_json::value::RawValue;

/// What a frame is read as, in one line: the shape and its parts, or the fault with the code of the
/// reply and its id, and what is spoiled.
fn shown(frame: &str) -> String {
    match read(frame.as_bytes(), 128) {
        Ok(Message::Request { id, method, params }) => {
            format!("request {id} {method} {}", params.unwrap_or("-"))
        }
        Ok(Message::Notification { method, params }) => {
            format!("notification {method} {}", params.unwrap_or("-"))
        }
        Ok(Message::Response {
            id,
            result: Ok(result),
        }) => format!("result {id} {result}"),
        Ok(Message::Response {
            id,
            result: Err(error),
        }) => format!("error {id} {}", error.code),
        Err(fault) => {
            let reply = fault
                .reply
                .map(|(id, error)| format!(" reply {} {id}", error.code));
            let spoils = fault.spoils.map(|id| format!(" spoils {id}"));
            format!(
                "fault{}{}",
                reply.unwrap_or_default(),
                spoils.unwrap_or_default()
            )
        }
    }
}

/// Each line: a frame, ` => `, what it is read as. `V` stands for the version member.
fn check(table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (frame, expected) = line
            .split_once(" => ")
            .expect("a frame and what it is read as");
        let frame = frame.replace('V', r#""jsonrpc":"2.0""#);
        assert_eq!(shown(&frame), expected, "{frame}");
    }
}

#[test]
fn shapes_are_told_apart_by_their_members() {
    check(
        r#"
        {V,"id":1,"method":"m","params":{"a":1}} => request 1 m {"a":1}
        {"params":[ 1 ],"method":"m","id":1,V} => request 1 m [ 1 ]
        {V,"id":1,"method":"m"} => request 1 m -
        {V,"id":1,"method":"m","params":null} => request 1 m -
        {V,"id":null,"method":"_x"} => request null _x -
        {V,"id":"","method":""} => request ""  -
        {V,"method":"m"} => notification m -
        {V,"method":"m","params":{}} => notification m {}
        {V,"id":1,"result":null} => result 1 null
        {V,"id":1,"result":{"a":[]}} => result 1 {"a":[]}
        {V,"id":1,"error":{"code":-32000,"message":"x","data":{},"more":1}} => error 1 -32000
        {V,"id":1,"error":{"code":2147483647,"message":""}} => error 1 2147483647
        {V,"id":null,"error":{"code":-32700,"message":"x"}} => error null -32700
        {V,"id":1,"method":"m","zzz":1} => request 1 m -
        {"jsonrp\u0063":"\u0032.0","i\u0064":1,"metho\u0064":"\u006d"} => request 1 m -
        "#,
    );
}

#[test]
fn ids_come_back_as_they_came() {
    check(
        r#"
        {V,"id":9007199254740993,"method":"m"} => request 9007199254740993 m -
        {V,"id":9223372036854775808,"method":"m"} => request 9223372036854775808 m -
        {V,"id":1.50,"method":"m"} => request 1.50 m -
        {V,"id":1e3,"method":"m"} => request 1e3 m -
        {V,"id":"\u0061","method":"m"} => request "\u0061" m -
        {V,"id":"1","method":"m"} => request "1" m -
        {V,"id":true,"method":"m"} => fault reply -32600 null
        {V,"id":[1],"method":"m"} => fault reply -32600 null
        {V,"id":{},"method":"m"} => fault reply -32600 null
        "#,
    );
}

#[test]
fn what_is_not_json_is_answered_under_no_id() {
    check(
        r#"
        {"jsonrpc":"2.0","id":7,"method": => fault reply -32700 null
        {V,"id":7,"method":"m","params":{"a":"\ud800"}} => fault reply -32700 null
        {V,"id":7,"method":"m"}x => fault reply -32700 null
        x => fault reply -32700 null
        "#,
    );
    let deep = format!(r#"{{"id":1,"method":"m","params":{}}}"#, "[".repeat(200));
    assert_eq!(shown(&deep), "fault reply -32700 null");
    let fault = read(b"{\"x\":\"\xFF\"}", 128).unwrap_err();
    assert_eq!(fault.fault, PeerFault::NotJson);
    assert_eq!(fault.reply.unwrap().1.code, -32700);
}

#[test]
fn an_answer_that_is_no_json_is_still_the_answer() {
    check(
        r#"
        {V,"id":7,"result":{"text":"\ud83d"}} => fault reply -32700 null spoils 7
        {V, "id" : 7 , "result":{"n":NaN}} => fault reply -32700 null spoils 7
        {V,"result":{"a":["\"}",{"\\":"\ud83d"}]},"id":7} => fault reply -32700 null spoils 7
        {V,"error":{"code":1,"message":"\ud83d"},"id":7} => fault reply -32700 null spoils 7
        {V,"id":7,"result":undefined} => fault reply -32700 null spoils 7
        {V,"id":7,"result":"\ud83d"}} => fault reply -32700 null spoils 7
        {V,"id":7,"result":"\ud83d","id":8} => fault reply -32700 null
        {V,"id":7,"result":"\ud83d","method":"m"} => fault reply -32700 null
        {V,"id":"7","result":"\ud83d"} => fault reply -32700 null
        {V,"id":7a,"result":"\ud83d"} => fault reply -32700 null
        {V,"result":{"id":7,"a":"\ud83d"}} => fault reply -32700 null
        {V,"id":7,"params":"\ud83d"} => fault reply -32700 null
        [{V,"id":7,"result":"\ud83d"}] => fault reply -32700 null
        "#,
    );
    let deep = format!(
        r#"{{"id":7,"result":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    assert_eq!(shown(&deep), "fault reply -32700 null spoils 7");
    let fault = read(b"{\"id\":7,\"result\":\"\xFF\"}", 128).unwrap_err();
    assert_eq!(fault.spoils, Some(RequestId::from(7)));
}

#[test]
fn what_is_no_message_is_refused_under_its_id_if_it_has_one() {
    check(
        r#"
        42 => fault reply -32600 null
        "x" => fault reply -32600 null
        null => fault reply -32600 null
        [] => fault reply -32600 null
        [{V,"id":1,"method":"m"}] => fault reply -32600 null
        {} => fault reply -32600 null
        {V,"id":1} => fault reply -32600 1 spoils 1
        {V,"id":null} => fault reply -32600 null
        {V,"id":1,"method":5} => fault reply -32600 1
        {V,"id":1,"method":null} => fault reply -32600 1
        {V,"method":5} => fault reply -32600 null
        {"id":1,"method":"m"} => fault reply -32600 1
        {"jsonrpc":"1.0","id":1,"method":"m"} => fault reply -32600 1
        {"jsonrpc":2.0,"id":1,"method":"m"} => fault reply -32600 1
        {V,"id":1,"method":"m","params":1} => fault reply -32600 1
        {V,"id":1,"method":"m","params":"x"} => fault reply -32600 1
        {V,"id":1,"method":"m","params":false} => fault reply -32600 1
        {V,"id":1,"method":"m","result":{}} => fault reply -32600 1
        {V,"id":1,"method":"m","error":{}} => fault reply -32600 1
        {V,"method":"m","result":{}} => fault reply -32600 null
        "#,
    );
}

#[test]
fn a_key_twice_is_refused_at_any_level() {
    check(
        r#"
        {V,"id":1,"method":"m","params":{"a":1,"a":2}} => fault reply -32600 1
        {V,"id":1,"method":"m","params":[{"x":{"a":1,"\u0061":2}}]} => fault reply -32600 1
        {V,"id":1,"method":"m","method":"n"} => fault reply -32600 1
        {V,"id":1,"id":1,"method":"m"} => fault reply -32600 null
        {V,"id":1,"result":{"a":1,"a":2}} => fault spoils 1
        {V,"id":1,"id":2,"result":{}} => fault
        "#,
    );
}

#[test]
fn notifications_are_never_answered() {
    check(
        r#"
        {"method":"m"} => fault
        {V,"method":"m","params":1} => fault
        {V,"method":"m","params":{"a":1,"a":2}} => fault
        {V,"method":"m","method":"n"} => fault
        "#,
    );
}

#[test]
fn a_spoiled_answer_is_dropped_and_its_request_named() {
    check(
        r#"
        {V,"id":9,"result":null,"error":{"code":1,"message":"x"}} => fault spoils 9
        {V,"id":9,"error":"x"} => fault spoils 9
        {V,"id":9,"error":{"code":1}} => fault spoils 9
        {V,"id":9,"error":{"message":"x"}} => fault spoils 9
        {V,"id":9,"error":{"code":"1","message":"x"}} => fault spoils 9
        {V,"id":9,"error":[1,"x"]} => fault spoils 9
        {V,"id":9,"error":null} => fault spoils 9
        {"id":9,"result":{}} => fault spoils 9
        {V,"result":{}} => fault
        {V,"id":[9],"result":{}} => fault
        {V,"id":null,"result":1,"error":1} => fault
        "#,
    );
}

#[test]
fn errors_quote_nothing_of_the_input() {
    for frame in [
        r#"{"token-1":"token-2","#,
        r#"{"jsonrpc":"token-1","id":1,"method":"token-2"}"#,
        r#"{"jsonrpc":"2.0","id":["token-1"],"method":"token-2"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":{"token-1":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"token-1"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"token-1":1,"token-1":2}}"#,
    ] {
        let fault = read(frame.as_bytes(), 128).unwrap_err();
        assert!(!format!("{fault:?}").contains("token"), "{fault:?}");
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    // What is there already must stay, whatever is in it.
    let mut out = Vec::from("\u{2028}\r\n");
    write(&mut out);
    String::from_utf8(out.split_off(5)).unwrap()
}

fn raw(text: &str) -> alloc::boxed::Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

#[test]
fn frames_have_the_usual_order_of_members() {
    let id = RequestId::from(7);
    for (frame, expected) in [
        (
            written(|out| write_request(out, 1, "a/b", &[1])),
            r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":[1]}"#,
        ),
        (
            written(|out| write_request(out, 2, "a\"b", &())),
            r#"{"jsonrpc":"2.0","id":2,"method":"a\"b"}"#,
        ),
        (
            written(|out| write_notification(out, "m", &raw("{}"))),
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
        ),
        (
            written(|out| write_notification(out, "m", &None::<u8>)),
            r#"{"jsonrpc":"2.0","method":"m"}"#,
        ),
        (
            written(|out| write_result(out, &id, &())),
            r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
        ),
        (
            written(|out| {
                write_error(
                    out,
                    &RequestId::NULL,
                    &RpcError::new(-32600, "n\no").with_data("x"),
                )
            }),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"n o","data":"x"}}"#,
        ),
        (
            written(|out| {
                let (id, error) = too_long(9).reply.unwrap();
                write_error(out, &id, &error);
            }),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A line is longer than the limit","data":{"code":"frame_too_large","limit":9}}}"#,
        ),
    ] {
        assert_eq!(frame, format!("{expected}\n"));
    }
}

#[test]
fn line_ends_of_raw_texts_do_not_break_a_frame() {
    let params = raw("{\r\n\t\"a\": [\n1,\"\u{2028}\u{2029}é“\u{2028}\"]}");
    assert_eq!(
        written(|out| write_notification(out, "m", &params)),
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{  \t\"a\": [ 1,\"\\u2028\\u2029é“\\u2028\"]}}\n"
    );
}

#[test]
fn many_separators_cost_linear_time() {
    // Quadratic time would not end within the patience of anyone who runs this.
    let text = "\u{2028}".repeat(2_000_000);
    let frame = written(|out| write_notification(out, "m", &[&text]));
    assert_eq!(frame.matches("\\u2028").count(), 2_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_has_one_line_end_and_reads_back(
        method in ".{0,9}",
        text in "[\u{0}-\u{ff}\u{2020}-\u{2030}]{0,30}",
        id in any::<i64>(),
    ) {
        let frame = written(|out| write_request(out, id.unsigned_abs() >> 1, &method, &[&text]));
        prop_assert_eq!(frame.matches(['\n', '\r', '\u{2028}', '\u{2029}']).count(), 1);
        prop_assert!(frame.ends_with('\n'));
        let Ok(Message::Request { id: back, method: name, params: Some(params) }) =
            read(frame.as_bytes(), 128)
        else {
            return Err(TestCaseError::fail(frame));
        };
        prop_assert_eq!(back.as_u64(), Some(id.unsigned_abs() >> 1));
        prop_assert_eq!(&name, &method);
        prop_assert_eq!(serde_json::from_str::<[String; 1]>(params).unwrap(), [text.clone()]);

        let id = RequestId::from(id);
        let frame = written(|out| write_result(out, &id, &text));
        prop_assert_eq!(frame.matches(['\n', '\r', '\u{2028}', '\u{2029}']).count(), 1);
        let Ok(Message::Response { id: back, result: Ok(result) }) = read(frame.as_bytes(), 128) else {
            return Err(TestCaseError::fail(frame));
        };
        prop_assert_eq!(back, id);
        prop_assert_eq!(serde_json::from_str::<String>(result).unwrap(), text);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Err(fault) = read(&bytes, 128) {
            let same = match (&fault.reply, &fault.spoils) {
                (Some((id, _)), Some(spoiled)) => id == spoiled || id.is_null(),
                _ => true,
            };
            prop_assert!(same);
        }
    }
}
