//! What goes into a side and what comes out of it, as data. Knows no state.

use alloc::string::String;

use super::methods::{
    AgentAnswer, Asked, Authenticate, ClientAnswer, CloseSession, CreateElicitation,
    CreateTerminal, DeleteSession, Initialize, KillTerminal, ListSessions, LoadSession, Logout,
    NewSession, ReadTextFile, ReleaseTerminal, RequestPermission, ResumeSession, SetConfigOption,
    SetMode, SetModel, TerminalOutput, Vendor, WaitForTerminalExit, WriteTextFile,
};
use super::schema::{
    AuthenticateRequest, CloseSessionRequest, CreateElicitationRequest, CreateTerminalRequest,
    DeleteSessionRequest, InitializeRequest, Json, KillTerminalRequest, ListSessionsRequest,
    LoadSessionRequest, LogoutRequest, NewSessionRequest, PromptRequest, ReadTextFileRequest,
    ReleaseTerminalRequest, RequestPermissionRequest, ResumeSessionRequest, SessionId,
    SessionNotification, SetSessionConfigOptionRequest, SetSessionModeRequest,
    SetSessionModelRequest, TerminalOutputRequest, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use crate::error::PeerFault;
use crate::ids::{AskId, SessionKey, TurnKey};
use crate::wire::RequestKey;

/// What the other end of the connection did. Exhaustive: drivers match it whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerInput<'a> {
    /// Bytes, cut anywhere; at most [`Machine::room`](crate::Machine::room) of them.
    Received(&'a [u8]),
    /// How many of the transmitted bytes are not yet taken by the operating system. To be said
    /// after every attempt to write, also when it is 0: producers wait for it.
    Unsent(usize),
    /// No more bytes will come. A last line without its end counts.
    PeerFinished,
    /// Nothing can be sent any more.
    PeerGone,
}

/// What a side wants done. Exhaustive: drivers match it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideEffect<'a, E> {
    /// Send these bytes: exactly one frame, its line end included.
    Transmit(&'a [u8]),
    /// Something happened; for the embedder.
    Event(E),
    /// The end: always the last effect, after it there is silence.
    Close(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer or the embedder finished, and all requests are answered.
    Finished,
    /// The peer is gone.
    Gone,
    /// The peer took no byte for too long.
    Stalled,
}

/// Which of the agent's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// Its message.
    Message,
    /// Its thoughts.
    Thought,
}

/// What the agent's embedder has to act on. An `asked` is answered once by
/// [`AgentSide::answer`](super::AgentSide::answer) (or `open`), when the embedder likes.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // moved once, from the queue to the embedder
pub enum AgentEvent {
    /// `initialize`. Nothing else is processed before it is answered. What the answer advertises
    /// is what the side lets through from then on.
    Initialize {
        /// The right to answer.
        asked: Asked<Initialize>,
        /// The request.
        request: InitializeRequest,
    },
    /// `authenticate`.
    Authenticate {
        /// The right to answer.
        asked: Asked<Authenticate>,
        /// The request.
        request: AuthenticateRequest,
    },
    /// `logout`.
    Logout {
        /// The right to answer.
        asked: Asked<Logout>,
        /// The request.
        request: LogoutRequest,
    },
    /// `session/new`. `cwd` and further roots are absolute; whether they exist is not known.
    NewSession {
        /// The right to answer.
        asked: Asked<NewSession>,
        /// The request.
        request: NewSessionRequest,
    },
    /// `session/load`. Replay by [`AgentSide::replay`](super::AgentSide::replay), then `open`.
    LoadSession {
        /// The right to answer.
        asked: Asked<LoadSession>,
        /// The session, if it is active already.
        session: Option<SessionKey>,
        /// The request.
        request: LoadSessionRequest,
    },
    /// `session/resume`.
    ResumeSession {
        /// The right to answer.
        asked: Asked<ResumeSession>,
        /// The session, if it is active already.
        session: Option<SessionKey>,
        /// The request.
        request: ResumeSessionRequest,
    },
    /// `session/list`.
    ListSessions {
        /// The right to answer.
        asked: Asked<ListSessions>,
        /// The request.
        request: ListSessionsRequest,
    },
    /// `session/close` of an active session. Its turn, if one ran, is answered already. The key
    /// is valid until this is answered well.
    CloseSession {
        /// The right to answer.
        asked: Asked<CloseSession>,
        /// The session.
        session: SessionKey,
        /// The request.
        request: CloseSessionRequest,
    },
    /// `session/delete`, as `CloseSession` if the session is active.
    DeleteSession {
        /// The right to answer.
        asked: Asked<DeleteSession>,
        /// The session, if it is active.
        session: Option<SessionKey>,
        /// The request.
        request: DeleteSessionRequest,
    },
    /// `session/set_mode`.
    SetMode {
        /// The right to answer.
        asked: Asked<SetMode>,
        /// The session.
        session: SessionKey,
        /// The request.
        request: SetSessionModeRequest,
    },
    /// `session/set_config_option`.
    SetConfigOption {
        /// The right to answer.
        asked: Asked<SetConfigOption>,
        /// The session.
        session: SessionKey,
        /// The request.
        request: SetSessionConfigOptionRequest,
    },
    /// `session/set_model`, a method of older clients.
    SetModel {
        /// The right to answer.
        asked: Asked<SetModel>,
        /// The session.
        session: SessionKey,
        /// The request.
        request: SetSessionModelRequest,
    },
    /// `session/prompt`: a turn begins. It ends by [`TurnMut::finish`](super::TurnMut::finish) or
    /// `fail`. The prompt is not blank and holds only blocks that were advertised.
    Prompt {
        /// The turn.
        turn: TurnKey,
        /// Its session.
        session: SessionKey,
        /// The request.
        request: PromptRequest,
    },
    /// The turn is to end soon, whoever wished it; said once a turn.
    Cancel {
        /// The turn.
        turn: TurnKey,
    },
    /// `session/cancel` for a subagent that was announced with the capability `cancel`: it and what it
    /// started are to end soon, and nothing else. There is nothing to answer; an update of its state
    /// says that it is done (ACP: `SubagentSessionCapabilities`).
    CancelSubagent {
        /// The session that it was announced in.
        session: SessionKey,
        /// The subagent's own.
        subagent: SessionId,
    },
    /// `$/cancel_request` for an open request that is no prompt; said once. It still wants its
    /// answer: its own, or [`RpcError::cancelled`](crate::wire::RpcError::cancelled).
    CancelRequest {
        /// The request: see [`Asked::key`].
        key: RequestKey,
    },
    /// A request of ours is settled, once.
    Settled {
        /// The request.
        ask: AskId,
        /// Its answer, or why there is none.
        answer: ClientAnswer,
    },
    /// A request with a vendor's method.
    VendorRequest {
        /// The right to answer.
        asked: Asked<Vendor>,
        /// The method; begins with `_`.
        method: String,
        /// The parameters; none: absent or null.
        params: Option<Json>,
    },
    /// A notification with a vendor's method.
    VendorNotification {
        /// The method; begins with `_`.
        method: String,
        /// The parameters; none: absent or null.
        params: Option<Json>,
    },
    /// A turn that was told [`Full`](crate::error::CommandError::Full) may go on.
    Ready {
        /// The turn.
        turn: TurnKey,
    },
    /// A replay that was told [`Full`](crate::error::CommandError::Full) may go on.
    ReplayReady {
        /// The request it belongs to: see [`Asked::key`].
        key: RequestKey,
    },
    /// The client finished. Turns are cancelled and our requests settled by events of their own.
    PeerFinished,
    /// The client is gone: nothing can be answered any more.
    PeerGone,
    /// The client broke a rule. It has its answer, if one is due; this is for logs.
    Misbehaved(PeerFault),
}

/// What the client's embedder has to act on. An `asked` is answered once by
/// [`ClientSide::answer`](super::ClientSide::answer), when the embedder likes.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // moved once, from the queue to the embedder
pub enum ClientEvent {
    /// A request of ours is settled, once.
    Answered {
        /// The request.
        ask: AskId,
        /// Its answer, or why there is none.
        answer: AgentAnswer,
    },
    /// `session/update`.
    Update(SessionNotification),
    /// `elicitation/complete`: what was opened by URL is done.
    ElicitationComplete {
        /// The id of the question.
        elicitation_id: String,
    },
    /// `session/request_permission`.
    RequestPermission {
        /// The right to answer.
        asked: Asked<RequestPermission>,
        /// The request.
        request: RequestPermissionRequest,
    },
    /// `fs/read_text_file`.
    ReadTextFile {
        /// The right to answer.
        asked: Asked<ReadTextFile>,
        /// The request.
        request: ReadTextFileRequest,
    },
    /// `fs/write_text_file`.
    WriteTextFile {
        /// The right to answer.
        asked: Asked<WriteTextFile>,
        /// The request.
        request: WriteTextFileRequest,
    },
    /// `terminal/create`.
    CreateTerminal {
        /// The right to answer.
        asked: Asked<CreateTerminal>,
        /// The request.
        request: CreateTerminalRequest,
    },
    /// `terminal/output`.
    TerminalOutput {
        /// The right to answer.
        asked: Asked<TerminalOutput>,
        /// The request.
        request: TerminalOutputRequest,
    },
    /// `terminal/wait_for_exit`.
    WaitForTerminalExit {
        /// The right to answer.
        asked: Asked<WaitForTerminalExit>,
        /// The request.
        request: WaitForTerminalExitRequest,
    },
    /// `terminal/kill`.
    KillTerminal {
        /// The right to answer.
        asked: Asked<KillTerminal>,
        /// The request.
        request: KillTerminalRequest,
    },
    /// `terminal/release`.
    ReleaseTerminal {
        /// The right to answer.
        asked: Asked<ReleaseTerminal>,
        /// The request.
        request: ReleaseTerminalRequest,
    },
    /// `elicitation/create`.
    CreateElicitation {
        /// The right to answer.
        asked: Asked<CreateElicitation>,
        /// The request.
        request: CreateElicitationRequest,
    },
    /// A request with a vendor's method.
    VendorRequest {
        /// The right to answer.
        asked: Asked<Vendor>,
        /// The method; begins with `_`.
        method: String,
        /// The parameters; none: absent or null.
        params: Option<Json>,
    },
    /// A notification with a vendor's method.
    VendorNotification {
        /// The method; begins with `_`.
        method: String,
        /// The parameters; none: absent or null.
        params: Option<Json>,
    },
    /// `$/cancel_request` for an open request of the agent; said once. It still wants its answer.
    CancelRequest {
        /// The request: see [`Asked::key`].
        key: RequestKey,
    },
    /// The agent finished. Our requests are settled by events of their own.
    PeerFinished,
    /// The agent is gone.
    PeerGone,
    /// The agent broke a rule. It has its answer, if one is due; this is for logs and tests.
    Misbehaved(PeerFault),
}
