//! Bytes and JSON-RPC: frames, the one scan of a frame, ids, open requests both ways, the SSE
//! decoder. Knows nothing of ACP.

pub mod frames;
pub mod requests;
pub mod rpc;
pub mod scan;
pub mod sse;
mod swar;
pub mod text;

pub use frames::{FrameDecoder, Line};
pub use requests::{IncomingRequests, OutgoingRequests, RequestKey};
pub use rpc::{Message, ReadFault, RequestId, RpcError};
pub use sse::{SseDecoder, SseEvent, SseFault};
