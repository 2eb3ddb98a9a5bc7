//! Bytes and JSON-RPC: frames, the one scan of a frame, ids, open requests both ways, the SSE
//! decoder. Knows nothing of ACP.
