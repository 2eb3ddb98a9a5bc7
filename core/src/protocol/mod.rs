//! The Agent Client Protocol, version 1: own schema types, the agent's side of a connection and its
//! mirror. Knows nothing of models and tools.
