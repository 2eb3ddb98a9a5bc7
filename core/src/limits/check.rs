//! Which limits an agent can work with. Knows the limits and nothing of what is bounded by them.

use alloc::string::String;
use core::fmt::Display;
use core::time::Duration;

use super::Limits;

/// A limit that an agent cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitFault {
    /// Nothing could ever happen.
    #[error("the limit `{name}` is too small: it is at least {least}")]
    TooSmall {
        /// The field of [`Limits`].
        name: &'static str,
        /// Its smallest value.
        least: u64,
    },
    /// What is computed from it could overflow.
    #[error("the limit `{name}` is too large: it is at most {most}")]
    TooLarge {
        /// The field of [`Limits`].
        name: &'static str,
        /// Its largest value, with its unit.
        most: String,
    },
    /// A turn that waits for room would wait behind what changes all the time.
    #[error(
        "the limits `quiet_output` and `max_out_frame` together are more than `soft_output`, \
         {soft} bytes"
    )]
    Quiet {
        /// [`Limits::soft_output`].
        soft: usize,
    },
}

impl Limits {
    /// Whether an agent can work with these: with those that pass, no peer, file or clock makes it
    /// panic or stand still. What has to be there for anything to happen is at least 1, a line or a
    /// piece that has to hold a whole message at least 1 KiB; every number is at most a sixteenth of
    /// what its type holds and every time at most 2³² seconds, which is no limit any more.
    ///
    /// # Errors
    ///
    /// The first one that does not.
    pub fn check(&self) -> Result<(), LimitFault> {
        let quiet = self.quiet_output.saturating_add(self.max_out_frame);
        self.check_each()?;
        if quiet > self.soft_output {
            let soft = self.soft_output;
            return Err(LimitFault::Quiet { soft });
        }
        Ok(())
    }
}

/// Names every field, so that none is forgotten; what is behind one is the least that it can be.
macro_rules! bounds {
    ($($name:ident $($least:literal)?,)*) => {
        impl Limits {
            fn check_each(&self) -> Result<(), LimitFault> {
                let Self { $($name),* } = self;
                $($name.within(stringify!($name), 0 $(+ $least)?)?;)*
                Ok(())
            }
        }
    };
}

bounds! {
    max_frame 1024,
    max_out_frame,
    max_depth 16,
    max_open_requests 1,
    max_waiting_frames,
    max_sessions 1,
    soft_output 1,
    hard_output 1,
    quiet_output,
    peer_window 1,
    call_window 1,
    calls_window 1,
    quantum 1,
    coalesce,
    model_idle,
    max_sse_event 1024,
    max_answer,
    model_text,
    model_connect,
    model_retries,
    model_repeats,
    retry_pause,
    max_retry_pause,
    max_retry_after,
    max_error_body,
    model_tail,
    model_linger,
    max_load_chunk,
    load_kept,
    max_history,
    editor_read,
    editor_write,
    terminal_create,
    terminal_output,
    terminal_grace,
    max_late_terminals,
    max_form_message,
    max_form_value,
    max_form_values,
    max_steps,
    max_file,
    read_lines,
    max_tool_result,
    max_tool_update,
    output_head,
    output_tail,
    max_line,
    max_title,
    max_raw_string,
    max_diff,
    diff_context,
    list_entries,
    read_marks,
    max_grants,
    kept_decisions,
    search_hits,
    search_line,
    search_text,
    search_rounds,
    search_time,
    command_time,
    max_command_time,
    max_jobs,
    max_left,
    live_output_every,
    cancel_grace,
    cancel_patience,
    close_grace,
    peer_stalled,
    parallel_reads 1,
    max_session_title,
    max_tool_calls,
    max_prompt,
    max_link,
    max_inbox_items,
    max_inbox_item,
    max_inbox,
    inbox_preview,
    inbox_ref_preview,
    max_inbox_receipts,
    max_inbox_attempts,
    max_inbox_refs,
    max_inbox_ref,
    max_inbox_frozen,
    max_inbox_reason,
    max_inbox_file,
    max_inbox_line,
    max_inbox_waste,
    max_goal_objective,
    max_goal_text,
    max_goal_steps,
    max_goal_evidence,
    goal_tokens,
    goal_stuck,
    max_record 1024,
    store_piece 1024,
    store_backlog,
    max_kept,
    max_stored,
    parallel_lookups 1,
    list_page 1,
    list_kept,
    list_fresh,
    max_task_steps,
    max_system_prompt,
    max_commands,
    max_command_file,
    max_command_line,
    command_depth,
    max_skills_text,
    max_roots,
    max_url,
    web_body,
    web_time,
    max_redirects,
    root_entries,
    max_taken_ids,
    unused_session,
    max_known_keys,
    max_known_key 8,
    max_mcp_servers,
    mcp_patience,
    mcp_listing,
    mcp_start,
    mcp_silence,
    mcp_call,
    custom_call,
    max_mcp_message 1024,
    max_mcp_tools,
    max_mcp_pages,
    max_mcp_prompts,
    max_mcp_schema,
    max_mcp_catalogue,
    max_mcp_offered,
    max_mcp_asks,
    mcp_pause,
    max_mcp_pause,
    mcp_resumes,
}

trait Bound {
    fn within(&self, name: &'static str, least: u64) -> Result<(), LimitFault>;
}

/// The sixteenth of a type is far from where sums and products of limits overflow.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Bound for $number {
            fn within(&self, name: &'static str, least: u64) -> Result<(), LimitFault> {
                const MOST: $number = <$number>::MAX >> 4;
                if u64::try_from(*self).is_ok_and(|it| it < least) {
                    return Err(LimitFault::TooSmall { name, least });
                }
                if *self > MOST {
                    return Err(too_large(name, MOST));
                }
                Ok(())
            }
        }
    )*};
}

numbers!(usize, u64, u32);

impl Bound for Duration {
    fn within(&self, name: &'static str, _least: u64) -> Result<(), LimitFault> {
        const MOST: u64 = 1 << 32;
        if self.as_secs() > MOST {
            return Err(too_large(name, alloc::format!("{MOST} s")));
        }
        Ok(())
    }
}

fn too_large(name: &'static str, most: impl Display) -> LimitFault {
    let most = alloc::format!("{most}");
    LimitFault::TooLarge { name, most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn limits_with_which_nothing_could_happen_are_refused_by_name() {
        type Case = (fn(&mut Limits), Option<&'static str>);
        let cases: [Case; 11] = [
            (|_| (), None),
            (|it| it.max_frame = 0, Some("max_frame")),
            (|it| it.max_depth = 1, Some("max_depth")),
            (|it| it.soft_output = 0, Some("soft_output")),
            (|it| it.parallel_reads = 0, Some("parallel_reads")),
            (|it| it.store_piece = 0, Some("store_piece")),
            (
                |it| it.max_session_title = usize::MAX,
                Some("max_session_title"),
            ),
            (|it| it.goal_tokens = u64::MAX, Some("goal_tokens")),
            (|it| it.mcp_pause = Duration::MAX, Some("mcp_pause")),
            (|it| it.quiet_output = it.soft_output, Some("quiet_output")),
            (|it| it.max_steps = 0, None),
        ];
        for (change, named) in cases {
            let mut limits = Limits::default();
            change(&mut limits);
            let fault = limits.check().err().map(|it| it.to_string());
            let right = match (&fault, named) {
                (None, None) => true,
                (Some(text), Some(name)) => text.contains(&alloc::format!("`{name}`")),
                (Some(_), None) | (None, Some(_)) => false,
            };
            assert!(right, "{named:?}: {fault:?}");
        }
    }
}
