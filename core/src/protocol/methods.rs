//! The methods of the protocol as types: the name, the request and the answer of each. Knows no
//! state.

use core::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::concerns::{Adapt, Choose, Concern};
use super::gates::{Gates, Offers};
use super::schema::{
    AuthenticateRequest, AuthenticateResponse, CloseSessionRequest, CloseSessionResponse,
    CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, DeleteSessionRequest, DeleteSessionResponse, InitializeRequest,
    InitializeResponse, Json, KillTerminalRequest, KillTerminalResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, LogoutRequest, LogoutResponse,
    NewSessionRequest, NewSessionResponse, PermissionOption, PromptRequest, PromptResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionId, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
    SetSessionModelRequest, SetSessionModelResponse, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use crate::wire::{RequestKey, RpcError};

/// A method: what is asked and what is answered.
pub trait Method {
    /// Its name on the wire; empty for [`Vendor`], whose names vary.
    const NAME: &'static str;
    /// What is asked.
    type Request: Serialize + DeserializeOwned;
    /// What is answered.
    type Response: Serialize + DeserializeOwned;
}

/// A method that the client asks of the agent.
pub trait AgentMethod: Method + hidden::Asked {}

/// A method that the agent asks of the client.
pub trait ClientMethod: Method + hidden::Asks {}

/// A method that opens a session.
pub trait Opens: AgentMethod {}

/// The right to answer one request. It cannot be copied: a request is answered once. What is
/// dropped is never answered before the end of the connection, when the side does it.
#[must_use = "a request waits for its answer"]
pub struct Asked<M> {
    pub(super) key: RequestKey,
    method: PhantomData<fn() -> M>,
}

impl<M> Asked<M> {
    pub(super) fn new(key: RequestKey) -> Self {
        Self {
            key,
            method: PhantomData,
        }
    }

    /// The name of the request in [`CancelRequest`](super::AgentEvent::CancelRequest).
    pub fn key(&self) -> RequestKey {
        self.key
    }
}

impl<M: Method> core::fmt::Debug for Asked<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Asked({} {:?})", M::NAME, self.key)
    }
}

impl<M> PartialEq for Asked<M> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<M> Eq for Asked<M> {}

pub(super) mod hidden {
    use super::{Gates, Offers};

    /// What the agent's side knows of a method it answers.
    pub trait Asked: super::Method {
        const KIND: super::AgentMethodKind;
        /// Takes out of an answer what the client does not take.
        fn fit(_: &mut Self::Response, _: Gates) {}
        /// What the answer offers from here on.
        fn offers(_: &Self::Response) -> Option<Offers> {
            None
        }
        /// The session a good answer makes known.
        fn made(_: &Self::Response) -> Option<super::SessionId> {
            None
        }
        /// The session the request is for.
        fn scope(_: &Self::Request) -> Option<&super::SessionId> {
            None
        }
        /// What the client advertises by it.
        fn gates(_: &Self::Request) -> Option<Gates> {
            None
        }
    }

    /// What the agent's side knows of a method it asks.
    pub trait Asks: super::Method {
        const KIND: super::ClientMethodKind;
        fn scope(_: &Self::Request) -> Option<&super::SessionId>;
        /// Whether a client with these gates takes the request.
        fn offered(_: &Self::Request, _: Gates) -> bool;
        /// What may be chosen, if it is a permission request.
        fn choices(_: &Self::Request) -> Option<&[super::PermissionOption]>;
        /// The id of the client's request that it belongs to, if it belongs to one.
        fn within(_: &Self::Request) -> Option<&super::Json>;
    }
}

