//! `initialize`, `authenticate`, `logout` and the capabilities of both sides (ACP pages:
//! initialization, authentication).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::object::{OWN, object, parse, tagged, write_tagged};

/// A version of the protocol. Any JSON integer is read, those out of range as the nearest one:
/// the answer to a version we do not know is the version we know, whatever it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion(pub u16);

impl ProtocolVersion {
    /// The version this crate speaks.
    pub const V1: Self = Self(1);
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(from)?.get();
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(de::Error::custom(format_args!(
                "{OWN}expected an integer in `protocolVersion`"
            )));
        }
        // What does not parse is an integer that is too large.
        let size = digits.parse().unwrap_or(u16::MAX);
        Ok(Self(if negative { 0 } else { size }))
    }
}

object! {
    /// `initialize`: the client says what it can do.
    InitializeRequest {
        /// The newest version it speaks.
        "protocolVersion" protocol_version: ProtocolVersion = Required,
        ;
        /// What it can do.
        "clientCapabilities" client_capabilities: ClientCapabilities = Defaulted,
        /// Who it is.
        "clientInfo" client_info: Option<Implementation> = Lenient,
    }
}

object! {
    /// The answer to `initialize`: the agent says what it can do.
    InitializeResponse {
        /// The version that both speak from here on.
        "protocolVersion" protocol_version: ProtocolVersion = Required,
        ;
        /// What it can do.
        "agentCapabilities" agent_capabilities: AgentCapabilities = Defaulted,
        /// How to authenticate; empty: nothing to choose.
        "authMethods" auth_methods: Vec<AuthMethod> = LenientListShown,
        /// Who it is.
        "agentInfo" agent_info: Option<Implementation> = Lenient,
    }
}

object! {
    /// The name and version of a program.
    Implementation {
        /// Its name.
        "name" name: String = Required,
        /// Its version.
        "version" version: String = Required,
        ;
        /// Its name for people.
        "title" title: Option<String> = Lenient,
    }
}

object! {
    /// A capability that has no settings: absent or null is no, any object is yes.
    Marker {}
}

object! {
    /// What a client can do. What it leaves out it cannot.
    ClientCapabilities {
        /// Files.
        "fs" fs: FileSystemCapabilities = Defaulted,
        /// All `terminal/*` methods.
        "terminal" terminal: bool = Defaulted,
        /// What it takes of a session.
        "session" session: Option<ClientSessionCapabilities> = Lenient,
        /// Subagents and messages between sessions.
        "subagents" subagents: Option<Marker> = Lenient,
        /// `plan_update` and `plan_removed`.
        "plan" plan: Option<Marker> = Lenient,
        /// Authentication.
        "auth" auth: AuthCapabilities = Defaulted,
        /// Questions to the person.
        "elicitation" elicitation: Option<ElicitationCapabilities> = Lenient,
    }
}

object! {
    /// What a client can do with files.
    FileSystemCapabilities {
        /// `fs/read_text_file`.
        "readTextFile" read_text_file: bool = Defaulted,
        /// `fs/write_text_file`.
        "writeTextFile" write_text_file: bool = Defaulted,
    }
}

object! {
    /// What a client takes of a session.
    ClientSessionCapabilities {
        /// `compaction_update` and `compaction_summary_chunk`.
        "compaction" compaction: Option<Marker> = Lenient,
        /// Kinds of configuration options.
        "configOptions" config_options: Option<SessionConfigOptionsCapabilities> = Lenient,
        /// `notice`.
        "notices" notices: Option<Marker> = Lenient,
    }
}

object! {
    /// Kinds of configuration options that a client takes beyond `select`.
    SessionConfigOptionsCapabilities {
        /// `boolean`.
        "boolean" boolean: Option<Marker> = Lenient,
    }
}

object! {
    /// Ways of authentication that a client can carry out.
    AuthCapabilities {
        /// Running the agent in a terminal.
        "terminal" terminal: bool = Defaulted,
    }
}

object! {
    /// Ways a client can ask its person. An empty object is none.
    ElicitationCapabilities {
        /// A form.
        "form" form: Option<Marker> = Lenient,
        /// A page to open.
        "url" url: Option<Marker> = Lenient,
    }
}

object! {
    /// What an agent can do.
    AgentCapabilities {
        /// `session/load`.
        "loadSession" load_session: bool = Defaulted,
        /// Blocks of a prompt beyond text and resource links.
        "promptCapabilities" prompt_capabilities: PromptCapabilities = Defaulted,
        /// Transports of MCP servers beyond stdio.
        "mcpCapabilities" mcp_capabilities: McpCapabilities = Defaulted,
        /// Methods of sessions.
        "sessionCapabilities" session_capabilities: SessionCapabilities = Defaulted,
        /// Authentication.
        "auth" auth: AgentAuthCapabilities = Defaulted,
    }
}

object! {
    /// Blocks of a prompt beyond text and resource links.
    PromptCapabilities {
        /// `image`.
        "image" image: bool = Defaulted,
        /// `audio`.
        "audio" audio: bool = Defaulted,
        /// `resource`.
        "embeddedContext" embedded_context: bool = Defaulted,
    }
}

object! {
    /// Transports of MCP servers beyond stdio.
    McpCapabilities {
        /// Streamable HTTP.
        "http" http: bool = Defaulted,
        /// HTTP with server-sent events.
        "sse" sse: bool = Defaulted,
    }
}

