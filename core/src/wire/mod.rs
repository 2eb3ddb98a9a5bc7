//! Bytes and JSON-RPC: frames, the one scan of a frame, ids, open requests both ways, the SSE
//! decoder. Knows nothing of ACP.

mod error;
pub mod frames;
mod id;
pub mod json;
pub mod requests;
pub mod rpc;
mod salvage;
pub mod scan;
pub mod sse;
mod swar;
pub mod text;

pub use error::RpcError;
pub use frames::{FrameDecoder, Line};
pub use id::RequestId;
pub use requests::{IncomingRequests, OutgoingRequests, RequestKey};
pub use rpc::{Message, ReadFault};
pub use sse::{SseDecoder, SseEvent, SseFault};
