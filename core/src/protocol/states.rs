//! Every state and every transition, in one table that does not know which side it is on: what one
//! side sends and what the other receives passes the same rules. Knows no message and no effect.
//!
//! `docs/states.md` is made from the table by [`render`].

use alloc::string::String;
use core::fmt::Write;

/// A transition that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllowed {
    /// The state.
    pub state: &'static str,
    /// The event.
    pub event: &'static str,
}

macro_rules! table {
    ($(
        $(#[doc = $subject_doc:literal])*
        $subject:literal $state:ident / $event:ident {
            states { $( $(#[doc = $state_doc:literal])* $s:ident = $s_name:literal, )+ }
            events { $( $(#[doc = $event_doc:literal])* $e:ident = $e_name:literal, )+ }
            $( $from:ident + $on:ident => $to:ident, )+
        }
    )+) => {
        $(
            $(#[doc = $subject_doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            #[non_exhaustive]
            pub enum $state { $( $(#[doc = $state_doc])* $s, )+ }

            #[doc = concat!("What can happen to a ", $subject, ".")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            #[non_exhaustive]
            pub enum $event { $( $(#[doc = $event_doc])* $e, )+ }

            impl $state {
                /// All of them, the first one being where it begins.
                pub const ALL: &'static [Self] = &[ $( Self::$s, )+ ];

                /// The state after `event`.
                pub fn on(self, event: $event) -> Result<Self, NotAllowed> {
                    match (self, event) {
                        $( (Self::$from, $event::$on) => Ok(Self::$to), )+
                        _ => Err(NotAllowed { state: self.name(), event: event.name() }),
                    }
                }

                /// For people.
                pub const fn name(self) -> &'static str {
                    match self { $( Self::$s => $s_name, )+ }
                }

                const fn doc(self) -> &'static str {
                    match self { $( Self::$s => concat!($( $state_doc, )*), )+ }
                }
            }

            impl $event {
                /// All of them.
                pub const ALL: &'static [Self] = &[ $( Self::$e, )+ ];

                /// For people.
                pub const fn name(self) -> &'static str {
                    match self { $( Self::$e => $e_name, )+ }
                }

                const fn doc(self) -> &'static str {
                    match self { $( Self::$e => concat!($( $event_doc, )*), )+ }
                }
            }
        )+

        /// The table as Markdown: `docs/states.md`.
        pub fn render() -> String {
            let mut out = String::from(HEAD);
            $( section(
                &mut out,
                $subject,
                concat!($( $subject_doc, )*),
                $state::ALL,
                ($state::name, $state::doc),
                $event::ALL,
                ($event::name, $event::doc),
                $state::on,
            ); )+
            out
        }
    };
}

table! {
    /// A connection.
    "connection" Connection / ConnectionEvent {
        states {
            /// Nothing but `initialize` is answered.
            Fresh = "fresh",
            /// `initialize` has come; what follows waits for its answer.
            Greeting = "greeting",
            /// Both know each other.
            Ready = "ready",
            /// No more input: what is open comes to rest.
            Ending = "ending",
            /// Silence.
            Closed = "closed",
        }
        events {
            /// `initialize`.
            Initialize = "initialize",
            /// Its answer.
            Welcome = "initialized",
            /// It was refused.
            Refuse = "initialize refused",
            /// The end of the input, or the wish to end.
            Finish = "end of input",
            /// All is settled, or the grace is over.
            Settle = "settled",
            /// Nothing can be sent any more.
            Lose = "connection lost",
        }
        Fresh + Initialize => Greeting,
        Greeting + Welcome => Ready,
        Greeting + Refuse => Fresh,
        Ready + Initialize => Greeting,
        Fresh + Finish => Ending,
        Greeting + Finish => Ending,
        Ready + Finish => Ending,
        Ending + Settle => Closed,
        Ending + Welcome => Ending,
        Ending + Refuse => Ending,
        Fresh + Lose => Closed,
        Greeting + Lose => Closed,
        Ready + Lose => Closed,
        Ending + Lose => Closed,
    }

    /// A session on a connection.
    "session" Session / SessionEvent {
        states {
            /// `session/load` or `session/resume` runs; frames for it wait.
            Opening = "opening",
            /// It takes prompts.
            Open = "open",
            /// It is loaded or resumed again; its turn goes on, other frames wait.
            Reopening = "reopening",
            /// `session/close` or `session/delete` runs; frames for it wait.
            Closing = "closing",
            /// `session/delete` of one that is not open runs; frames for it wait.
            Removing = "removing",
            /// Its id is not active.
            Over = "over",
        }
        events {
            /// `session/delete` of one that is not open.
            Remove = "delete unopened",
            /// `session/load` or `session/resume`.
            Reopen = "load or resume",
            /// Its answer.
            Opened = "opened",
            /// It could not be opened.
            OpenFailed = "not opened",
            /// `session/close` or `session/delete`.
            Close = "close or delete",
            /// Its answer.
            Closed = "closed",
            /// It could not be closed.
            CloseFailed = "not closed",
            /// A prompt.
            Prompt = "prompt",
            /// Anything else that is asked of it.
            Use = "other request",
        }
        Opening + Opened => Open,
        Opening + OpenFailed => Over,
        Opening + Remove => Removing,
        Open + Reopen => Reopening,
        Open + Close => Closing,
        Open + Prompt => Open,
        Open + Use => Open,
        Reopening + Opened => Open,
        Reopening + OpenFailed => Open,
        Closing + Closed => Over,
        Closing + CloseFailed => Open,
        Removing + Closed => Over,
        Removing + CloseFailed => Over,
    }

    /// A turn: from a prompt to its answer.
    "turn" Turn / TurnEvent {
        states {
            /// It runs.
            Running = "running",
            /// It was cancelled; it can still say what was under way.
            Cancelling = "cancelling",
            /// Its prompt is answered: nothing follows.
            Over = "over",
        }
        events {
            /// A `session/update`.
            Update = "update",
            /// `session/cancel`, `$/cancel_request`, close, delete or the end of the input.
            Cancel = "cancel",
            /// The answer to the prompt.
            Answer = "answer",
        }
        Running + Update => Running,
        Running + Cancel => Cancelling,
        Running + Answer => Over,
        Cancelling + Update => Cancelling,
        Cancelling + Cancel => Cancelling,
        Cancelling + Answer => Over,
    }

    /// A request, of either side.
    "request" Request / RequestEvent {
        states {
            /// It waits for its answer.
            Open = "open",
            /// It was cancelled and still waits for its answer.
            Cancelled = "cancelled",
            /// It is answered, once.
            Settled = "settled",
        }
        events {
            /// `$/cancel_request` for it.
            Cancel = "cancel",
            /// Its answer.
            Answer = "answer",
        }
        Open + Cancel => Cancelled,
        Open + Answer => Settled,
        Cancelled + Cancel => Cancelled,
        Cancelled + Answer => Settled,
    }

    /// A tool call.
    "tool call" ToolCall / ToolCallEvent {
        states {
            /// Announced: its arguments stream in, or it waits for a permission.
            Pending = "pending",
            /// It runs.
            Running = "in progress",
            /// It ended well.
            Completed = "completed",
            /// It ended badly, or was denied or cancelled.
            Failed = "failed",
        }
        events {
            /// An update that leaves the status as it is, or says it again.
            Show = "update",
            /// Status `in_progress`.
            Start = "in_progress",
            /// Status `completed`.
            Complete = "completed",
            /// Status `failed`.
            Fail = "failed",
        }
        Pending + Show => Pending,
        Pending + Start => Running,
        Pending + Complete => Completed,
        Pending + Fail => Failed,
        Running + Show => Running,
        Running + Start => Running,
        Running + Complete => Completed,
        Running + Fail => Failed,
    }

    /// A permission request.
    "permission" Permission / PermissionEvent {
        states {
            /// It waits for the person.
            Open = "open",
            /// An option that was offered was chosen.
            Chosen = "chosen",
            /// Anything else: the call is not allowed.
            Denied = "denied",
        }
        events {
            /// An option that was offered.
            Choose = "option chosen",
            /// An error, the outcome `cancelled`, an unknown option, a malformed answer.
            Refuse = "any other answer",
            /// The side that asked gave it up, or the connection ended.
            Withdraw = "withdrawn",
        }
        Open + Choose => Chosen,
        Open + Refuse => Denied,
        Open + Withdraw => Denied,
    }
}

const HEAD: &str = "\
# States

Made from the transition table in `core/src/protocol/states.rs`; do not edit. What is not in a table
is not allowed: the side that does it has made a fault. Both sides of a connection obey the same
tables. A subject begins in its first state.
";

type Words<T> = (fn(T) -> &'static str, fn(T) -> &'static str);

#[allow(clippy::too_many_arguments)] // called by the macro only
fn section<S: Copy + 'static, E: Copy + 'static>(
    out: &mut String,
    subject: &str,
    about: &str,
    states: &[S],
    (state_name, state_doc): Words<S>,
    events: &[E],
    (event_name, event_doc): Words<E>,
    on: fn(S, E) -> Result<S, NotAllowed>,
) {
    let mut title = String::from(subject);
    title[..1].make_ascii_uppercase();
    let mut line = |text: core::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("a String takes all");
        out.push('\n');
    };
    line(format_args!(
        "\n## {title}\n\n{}\n\n| state | meaning |\n| --- | --- |",
        about.trim()
    ));
    for &state in states {
        line(format_args!(
            "| {} | {} |",
            state_name(state),
            state_doc(state).trim()
        ));
    }
    line(format_args!("\n| event | meaning |\n| --- | --- |"));
    for &event in events {
        line(format_args!(
            "| {} | {} |",
            event_name(event),
            event_doc(event).trim()
        ));
    }
    line(format_args!("\n| in | on | to |\n| --- | --- | --- |"));
    for &state in states {
        for &event in events {
            if let Ok(to) = on(state, event) {
                line(format_args!(
                    "| {} | {} | {} |",
                    state_name(state),
                    event_name(event),
                    state_name(to)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_the_table() {
        let written = include_str!("../../../docs/states.md");
        assert!(
            written == render(),
            "docs/states.md is not what the table says; it should be:\n{}",
            render()
        );
    }

    #[test]
    fn what_is_over_stays_over() {
        for &event in TurnEvent::ALL {
            assert!(Turn::Over.on(event).is_err());
        }
        for &event in RequestEvent::ALL {
            assert!(Request::Settled.on(event).is_err());
        }
        for &event in ToolCallEvent::ALL {
            assert!(ToolCall::Completed.on(event).is_err());
            assert!(ToolCall::Failed.on(event).is_err());
        }
        for &event in PermissionEvent::ALL {
            assert!(Permission::Chosen.on(event).is_err());
            assert!(Permission::Denied.on(event).is_err());
        }
        for &event in SessionEvent::ALL {
            assert!(Session::Over.on(event).is_err());
        }
        for &event in ConnectionEvent::ALL {
            assert!(Connection::Closed.on(event).is_err());
        }
    }

    #[test]
    fn every_open_turn_and_request_can_be_answered() {
        for &turn in Turn::ALL {
            assert_eq!(turn.on(TurnEvent::Answer).is_ok(), turn != Turn::Over);
        }
        for &request in Request::ALL {
            assert_eq!(
                request.on(RequestEvent::Answer).is_ok(),
                request != Request::Settled
            );
        }
    }
}
