//! Every bound there is, in one place.

mod check;

pub use check::LimitFault;

use core::time::Duration;

/// Bounds of one connection and of the agent behind it. Nothing grows without one. Those that are not
/// the default's pass [`check`](Self::check) first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest line taken from the peer, bytes, line end not counted.
    pub max_frame: usize,
    /// Longest line of ours that can be split (chunks, tool output, diffs), bytes.
    pub max_out_frame: usize,
    /// Deepest nesting of JSON taken from the peer.
    pub max_depth: usize,
    /// Requests of the peer that may be open at once; one more is refused.
    pub max_open_requests: usize,
    /// Frames that may wait for a session that is opening or closing; one more is refused.
    pub max_waiting_frames: usize,
    /// Sessions open at once; one more is refused.
    pub max_sessions: usize,
    /// Unsent output at which producers stop, bytes.
    pub soft_output: usize,
    /// Unsent output at which nothing more is read from the peer, bytes.
    pub hard_output: usize,
    /// Unsent output below which it is told what has changed without being asked for: how MCP servers
    /// stand, which commands there are, what servers ask. Till then only the latest of it is kept.
    /// With [`max_out_frame`](Self::max_out_frame) it has to be no more than
    /// [`soft_output`](Self::soft_output), so that turns go on beside what changes all the time.
    pub quiet_output: usize,
    /// Bytes taken from the peer ahead of processing, beyond an incomplete frame.
    pub peer_window: usize,
    /// Bytes taken from one call ahead of processing.
    pub call_window: usize,
    /// Bytes taken from all calls together ahead of processing.
    pub calls_window: usize,
    /// Frames a turn may send before the next waiter has its turn.
    pub quantum: u32,
    /// Model text is held at most this long to be joined with more.
    pub coalesce: Duration,
    /// A model that sends nothing for this long has failed.
    pub model_idle: Duration,
    /// Longest single event of a model's stream, bytes.
    pub max_sse_event: usize,
    /// Longest answer of the model that is kept, bytes; more ends the attempt.
    pub max_answer: usize,
    /// Model text is joined up to this long, bytes.
    pub model_text: usize,
    /// To connect to a model, TLS included, may take this long.
    pub model_connect: Duration,
    /// Repeats of a scripted attempt that failed before its first byte; a provider has its own.
    pub model_retries: u32,
    /// Repeats of an attempt whose stream broke off.
    pub model_repeats: u32,
    /// The first pause between two attempts; each further one is twice as long.
    pub retry_pause: Duration,
    /// The longest pause between two attempts that nobody asked for.
    pub max_retry_pause: Duration,
    /// The longest pause between two attempts that a provider can ask for.
    pub max_retry_after: Duration,
    /// Longest body of a refusal that is read, bytes.
    pub max_error_body: usize,
    /// What comes behind a finish reason, or with a refusal, has this long.
    pub model_tail: Duration,
    /// The connection of an answer that is whole has this long to end by itself, so that it can be
    /// used again.
    pub model_linger: Duration,
    /// Longest text of one chunk of a load script, bytes.
    pub max_load_chunk: usize,
    /// Text of a load script that is kept for the history, bytes.
    pub load_kept: usize,
    /// Largest history of one session, bytes in memory; its older part goes before it grows on. While
    /// no model is there to summarize it, it may be twice as large, and one message.
    pub max_history: usize,
    /// An editor has this long to give a file's text; then it is read from the disk.
    pub editor_read: Duration,
    /// An editor has this long to write a file; then the write has failed.
    pub editor_write: Duration,
    /// An editor has this long to make a terminal; then the command runs here.
    pub terminal_create: Duration,
    /// Output that an editor is asked to keep of a command in its terminal, bytes.
    pub terminal_output: u64,
    /// A command in an editor's terminal that is to end now has this long to say how it ended.
    pub terminal_grace: Duration,
    /// Terminals that were asked for and are not wanted any more, but may still be made: of more
    /// than these the oldest are forgotten.
    pub max_late_terminals: usize,
    /// Longest message above a form, characters.
    pub max_form_message: usize,
    /// Longest value that is taken from a form, bytes of JSON.
    pub max_form_value: usize,
    /// All values that are taken from a form, bytes of JSON.
    pub max_form_values: usize,
    /// Model calls in one turn (`--max-steps`).
    pub max_steps: u32,
    /// Largest file the tools read or edit, bytes.
    pub max_file: u64,
    /// Lines `read_file` gives at once unless asked for fewer.
    pub read_lines: u32,
    /// Longest tool result the model gets, bytes; the middle goes.
    pub max_tool_result: usize,
    /// Longest tool output shown in one update, bytes.
    pub max_tool_update: usize,
    /// Output of one command kept: this much of its beginning, bytes.
    pub output_head: usize,
    /// Output of one command kept: this much of its end, bytes.
    pub output_tail: usize,
    /// Longest line of a file or of a search hit that is shown, bytes.
    pub max_line: usize,
    /// Longest title of a tool call, bytes.
    pub max_title: usize,
    /// Longest string in the arguments of a tool call that is shown whole, bytes.
    pub max_raw_string: usize,
    /// Old and new text of a change, together, up to which it is shown whole, bytes.
    pub max_diff: usize,
    /// Lines around a changed region that are shown with it.
    pub diff_context: usize,
    /// Entries of a directory that are listed.
    pub list_entries: usize,
    /// Files of one session whose state at the last read is remembered; the oldest goes first.
    pub read_marks: usize,
    /// Grants of one session.
    pub max_grants: usize,
    /// Decisions about calls that a session can be asked for.
    pub kept_decisions: usize,
    /// Hits of one search.
    pub search_hits: usize,
    /// Longest line in which a search looks for keys, bytes; what is longer is not found.
    pub search_line: usize,
    /// Lines that one search brings to look for keys in, bytes, but for the first.
    pub search_text: usize,
    /// How often a search is gone on with, where hits that are not shown fill it.
    pub search_rounds: u32,
    /// A search takes at most this long.
    pub search_time: Duration,
    /// A command's time limit unless it asks for less or more.
    pub command_time: Duration,
    /// The longest time limit a command can ask for.
    pub max_command_time: Duration,
    /// Background commands of one session.
    pub max_jobs: usize,
    /// Commands of one session that are over and left something running that ends with the
    /// session; what the oldest of more left ends with the agent.
    pub max_left: usize,
    /// Between two updates with the live output of a command.
    pub live_output_every: Duration,
    /// What was aborted has this long to settle before the turn ends without it.
    pub cancel_grace: Duration,
    /// A turn is answered this long after it was cancelled, also if its end is not on the disk by then.
    pub cancel_patience: Duration,
    /// The end of the connection has this long to come to rest; the process ends within a second more.
    pub close_grace: Duration,
    /// A peer that takes no byte for this long, while some wait for it, is gone.
    pub peer_stalled: Duration,
    /// Reads and searches of one answer that run at once.
    pub parallel_reads: usize,
    /// Longest title of a session, characters.
    pub max_session_title: usize,
    /// Tool calls in one answer of the model; the rest fail.
    pub max_tool_calls: usize,
    /// Text of a prompt with all its blocks, bytes.
    pub max_prompt: usize,
    /// Longest link to a resource in a prompt, bytes as JSON, and longest address of anything else in
    /// one; a prompt with a longer one is refused. They are remembered and replayed whole.
    pub max_link: usize,
    /// Items in the inbox of one session.
    pub max_inbox_items: usize,
    /// Longest item of an inbox, bytes as it is stored, its frozen references included.
    pub max_inbox_item: usize,
    /// All items of an inbox, bytes as they are stored.
    pub max_inbox: usize,
    /// Longest preview of an item, characters; what is longer ends in `…`.
    pub inbox_preview: usize,
    /// Longest preview of a frozen reference, characters; what is longer ends in `…`.
    pub inbox_ref_preview: usize,
    /// Idempotency keys remembered after their items are gone; the oldest goes first. They have no
    /// age.
    pub max_inbox_receipts: usize,
    /// Failures of a passing kind after which an item is set aside instead of tried again.
    pub max_inbox_attempts: u32,
    /// References of one item that are frozen; more of them are left to the tools.
    pub max_inbox_refs: usize,
    /// Longest content of one frozen reference, bytes; a longer file is left to the tools.
    pub max_inbox_ref: usize,
    /// Content of all frozen references of an item, bytes; more of it is left to the tools.
    pub max_inbox_frozen: usize,
    /// Longest reason that is kept with an item, bytes.
    pub max_inbox_reason: usize,
    /// Longest journal of an inbox that is read, bytes; a longer one is not touched.
    pub max_inbox_file: u64,
    /// Longest line of an inbox's journal that is read, bytes: no less than the longest item and what
    /// is kept beside it. A longer one is a damaged one.
    pub max_inbox_line: usize,
    /// Bytes of an inbox's journal that may be of no use, beyond as many as are of use, before it is
    /// written anew.
    pub max_inbox_waste: u64,
    /// Longest objective of a goal, bytes; its middle goes.
    pub max_goal_objective: usize,
    /// Longest text of a report on a goal or of one of its steps, bytes; its middle goes.
    pub max_goal_text: usize,
    /// Completed steps of a goal that are kept; the oldest go.
    pub max_goal_steps: usize,
    /// Pieces of evidence of one step, and paths in one of them.
    pub max_goal_evidence: usize,
    /// Tokens a goal may use before it stops, and again each time it is resumed after that.
    pub goal_tokens: u64,
    /// Turns of a goal in a row without any progress after which it stops.
    pub goal_stuck: u32,
    /// Longest line of a transcript that is read, bytes.
    pub max_record: usize,
    /// A stored file is read in pieces of this size, bytes.
    pub store_piece: usize,
    /// Bytes that wait for a slow disk before a session stands still.
    pub store_backlog: usize,
    /// What a session that is not stored keeps of its records for loads of it, bytes; the oldest go.
    pub max_kept: usize,
    /// Stored sessions that are looked at by one list; the rest are not listed.
    pub max_stored: usize,
    /// Stored sessions that are looked at together.
    pub parallel_lookups: usize,
    /// Sessions in one page of a list.
    pub list_page: usize,
    /// Sessions of a list that are kept for its next pages.
    pub list_kept: usize,
    /// How long they are kept: after that a page is made of what is stored then.
    pub list_fresh: Duration,
    /// Model calls of one subagent.
    pub max_task_steps: u32,
    /// A client's part of the system prompt, bytes. It is sent with every request to the model.
    pub max_system_prompt: usize,
    /// Commands of one session that stand in files, and as many skills; the rest is left out.
    pub max_commands: usize,
    /// Longest file of a command or skill, bytes.
    pub max_command_file: u64,
    /// Longest description and hint of one, bytes; what is longer is cut.
    pub max_command_line: usize,
    /// Folders in folders of commands.
    pub command_depth: usize,
    /// What the model is told of all skills, bytes; skills that do not fit are not told.
    pub max_skills_text: usize,
    /// Folders of a session beside its working directory.
    pub max_roots: usize,
    /// Longest address of the web that is asked for, bytes.
    pub max_url: usize,
    /// What is read of one answer of the web, bytes; the rest is left.
    pub web_body: usize,
    /// What one fetch from the web takes at most, its redirects included; the person's time not.
    pub web_time: Duration,
    /// Redirects that one fetch follows.
    pub max_redirects: u32,
    /// Entries of a folder that are looked through for keys before it becomes a root; one with more
    /// does not become one.
    pub root_entries: usize,
    /// Ids in a row that a new session may find to be another one's; after that it is refused.
    pub max_taken_ids: u32,
    /// A session that was never prompted is removed after this long.
    pub unused_session: Duration,
    /// Keys of providers and MCP servers that what tools print is searched for, those that are not used
    /// any more among them: of more, those that were not named for longest are forgotten.
    pub max_known_keys: usize,
    /// Longest key that is looked for, bytes: whatever is longer is a document.
    pub max_known_key: usize,
    /// MCP servers of one session; a request with more is refused.
    pub max_mcp_servers: usize,
    /// The first request of a turn waits this long from the start of an MCP server on to learn what it
    /// offers, if nothing is known of it from another time and it has not said a word yet; never
    /// longer than it has to be ready.
    pub mcp_patience: Duration,
    /// The same for one that has agreed on a version, and is asked for its tools.
    pub mcp_listing: Duration,
    /// An MCP server has this long to be ready.
    pub mcp_start: Duration,
    /// A call of an MCP tool that brings neither an answer nor progress for this long has failed.
    pub mcp_silence: Duration,
    /// A call of an MCP tool takes at most this long.
    pub mcp_call: Duration,
    /// A call of a tool of the embedder's own takes at most this long; then it is aborted.
    pub custom_call: Duration,
    /// Longest message of an MCP server, bytes.
    pub max_mcp_message: usize,
    /// Tools of one MCP server that are offered.
    pub max_mcp_tools: usize,
    /// Pages of tools that are asked of one MCP server.
    pub max_mcp_pages: usize,
    /// Prompts of one server; more are left out.
    pub max_mcp_prompts: usize,
    /// Longest schema of an MCP tool, bytes.
    pub max_mcp_schema: usize,
    /// All that a model is told of the tools of one MCP server, bytes.
    pub max_mcp_catalogue: usize,
    /// The same of all MCP servers of a session: tools that do not fit beside those that other
    /// servers have listed are left out.
    pub max_mcp_offered: usize,
    /// Questions of one MCP server that are open at once; one more is declined. As many pages that the
    /// person agreed to open are waited for; of more the oldest counts as done.
    pub max_mcp_asks: usize,
    /// The first pause before an MCP server is tried again; each further one is twice as long.
    pub mcp_pause: Duration,
    /// The longest such pause.
    pub max_mcp_pause: Duration,
    /// Attempts to read on a stream of an MCP server that broke off without bringing anything.
    pub mcp_resumes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_frame: 32 << 20,
            max_out_frame: 48 << 10,
            max_depth: 128,
            max_open_requests: 16 << 10,
            max_waiting_frames: 64,
            max_sessions: 64 << 10,
            soft_output: 64 << 10,
            hard_output: 1 << 20,
            quiet_output: 16 << 10,
            peer_window: 64 << 10,
            call_window: 64 << 10,
            calls_window: 16 << 20,
            quantum: 16,
            coalesce: Duration::from_millis(16),
            model_idle: Duration::from_secs(300),
            max_sse_event: 1 << 20,
            max_answer: 16 << 20,
            model_text: 4 << 10,
            model_connect: Duration::from_secs(45),
            model_retries: 10,
            model_repeats: 2,
            retry_pause: Duration::from_millis(500),
            max_retry_pause: Duration::from_secs(15),
            max_retry_after: Duration::from_secs(60),
            max_error_body: 16 << 10,
            model_tail: Duration::from_secs(2),
            model_linger: Duration::from_millis(50),
            max_load_chunk: 32 << 20,
            load_kept: 64 << 10,
            max_history: 64 << 20,
            editor_read: Duration::from_secs(10),
            editor_write: Duration::from_secs(30),
            terminal_create: Duration::from_secs(10),
            terminal_output: 1 << 20,
            terminal_grace: Duration::from_secs(1),
            max_late_terminals: 64,
            max_form_message: 4000,
            max_form_value: 16 << 10,
            max_form_values: 64 << 10,
            max_steps: 200,
            max_file: 10 << 20,
            read_lines: 2000,
            max_tool_result: 64 << 10,
            max_tool_update: 8000,
            output_head: 16 << 10,
            output_tail: 32 << 10,
            max_line: 2000,
            max_title: 256,
            max_raw_string: 8 << 10,
            max_diff: 32 << 10,
            diff_context: 3,
            list_entries: 1000,
            read_marks: 4096,
            max_grants: 256,
            kept_decisions: 20,
            search_hits: 200,
            search_line: 4 << 20,
            search_text: 8 << 20,
            search_rounds: 50,
            search_time: Duration::from_secs(30),
            command_time: Duration::from_secs(120),
            max_command_time: Duration::from_secs(3600),
            max_jobs: 16,
            max_left: 64,
            live_output_every: Duration::from_millis(100),
            cancel_grace: Duration::from_millis(1500),
            cancel_patience: Duration::from_millis(1900),
            close_grace: Duration::from_secs(4),
            peer_stalled: Duration::from_secs(600),
            parallel_reads: 8,
            max_session_title: 80,
            max_tool_calls: 64,
            max_prompt: 32 << 20,
            max_link: 16 << 10,
            max_inbox_items: 64,
            max_inbox_item: 4 << 20,
            max_inbox: 64 << 20,
            inbox_preview: 120,
            inbox_ref_preview: 40,
            max_inbox_receipts: 1024,
            max_inbox_attempts: 3,
            max_inbox_refs: 32,
            max_inbox_ref: 256 << 10,
            max_inbox_frozen: 2 << 20,
            max_inbox_reason: 512,
            max_inbox_file: 256 << 20,
            max_inbox_line: 8 << 20,
            max_inbox_waste: 1 << 20,
            max_goal_objective: 16 << 10,
            max_goal_text: 2048,
            max_goal_steps: 64,
            max_goal_evidence: 16,
            goal_tokens: 10_000_000,
            goal_stuck: 3,
            max_record: 96 << 20,
            store_piece: 256 << 10,
            store_backlog: 4 << 20,
            max_kept: 32 << 20,
            max_stored: 100_000,
            parallel_lookups: 16,
            list_page: 100,
            list_kept: 10_000,
            list_fresh: Duration::from_secs(60),
            max_task_steps: 50,
            max_system_prompt: 128 << 10,
            max_commands: 128,
            max_command_file: 64 << 10,
            max_command_line: 1024,
            command_depth: 8,
            max_skills_text: 16 << 10,
            max_roots: 32,
            max_url: 8 << 10,
            web_body: 4 << 20,
            web_time: Duration::from_secs(30),
            max_redirects: 5,
            root_entries: 100_000,
            max_taken_ids: 16,
            unused_session: Duration::from_secs(7 * 24 * 3600),
            max_known_keys: 4096,
            max_known_key: 16 << 10,
            max_mcp_servers: 128,
            mcp_patience: Duration::from_millis(500),
            mcp_listing: Duration::from_secs(2),
            mcp_start: Duration::from_secs(10),
            mcp_silence: Duration::from_secs(300),
            mcp_call: Duration::from_secs(3600),
            custom_call: Duration::from_secs(3600),
            max_mcp_message: 16 << 20,
            max_mcp_tools: 512,
            max_mcp_pages: 64,
            max_mcp_prompts: 128,
            max_mcp_schema: 64 << 10,
            max_mcp_catalogue: 1 << 20,
            max_mcp_offered: 4 << 20,
            max_mcp_asks: 8,
            mcp_pause: Duration::from_millis(500),
            max_mcp_pause: Duration::from_secs(30),
            mcp_resumes: 5,
        }
    }
}
