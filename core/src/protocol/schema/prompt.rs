//! A turn: its prompt, its end, its cancellation (ACP pages: prompt turn, cancellation).

use alloc::vec::Vec;

use super::content::ContentBlock;
use super::ids::SessionId;
use super::json::Json;
use super::object::{names, object};

object! {
    /// `session/prompt`: begins a turn; answered when the turn ends.
    PromptRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// What the person says.
        "prompt" prompt: Vec<ContentBlock> = Blocks,
        ;
    }
}

object! {
    /// The answer to `session/prompt`, after the last update of the turn.
    PromptResponse {
        /// Why it ended.
        "stopReason" stop_reason: StopReason = Required,
        ;
    }
}

names! {
    /// Why a turn ended.
    StopReason {
        /// The model had nothing more to say.
        EndTurn = "end_turn",
        /// An answer of the model was cut by length.
        MaxTokens = "max_tokens",
        /// The model was called as often as is allowed in one turn.
        MaxTurnRequests = "max_turn_requests",
        /// The model refused.
        Refusal = "refusal",
        /// The client cancelled.
        Cancelled = "cancelled",
    }
}

object! {
    /// `session/cancel`.
    CancelNotification {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// `$/cancel_request`, both ways.
    CancelRequestNotification {
        /// The id of the request, of the same type and value.
        "requestId" request_id: Json = Required,
        ;
    }
}
