//! The client's terminals (ACP page: terminals). Each one that is created must be released.

use alloc::string::String;
use alloc::vec::Vec;

use super::ids::SessionId;
use super::mcp_server::EnvVariable;
use super::object::object;

object! {
    /// `terminal/create`: run a command; answered at once.
    CreateTerminalRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The program.
        "command" command: String = Required,
        ;
        /// Its arguments.
        "args" args: Vec<String> = List,
        /// Variables set for it.
        "env" env: Vec<EnvVariable> = List,
        /// Its working directory, absolute.
        "cwd" cwd: Option<String> = Optional,
        /// Output kept, bytes; what is older goes.
        "outputByteLimit" output_byte_limit: Option<u64> = Optional,
    }
}

object! {
    /// The answer to `terminal/create`.
    CreateTerminalResponse {
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// `terminal/output`.
    TerminalOutputRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `terminal/output`.
    TerminalOutputResponse {
        /// The output kept so far.
        "output" output: String = Required,
        /// Whether some is missing.
        "truncated" truncated: bool = Required,
        ;
        /// How the command ended; none: it runs.
        "exitStatus" exit_status: Option<TerminalExitStatus> = Lenient,
    }
}

object! {
    /// How a command ended; with neither member it is not known.
    TerminalExitStatus {
        /// Its exit code.
        "exitCode" exit_code: Option<u32> = Lenient,
        /// The signal that ended it.
        "signal" signal: Option<String> = Lenient,
    }
}

object! {
    /// `terminal/wait_for_exit`.
    WaitForTerminalExitRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `terminal/wait_for_exit`; with neither member the end is not known.
    WaitForTerminalExitResponse {
        /// The exit code.
        "exitCode" exit_code: Option<u32> = Lenient,
        /// The signal.
        "signal" signal: Option<String> = Lenient,
    }
}

object! {
    /// `terminal/kill`: end the command, keep the terminal.
    KillTerminalRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `terminal/kill`.
    KillTerminalResponse {}
}

object! {
    /// `terminal/release`: the id is not used after it.
    ReleaseTerminalRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The terminal.
        "terminalId" terminal_id: String = Required,
        ;
    }
}

object! {
    /// The answer to `terminal/release`.
    ReleaseTerminalResponse {}
}
