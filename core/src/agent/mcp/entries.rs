//! The MCP servers that a client names, as servers that can be asked. One bad entry refuses all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::agent::opening::refused;
use crate::limits::Limits;
use crate::mcp::{Entry, Way};
use crate::protocol::schema::McpServer;
use crate::secret::Secret;
use crate::wire::RpcError;

/// The servers, in their order; −32602 with `data.code: "mcp_invalid"` says which entry is wrong.
pub(in crate::agent) fn entries(
    servers: &[McpServer],
    limits: &Limits,
) -> Result<Vec<Entry>, RpcError> {
    if servers.len() > limits.max_mcp_servers {
        let most = limits.max_mcp_servers;
        let why = format!("mcpServers has more than {most} entries");
        return Err(refused("mcp_invalid", &why));
    }
    let entry = |(at, server): (usize, &McpServer)| {
        Entry::new(server.name(), way(server))
            .map_err(|fault| refused("mcp_invalid", &format!("mcpServers[{at}]: {fault}")))
    };
    let entries: Vec<Entry> = servers
        .iter()
        .enumerate()
        .map(entry)
        .collect::<Result<_, _>>()?;
    for (at, entry) in entries.iter().enumerate() {
        // Rules, approvals and `/mcp` mean a server by its name.
        if let Some(before) = entries[..at].iter().position(|it| it.name == entry.name) {
            let why = format!("mcpServers[{at}]: it has the name of mcpServers[{before}]");
            return Err(refused("mcp_invalid", &why));
        }
    }
    Ok(entries)
}

fn way(server: &McpServer) -> Way {
    match server {
        McpServer::Stdio(server) => Way::Stdio {
            command: server.command.clone(),
            args: server.args.clone(),
            env: hidden(server.env.iter().map(|it| (&it.name, &it.value))),
        },
        McpServer::Http(server) => Way::Http {
            url: server.url.clone(),
            headers: hidden(server.headers.iter().map(|it| (&it.name, &it.value))),
        },
        McpServer::Sse(server) => Way::Sse {
            url: server.url.clone(),
            headers: hidden(server.headers.iter().map(|it| (&it.name, &it.value))),
        },
    }
}

/// Names, with values that nobody is shown.
fn hidden<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Vec<(String, Secret)> {
    let one = |(name, value): (&String, &String)| (name.clone(), Secret::new(name, value));
    pairs.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<usize, &str>) {
        let read: Result<Vec<McpServer>, _> = serde_json::from_str(text);
        let found = match &read {
            Ok(servers) => entries(servers, &Limits::default()),
            Err(_) => Err(RpcError::invalid_params("does not decode")),
        };
        match (found, expected) {
            (Ok(found), Ok(count)) => assert_eq!(found.len(), count, "{text}"),
            (Err(error), Err(why)) => {
                assert_eq!(error.code, -32602);
                assert!(error.message.contains(why), "{text}: {}", error.message);
                assert!(
                    !error.message.contains("s3cret"),
                    "{text}: {}",
                    error.message
                );
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn every_spelling_is_taken_and_everything_malformed_refuses_the_whole() {
        let good = [
            r#"{"name":"a","command":"x","args":[],"env":[]}"#,
            r#"{"name":" a ","type":"stdio","command":"/x","args":null,"env":null}"#,
            r#"{"name":"a","type":"STDIO","command":"x","env":{"A":"s3cret"}}"#,
            r#"{"name":"a","command":"x","env":[{"name":"A","value":"s3cret"}]}"#,
            r#"{"name":"a","type":"http","url":"http://h","headers":[]}"#,
            r#"{"name":"a","type":"Streamable-HTTP","url":"https://h/x","headers":{"A":"s3cret"}}"#,
            r#"{"name":"a","type":"streamable_http","url":"http://h","headers":null}"#,
            r#"{"name":"a","type":"SSE","url":"http://h","headers":[{"name":"A","value":"s3cret"}]}"#,
        ];
        for entry in good {
            check(&format!("[{entry}]"), Ok(1));
        }
        let apart: Vec<String> = (1..)
            .zip(good)
            .map(|(n, entry)| entry.replacen("\"a\"", &format!("\"a{n}\""), 1))
            .collect();
        check(&format!("[{}]", apart.join(",")), Ok(good.len()));
        check(
            &format!("[{},{},{}]", apart[0], good[0], good[1]),
            Err("mcpServers[2]: it has the name of mcpServers[1]"),
        );
        for (entry, why) in [
            (r#"{"name":"a"}"#, "decode"),
            (r#"{"command":"x"}"#, "decode"),
            (r#"{"name":"a","type":"quic","url":"http://h"}"#, "decode"),
            (r#"{"name":"a","type":"http","command":"x"}"#, "decode"),
            (r#"{"name":7,"command":"x"}"#, "decode"),
            (r#"{"name":"a","command":"x","args":"y"}"#, "decode"),
            (r#"{"name":"a","command":"x","args":[7]}"#, "decode"),
            (r#"{"name":"a","command":"x","env":{"A":7}}"#, "decode"),
            (r#"{"name":"a","command":"x","env":["s3cret"]}"#, "decode"),
            (
                r#"{"name":"a","command":"x","env":[{"name":"A"}]}"#,
                "decode",
            ),
            ("7", "decode"),
            ("null", "decode"),
            (r#"{"name":" ","command":"x"}"#, "name is empty"),
            (r#"{"name":"a","command":" "}"#, "command is empty"),
            (r#"{"name":"a","command":"x","args":["\u0000"]}"#, "NUL"),
            (
                r#"{"name":"a","command":"x","env":{"A=B":"s3cret"}}"#,
                "variable",
            ),
            (
                r#"{"name":"a","type":"http","url":"h/s3cret"}"#,
                "url is not",
            ),
            (
                r#"{"name":"a","type":"sse","url":"file:///x"}"#,
                "url is not",
            ),
            (
                r#"{"name":"a","type":"http","url":"http://h","headers":{"A B":"s3cret"}}"#,
                "header",
            ),
            (
                r#"{"name":"a","type":"http","url":"http://h","headers":{"A":"s3cret\r\nB: c"}}"#,
                "header",
            ),
        ] {
            check(&format!("[{entry}]"), Err(why));
            check(&format!("[{},{entry}]", apart[0]), Err(why));
        }
        let many = alloc::vec![good[0]; Limits::default().max_mcp_servers + 1];
        check(&format!("[{}]", many.join(",")), Err("more than"));
    }
}
