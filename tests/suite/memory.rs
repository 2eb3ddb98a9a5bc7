//! What the agent may hold and allocate, counted by an allocator of our own.
