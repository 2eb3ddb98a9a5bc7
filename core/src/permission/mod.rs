//! Who may do what: postures, the ceiling, grants, and one pure decision. Knows nothing of the
//! protocol or of tools.
