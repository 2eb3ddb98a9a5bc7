//! The agent loop of one session: model → tools → model → stop. Knows no bytes, no JSON-RPC.