object! {
    /// Methods and request members of sessions.
    SessionCapabilities {
        /// `session/list`.
        "list" list: Option<Marker> = Lenient,
        /// `session/delete`.
        "delete" delete: Option<Marker> = Lenient,
        /// `additionalDirectories`.
        "additionalDirectories" additional_directories: Option<Marker> = Lenient,
        /// `systemPrompt`.
        "systemPrompt" system_prompt: Option<SessionSystemPromptCapabilities> = Lenient,
        /// `session/resume`.
        "resume" resume: Option<Marker> = Lenient,
        /// `session/close`.
        "close" close: Option<Marker> = Lenient,
    }
}

object! {
    /// What a client may do with the system prompt beyond appending text.
    SessionSystemPromptCapabilities {
        /// Modes.
        "mode" mode: Option<SessionSystemPromptModeCapabilities> = Lenient,
    }
}

object! {
    /// Modes of a client's system prompt beyond `append`.
    SessionSystemPromptModeCapabilities {
        /// `override`.
        "override" r#override: Option<Marker> = Lenient,
    }
}

object! {
    /// Authentication that an agent offers.
    AgentAuthCapabilities {
        /// `logout`.
        "logout" logout: Option<Marker> = Lenient,
    }
}

/// A way to authenticate. Unknown types read as `agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthMethod {
    /// The agent does it itself when `authenticate` names it.
    Agent(AuthMethodAgent),
    /// The client runs the agent in a terminal.
    Terminal(AuthMethodTerminal),
}

object! {
    /// The agent does it itself.
    AuthMethodAgent {
        /// Its id.
        "id" id: String = Required,
        /// Its name.
        "name" name: String = Required,
        ;
        /// What it does.
        "description" description: Option<String> = Lenient,
    }
}

object! {
    /// The client runs the agent in a terminal.
    AuthMethodTerminal {
        /// Its id.
        "id" id: String = Required,
        /// Its name.
        "name" name: String = Required,
        ;
        /// What it does.
        "description" description: Option<String> = Lenient,
        /// Appended to the agent's own command line.
        "args" args: Vec<String> = List,
        /// Set beside the agent's own environment.
        "env" env: Option<BTreeMap<String, String>> = Optional,
    }
}

impl Serialize for AuthMethod {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Agent(method) => method.serialize(out),
            Self::Terminal(method) => write_tagged(out, "type", "terminal", method),
        }
    }
}

impl<'de> Deserialize<'de> for AuthMethod {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (raw, tag) = tagged(from, "type")?;
        match tag.as_deref() {
            Some("terminal") => parse(raw).map(Self::Terminal),
            Some(_) | None => parse(raw).map(Self::Agent),
        }
    }
}

object! {
    /// `authenticate`.
    AuthenticateRequest {
        /// One of the ids that `initialize` listed.
        "methodId" method_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `authenticate`.
    AuthenticateResponse {}
}

object! {
    /// `logout`.
    LogoutRequest {}
}

object! {
    /// The answer to `logout`.
    LogoutResponse {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn any_integer_is_a_version_and_nothing_else_is() {
        for (text, version) in [
            ("0", 0),
            ("1", 1),
            ("2", 2),
            ("65535", 65535),
            ("65536", 65535),
            ("99999999999999999999999", 65535),
            ("-1", 0),
        ] {
            let request: InitializeRequest =
                serde_json::from_str(&format!(r#"{{"protocolVersion":{text}}}"#)).unwrap();
            assert_eq!(request.protocol_version, ProtocolVersion(version), "{text}");
        }
        for text in ["1.0", "1e0", "\"1\"", "null", "[1]", "true"] {
            let read = serde_json::from_str::<InitializeRequest>(&format!(
                r#"{{"protocolVersion":{text}}}"#
            ));
            assert!(read.is_err(), "{text}");
        }
        assert!(serde_json::from_str::<InitializeRequest>("{}").is_err());
    }

    #[test]
    fn a_capability_is_an_object_or_true_and_nothing_else() {
        let read = |text: &str| {
            serde_json::from_str::<InitializeRequest>(&format!(
                r#"{{"protocolVersion":1,"clientCapabilities":{text}}}"#
            ))
            .unwrap()
            .client_capabilities
        };
        let form = |text| read(text).elicitation.is_some_and(|e| e.form.is_some());
        assert!(form(r#"{"elicitation":{"form":{}}}"#));
        for text in [
            r#"{"elicitation":{"form":true}}"#,
            r#"{"elicitation":{"form":[]}}"#,
            r#"{"elicitation":{"form":null}}"#,
            r#"{"elicitation":{}}"#,
            "{}",
            "5",
            "null",
            "[]",
        ] {
            assert!(!form(text), "{text}");
        }
        assert!(read(r#"{"terminal":true}"#).terminal);
        assert!(!read(r#"{"terminal":1}"#).terminal);
        assert!(!read(r#"{"fs":[true,true]}"#).fs.read_text_file);
        assert!(
            read(r#"{"fs":{"readTextFile":true,"writeTextFile":"x"}}"#)
                .fs
                .read_text_file
        );
    }

    #[test]
    fn an_empty_answer_says_what_it_does_not_offer() {
        let text = serde_json::to_string(&InitializeResponse::new(ProtocolVersion::V1)).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":false,"#,
                r#""promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"#,
                r#""mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{},"auth":{}},"#,
                r#""authMethods":[]}"#
            )
        );
    }
}
