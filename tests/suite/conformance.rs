//! The one test binary: what must hold of the whole agent, of both its runtimes and of the programs.