macro_rules! agent_methods {
    ($( $(#[$doc:meta])* $name:ident($text:literal, $request:ident, $response:ident) )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            #[non_exhaustive]
            pub enum $name {}

            impl Method for $name {
                const NAME: &'static str = $text;
                type Request = $request;
                type Response = $response;
            }

            impl AgentMethod for $name {}

            impl hidden::Asked for $name {
                const KIND: AgentMethodKind = AgentMethodKind::$name;
                fn fit(response: &mut $response, gates: Gates) {
                    response.fit(gates);
                }
                fn offers(response: &$response) -> Option<Offers> {
                    response.offers()
                }
                fn made(response: &$response) -> Option<SessionId> {
                    response.made()
                }
                fn scope(request: &$request) -> Option<&SessionId> {
                    request.scope()
                }
                fn gates(request: &$request) -> Option<Gates> {
                    request.gates()
                }
            }
        )+

        /// Which method the client asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AgentMethodKind {
            $( $(#[$doc])* $name, )+
            /// Any other.
            Vendor,
        }

        impl AgentMethodKind {
            /// The method with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $text => Some(Self::$name), )+ _ => None }
            }

            /// Its name; empty for a vendor's method.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )+ Self::Vendor => "" }
            }

            /// Reads the text of a result as the answer to this method.
            pub(super) fn read(self, result: Result<&str, RpcError>) -> Result<AgentAnswer, BadAnswer> {
                match self {
                    $( Self::$name => read_answer(result, AgentAnswer::$name), )+
                    Self::Vendor => read_answer(result, AgentAnswer::Vendor),
                }
            }
        }

        /// The agent's answer to a request of the client.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[allow(clippy::large_enum_variant)] // moved once, from the queue to the embedder
        pub enum AgentAnswer {
            $( $(#[$doc])* $name(Result<$response, RpcError>), )+
            /// A vendor's method.
            Vendor(Result<Json, RpcError>),
        }

        impl AgentMethodKind {
            /// The answer that failed with `error`.
            pub(super) fn failed(self, error: RpcError) -> AgentAnswer {
                match self {
                    $( Self::$name => AgentAnswer::$name(Err(error)), )+
                    Self::Vendor => AgentAnswer::Vendor(Err(error)),
                }
            }
        }

        impl AgentAnswer {
            /// Whether it is an error.
            pub fn error(&self) -> Option<&RpcError> {
                match self {
                    $( Self::$name(result) => result.as_ref().err(), )+
                    Self::Vendor(result) => result.as_ref().err(),
                }
            }
        }
    };
}

agent_methods! {
    /// `initialize`.
    Initialize("initialize", InitializeRequest, InitializeResponse)
    /// `authenticate`.
    Authenticate("authenticate", AuthenticateRequest, AuthenticateResponse)
    /// `logout`.
    Logout("logout", LogoutRequest, LogoutResponse)
    /// `session/new`.
    NewSession("session/new", NewSessionRequest, NewSessionResponse)
    /// `session/load`.
    LoadSession("session/load", LoadSessionRequest, LoadSessionResponse)
    /// `session/resume`.
    ResumeSession("session/resume", ResumeSessionRequest, ResumeSessionResponse)
    /// `session/list`.
    ListSessions("session/list", ListSessionsRequest, ListSessionsResponse)
    /// `session/close`.
    CloseSession("session/close", CloseSessionRequest, CloseSessionResponse)
    /// `session/delete`.
    DeleteSession("session/delete", DeleteSessionRequest, DeleteSessionResponse)
    /// `session/set_mode`.
    SetMode("session/set_mode", SetSessionModeRequest, SetSessionModeResponse)
    /// `session/set_config_option`.
    SetConfigOption(
        "session/set_config_option", SetSessionConfigOptionRequest, SetSessionConfigOptionResponse
    )
    /// `session/set_model`, of older clients.
    SetModel("session/set_model", SetSessionModelRequest, SetSessionModelResponse)
    /// `session/prompt`.
    Prompt("session/prompt", PromptRequest, PromptResponse)
}

macro_rules! client_methods {
    ($(
        $(#[$doc:meta])*
        $name:ident($text:literal, $request:ident, $response:ident, $scope:expr, $offered:expr)
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            #[non_exhaustive]
            pub enum $name {}

            impl Method for $name {
                const NAME: &'static str = $text;
                type Request = $request;
                type Response = $response;
            }

            impl ClientMethod for $name {}

            impl hidden::Asks for $name {
                const KIND: ClientMethodKind = ClientMethodKind::$name;
                fn scope(request: &$request) -> Option<&SessionId> {
                    let scope: fn(&$request) -> Option<&SessionId> = $scope;
                    scope(request)
                }
                fn offered(request: &$request, gates: Gates) -> bool {
                    let offered: fn(&$request, Gates) -> bool = $offered;
                    offered(request, gates)
                }
                fn choices(request: &$request) -> Option<&[PermissionOption]> {
                    request.choices()
                }
                fn within(request: &$request) -> Option<&Json> {
                    request.within()
                }
            }
        )+

        /// Which method the agent asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ClientMethodKind {
            $( $(#[$doc])* $name, )+
            /// Any other.
            Vendor,
        }

        impl ClientMethodKind {
            /// The method with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $text => Some(Self::$name), )+ _ => None }
            }

            /// Its name; empty for a vendor's method.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )+ Self::Vendor => "" }
            }

            /// Reads the text of a result as the answer to this method.
            pub(super) fn read(self, result: Result<&str, RpcError>) -> Result<ClientAnswer, BadAnswer> {
                match self {
                    $( Self::$name => read_answer(result, ClientAnswer::$name), )+
                    Self::Vendor => read_answer(result, ClientAnswer::Vendor),
                }
            }

            /// The answer that failed with `error`.
            pub(super) fn failed(self, error: RpcError) -> ClientAnswer {
                match self {
                    $( Self::$name => ClientAnswer::$name(Err(error)), )+
                    Self::Vendor => ClientAnswer::Vendor(Err(error)),
                }
            }
        }

        /// The client's answer to a request of the agent.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ClientAnswer {
            $( $(#[$doc])* $name(Result<$response, RpcError>), )+
            /// A vendor's method.
            Vendor(Result<Json, RpcError>),
        }

        impl ClientAnswer {
            /// Whether it is an error.
            pub fn error(&self) -> Option<&RpcError> {
                match self {
                    $( Self::$name(result) => result.as_ref().err(), )+
                    Self::Vendor(result) => result.as_ref().err(),
                }
            }
        }
    };
}

client_methods! {
    /// `session/request_permission`.
    RequestPermission(
        "session/request_permission", RequestPermissionRequest, RequestPermissionResponse,
        |request| Some(&request.session_id), |_, _| true
    )
    /// `fs/read_text_file`.
    ReadTextFile(
        "fs/read_text_file", ReadTextFileRequest, ReadTextFileResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::READ_FILE)
    )
    /// `fs/write_text_file`.
    WriteTextFile(
        "fs/write_text_file", WriteTextFileRequest, WriteTextFileResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::WRITE_FILE)
    )
    /// `terminal/create`.
    CreateTerminal(
        "terminal/create", CreateTerminalRequest, CreateTerminalResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::TERMINAL)
    )
    /// `terminal/output`.
    TerminalOutput(
        "terminal/output", TerminalOutputRequest, TerminalOutputResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::TERMINAL)
    )
    /// `terminal/wait_for_exit`.
    WaitForTerminalExit(
        "terminal/wait_for_exit", WaitForTerminalExitRequest, WaitForTerminalExitResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::TERMINAL)
    )
    /// `terminal/kill`.
    KillTerminal(
        "terminal/kill", KillTerminalRequest, KillTerminalResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::TERMINAL)
    )
    /// `terminal/release`.
    ReleaseTerminal(
        "terminal/release", ReleaseTerminalRequest, ReleaseTerminalResponse,
        |request| Some(&request.session_id), |_, gates| gates.has(Gates::TERMINAL)
    )
    /// `elicitation/create`.
    CreateElicitation(
        "elicitation/create", CreateElicitationRequest, CreateElicitationResponse,
        |request| request.session_id(), |request, gates| gates.takes_elicitation(request)
    )
}

/// A method of a vendor: its name begins with `_`, its request and answer are any JSON.
#[derive(Debug)]
#[non_exhaustive]
pub enum Vendor {}

impl Method for Vendor {
    const NAME: &'static str = "";
    type Request = Json;
    type Response = Json;
}

impl AgentMethod for Vendor {}
impl Opens for NewSession {}
impl Opens for LoadSession {}
impl Opens for ResumeSession {}

impl hidden::Asked for Vendor {
    const KIND: AgentMethodKind = AgentMethodKind::Vendor;
}

/// An answer that does not fit its method; for people, nothing quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadAnswer(pub(super) alloc::string::String);

fn read_answer<T: DeserializeOwned, A>(
    result: Result<&str, RpcError>,
    wrap: fn(Result<T, RpcError>) -> A,
) -> Result<A, BadAnswer> {
    use alloc::string::ToString;
    match result {
        Err(error) => Ok(wrap(Err(error))),
        Ok(text) => match serde_json::from_str(text) {
            Ok(response) => Ok(wrap(Ok(response))),
            Err(e) => Err(BadAnswer(super::schema::object::Unquoted(&e).to_string())),
        },
    }
}
