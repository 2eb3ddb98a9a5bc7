//! The client's files (ACP page: file system). Paths are absolute, lines count from 1.

use alloc::string::String;

use super::ids::SessionId;
use super::object::object;

object! {
    /// `fs/read_text_file`: a text as the editor has it, unsaved changes included.
    ReadTextFileRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The file, absolute.
        "path" path: String = Required,
        ;
        /// The first line, from 1.
        "line" line: Option<u32> = Optional,
        /// At most this many lines.
        "limit" limit: Option<u32> = Optional,
    }
}

object! {
    /// The answer to `fs/read_text_file`.
    ReadTextFileResponse {
        /// The text.
        "content" content: String = Required,
        ;
    }
}

object! {
    /// `fs/write_text_file`: the whole file; a missing one is made.
    WriteTextFileRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// The file, absolute.
        "path" path: String = Required,
        /// Its text.
        "content" content: String = Required,
        ;
    }
}

object! {
    /// The answer to `fs/write_text_file`; null reads as one.
    WriteTextFileResponse {}
}
