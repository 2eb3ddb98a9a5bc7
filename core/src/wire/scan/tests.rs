//! Tests of the scan: tables, and agreement with serde_json over generated and damaged text.

use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn check(text: &str, expected: Result<(), ScanFault>) {
    assert_eq!(scan(text.as_bytes(), 128).map(|_| ()), expected, "{text}");
}

#[test]
fn the_grammar_is_strict() {
    for text in [
        "0",
        "-0",
        "10",
        "1.50",
        "1e5",
        "1E+05",
        "-1.0e-3",
        "1e999",
        "\"\"",
        "\"\u{7f}é\u{2028}\"",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        " [ ] ",
        "\t{\r\n}\n",
        "[1,2]",
        "{\"a\":[{}]}",
        r#""\u00e9\n\"\\\/\b\f\r\t""#,
        r#""\ud83d\ude00""#,
        "123456789012345678901234567890",
    ] {
        check(text, Ok(()));
    }
    for text in [
        "",
        " ",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "nul",
        "truE",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{1:2}",
        "[1}",
        "{\"a\":1]",
        "\"",
        "\"a",
        "\"\n\"",
        "\"\u{0}\"",
        r#""\x""#,
        r#""\"#,
        r#""\u12""#,
        r#""\u12g4""#,
        "'a'",
        "NaN",
        "\u{feff}1",
        "[1]]",
        "{\"a\":1}{}",
        "{}\u{a0}",
        "{\"a\" 1}",
    ] {
        check(text, Err(ScanFault::Grammar));
    }
}

#[test]
fn lone_surrogates_are_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800""#,
        r#""\ud800\u0041""#,
        r#"{"\udfff":1}"#,
    ] {
        check(text, Err(ScanFault::LoneSurrogate));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\xaf\"",
    ] {
        assert_eq!(scan(bytes, 128), Err(ScanFault::NotUtf8));
    }
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check(&nest(128), Ok(()));
    check(&nest(129), Err(ScanFault::TooDeep));
    check(&"{\"a\":".repeat(129), Err(ScanFault::TooDeep));
    let deep = nest(1_000_000);
    assert!(scan(deep.as_bytes(), usize::MAX).is_ok());
    assert_eq!(scan(b"[]", 0), Err(ScanFault::TooDeep));
    assert!(scan(b"1", 0).is_ok());
}

fn has_duplicates(text: &str) -> bool {
    scan(text.as_bytes(), 128).expect(text).duplicates
}

