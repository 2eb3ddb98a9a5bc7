//! MCP servers as a client names them (ACP page: session setup). Every entry must be right.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::object::{OWN, object, parse, tagged, write_tagged};

/// An MCP server. `type` is absent or `stdio`, `http` (also `streamable-http`) or `sse`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpServer {
    /// A program, on its standard streams.
    Stdio(McpServerStdio),
    /// Streamable HTTP.
    Http(McpServerHttp),
    /// HTTP with server-sent events.
    Sse(McpServerSse),
}

impl McpServer {
    /// The name the client gave it.
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio(server) => &server.name,
            Self::Http(server) => &server.name,
            Self::Sse(server) => &server.name,
        }
    }
}

object! {
    /// A program, on its standard streams.
    McpServerStdio {
        /// Its name.
        "name" name: String = Required,
        /// The program, absolute.
        "command" command: String = Required,
        ;
        /// Its arguments.
        "args" args: Vec<String> = ListShown,
        /// Variables set for it.
        "env" env: Vec<EnvVariable> = Pairs,
    }
}

object! {
    /// Streamable HTTP.
    McpServerHttp {
        /// Its name.
        "name" name: String = Required,
        /// Its address.
        "url" url: String = Required,
        ;
        /// Headers sent with every request.
        "headers" headers: Vec<HttpHeader> = Pairs,
    }
}

object! {
    /// HTTP with server-sent events.
    McpServerSse {
        /// Its name.
        "name" name: String = Required,
        /// Its address.
        "url" url: String = Required,
        ;
        /// Headers sent with every request.
        "headers" headers: Vec<HttpHeader> = Pairs,
    }
}

object! {
    /// A variable of the environment.
    EnvVariable {
        /// Its name.
        "name" name: String = Required,
        /// Its value.
        "value" value: String = Required,
        ;
    }
}

object! {
    /// A header.
    HttpHeader {
        /// Its name.
        "name" name: String = Required,
        /// Its value.
        "value" value: String = Required,
        ;
    }
}

impl From<(String, String)> for EnvVariable {
    fn from((name, value): (String, String)) -> Self {
        Self::new(name, value)
    }
}

impl From<(String, String)> for HttpHeader {
    fn from((name, value): (String, String)) -> Self {
        Self::new(name, value)
    }
}

impl Serialize for McpServer {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stdio(server) => server.serialize(out),
            Self::Http(server) => write_tagged(out, "type", "http", server),
            Self::Sse(server) => write_tagged(out, "type", "sse", server),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an MCP server")]
struct Kind<'a> {
    #[serde(default, rename = "type", borrow)]
    _kind: Option<alloc::borrow::Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for McpServer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        let Some(tag) = tag else {
            // Absent is not the same as wrong.
            parse::<Kind<'_>, _>(raw)?;
            return parse(raw).map(Self::Stdio);
        };
        if tag.eq_ignore_ascii_case("stdio") {
            parse(raw).map(Self::Stdio)
        } else if ["http", "streamable-http", "streamable_http"]
            .iter()
            .any(|name| tag.eq_ignore_ascii_case(name))
        {
            parse(raw).map(Self::Http)
        } else if tag.eq_ignore_ascii_case("sse") {
            parse(raw).map(Self::Sse)
        } else {
            Err(de::Error::custom(format_args!(
                "{OWN}expected an MCP server of type stdio, http or sse"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<McpServer, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn both_shapes_of_variables_and_headers_are_read() {
        let list =
            read(r#"{"name":"a","command":"/a","args":["x"],"env":[{"name":"K","value":"v"}]}"#);
        let map =
            read(r#"{"type":"stdio","name":"a","command":"/a","args":["x"],"env":{"K":"v"}}"#);
        assert_eq!(list.unwrap(), map.unwrap());
        let http =
            read(r#"{"type":"http","name":"a","url":"http://x","headers":{"b":"1","a":"2"}}"#);
        let Ok(McpServer::Http(http)) = http else {
            panic!("{http:?}")
        };
        assert_eq!(http.headers[0].name, "b");
        for text in [
            r#"{"name":"a","command":"/a","args":null,"env":null}"#,
            r#"{"name":"a","command":"/a"}"#,
        ] {
            assert_eq!(
                serde_json::to_string(&read(text).unwrap()).unwrap(),
                r#"{"name":"a","command":"/a","args":[],"env":[]}"#
            );
        }
    }

    #[test]
    fn one_bad_part_refuses_the_entry() {
        for text in [
            r#"{"name":"a"}"#,
            r#"{"name":"a","command":"/a","args":[1]}"#,
            r#"{"name":"a","command":"/a","args":"x"}"#,
            r#"{"name":"a","command":"/a","env":[{"name":"K"}]}"#,
            r#"{"name":"a","command":"/a","env":{"K":1}}"#,
            r#"{"type":"quic","name":"a","url":"x","headers":[]}"#,
            r#"{"type":"http","name":"a"}"#,
            r#"{"type":5,"name":"a","url":"x"}"#,
            r#"{"type":5,"name":"a","command":"/a"}"#,
            r#"[]"#,
            r#"null"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