#[test]
fn a_key_twice_in_one_object_is_seen_at_every_level() {
    for (text, expected) in [
        (r#"{"a":1,"a":1}"#, true),
        (r#"{"a":1,"\u0061":1}"#, true),
        (r#"{"\u0061":1,"\u0061":1}"#, true),
        (r#"{"":1,"":1}"#, true),
        (r#"{"a":1,"b":{"a":1}}"#, false),
        (r#"{"b":{"a":1},"a":1}"#, false),
        (r#"[{"a":1},{"a":1}]"#, false),
        (r#"[[{"x":{"a":1,"b":2,"a":3}}]]"#, true),
        (r#"{"a":{"b":1},"c":2,"a":3}"#, true),
        (r#"{"a":"a","b":["a","a"]}"#, false),
        (r#"{"é":1,"\u00e9":1}"#, true),
        (r#"{"\u0061\u0062":1,"\u0061":1,"b":1}"#, false),
    ] {
        assert_eq!(has_duplicates(text), expected, "{text}");
    }
}

#[test]
fn keys_beyond_the_inline_ones_are_compared_too() {
    let object = |keys: &[String]| {
        let members: Vec<String> = keys
            .iter()
            .map(|key| format!("\"{key}\":{{\"k\":0}}"))
            .collect();
        format!("{{{}}}", members.join(","))
    };
    let keys: Vec<String> = (0..200).map(|n| format!("key{n}")).collect();
    assert!(!has_duplicates(&object(&keys)));
    for (first, second) in [
        (0, 1),
        (0, 199),
        (23, 24),
        (5, 100),
        (24, 25),
        (100, 199),
        (198, 199),
    ] {
        let mut keys = keys.clone();
        keys[second] = keys[first].clone();
        assert!(has_duplicates(&object(&keys)), "{first} {second}");
        // The same inside an object whose own keys fill the inline part.
        let mut around: Vec<String> = (0..40).map(|n| format!("\"o{n}\":0")).collect();
        around.push(format!("\"in\":{}", object(&keys)));
        assert!(has_duplicates(&format!("{{{}}}", around.join(","))));
    }
}

#[test]
fn very_many_keys_take_little_more_than_linear_time() {
    // Quadratic time would not end within the patience of anyone who runs this.
    let members: Vec<String> = (0..300_000).map(|n| format!("\"{n}\":0")).collect();
    assert!(!has_duplicates(&format!("{{{}}}", members.join(","))));
    let long = "x".repeat(40);
    let members: Vec<String> = (0..50_000)
        .map(|n| format!("\"\\u0061{long}{n}\":0"))
        .collect();
    assert!(!has_duplicates(&format!("{{{}}}", members.join(","))));
}

#[test]
fn members_of_the_envelope_are_found_at_the_top_only() {
    let text = r#" { "id" : 7 , "x":{"id":8,"method":"no"}, "\u006dethod":"a\n", "params": [ 1 ],
        "result":{"error":1} ,"error":null,"jsonrpc":"2.0" } "#;
    let Shape::Object(envelope) = scan(text.as_bytes(), 9).unwrap().shape else {
        panic!("an object");
    };
    let expected = Envelope {
        jsonrpc: Some("\"2.0\""),
        id: Some("7"),
        id_twice: false,
        method: Some(r#""a\n""#),
        params: Some("[ 1 ]"),
        result: Some(r#"{"error":1}"#),
        error: Some("null"),
    };
    assert_eq!(envelope, expected);
    assert_eq!(string_value(r#""a\n""#).as_deref(), Some("a\n"));
    assert_eq!(string_value("7"), None);
    assert_eq!(scan(b"[{\"id\":1}]", 9).unwrap().shape, Shape::Array);
    assert_eq!(scan(b"\"{\"", 9).unwrap().shape, Shape::Scalar);
}

/// What serde_json says of the same text: its grammar from one target type, surrogates from another.
fn plain(bytes: &[u8]) -> Option<bool> {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return Some(false);
    };
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Some(false);
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Some(true),
        // A number may be out of the range of serde_json's values and JSON nevertheless.
        Err(fault) if format!("{fault}").contains("out of range") => None,
        Err(_) => Some(false),
    }
}

fn json() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[a-c]{0,2}",
        "[ -!#-\\[\\]-~]{0,90}",
        "(é|漢|🙂|\u{2028}|\\\\n|\\\\u0041|\\\\ud83d\\\\ude00|\\\\\"){0,6}",
    ]
    .prop_map(|inner| format!("\"{inner}\""));
    let leaf = prop_oneof![
        Just(String::from("null")),
        Just(String::from("true")),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        string.clone(),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let member =
            (string.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}: {value}"));
        prop_oneof![
            proptest::collection::vec(inner, 0..6)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 0..6)
                .prop_map(|items| format!("{{{}}}", items.join(" ,"))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_json_passes(text in json()) {
        prop_assert!(scan(text.as_bytes(), 128).is_ok());
    }

    #[test]
    fn damaged_json_is_judged_as_by_serde_json(
        text in json(),
        damages in proptest::collection::vec(
            (any::<proptest::sample::Index>(), prop_oneof![
                proptest::sample::select(b"{}[]\",:\\u019.-eEdDtn \n\x00".to_vec()),
                any::<u8>(),
            ], 0..3u8),
            1..4,
        ),
    ) {
        let mut bytes = text.into_bytes();
        for (place, byte, how) in damages {
            let at = place.index(bytes.len() + 1);
            match how {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at / 2),
            }
        }
        if let Some(valid) = plain(&bytes) {
            prop_assert_eq!(scan(&bytes, 128).is_ok(), valid, "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn duplicates_are_those_of_the_plain_definition(
        keys in proptest::collection::vec("[a-f][0-9]?|\\\\u006[1-6]", 0..60),
    ) {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
        let mut values: Vec<String> = keys
            .iter()
            .map(|key| serde_json::from_str(&format!("\"{key}\"")).unwrap())
            .collect();
        values.sort();
        let twice = values.windows(2).any(|pair| pair[0] == pair[1]);
        prop_assert_eq!(has_duplicates(&format!("{{{}}}", members.join(","))), twice);
    }
}
