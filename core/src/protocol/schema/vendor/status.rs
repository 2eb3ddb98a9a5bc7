//! How a session stands: `_reasonix.io/session/status`, the notification
//! `_reasonix.io/session/status_update`, what they cost, and what the answer to a prompt says of its
//! turn beside the stop reason.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::goal::Goal;
use crate::protocol::schema::object::{object, open_names};
use crate::protocol::schema::{Number, SessionId};

/// The version of these messages.
pub const SCHEMA_VERSION: u32 = 1;

/// [`StatusRequest`] to [`StatusSnapshot`].
pub const STATUS: &str = "_reasonix.io/session/status";
/// A notification with a [`StatusUpdate`], only for clients that opted in.
pub const STATUS_UPDATE: &str = "_reasonix.io/session/status_update";

object! {
    /// A session to be told of.
    StatusRequest {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
    }
}

object! {
    /// A session has changed.
    StatusUpdate {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        /// What has changed.
        "event" event: StatusEvent = Required,
        /// All of it as it is now.
        "status" status: StatusSnapshot = Required,
        ;
        /// See [`SCHEMA_VERSION`].
        "schemaVersion" schema_version: u32 = Defaulted,
        /// The snapshot's.
        "sequence" sequence: u64 = Defaulted,
    }
}

open_names! {
    /// What has changed.
    StatusEvent {
        /// What it does.
        Phase = "phase",
        /// What it used.
        Usage = "usage",
        /// Its goal.
        Goal = "goal",
        /// A turn is over.
        Completion = "completion",
        /// A turn is over, and something is left to do.
        Pause = "pause",
        /// A turn failed.
        Error = "error",
    }
}

object! {
    /// How a session stands. All members are there.
    StatusSnapshot {
        /// The session.
        "sessionId" session_id: SessionId = Required,
        ;
        /// See [`SCHEMA_VERSION`].
        "schemaVersion" schema_version: u32 = Defaulted,
        /// Grows by one with every change.
        "sequence" sequence: u64 = Defaulted,
        /// Whether a turn runs.
        "state" state: SessionState = Defaulted,
        /// The model.
        "model" model: String = Defaulted,
        /// Its effort; `auto` if the provider decides.
        "effort" effort: String = Defaulted,
        /// `normal`, `plan` or `goal`.
        "mode" mode: String = Defaulted,
        /// `economy`, `balanced` or `delivery`.
        "workMode" work_mode: String = Defaulted,
        /// `on` or `off`.
        "plannerMode" planner_mode: String = Defaulted,
        /// Its goal.
        "goal" goal: Goal = Defaulted,
        /// What it does.
        "phase" phase: Phase = Defaulted,
        /// How the last turn ended.
        "turnOutcome" turn_outcome: TurnOutcome = Defaulted,
        /// Whether its work can be looked at.
        "finalReadiness" final_readiness: FinalReadiness = Defaulted,
        /// What confines its commands.
        "sandbox" sandbox: Sandbox = Defaulted,
        /// What it used.
        "usage" usage: Usage = Defaulted,
    }
}

open_names! {
    /// Whether a turn runs.
    #[derive(Default)]
    SessionState {
        /// None does.
        #[default]
        Idle = "idle",
        /// One does.
        Running = "running",
    }
}

open_names! {
    /// What a session does.
    #[derive(Default)]
    Phase {
        /// Nothing yet.
        #[default]
        Idle = "idle",
        /// A turn has begun.
        Starting = "starting",
        /// The model makes a plan.
        Planning = "planning",
        /// The model answers.
        Working = "working",
        /// Tools run.
        Implementing = "implementing",
        /// The person is asked whether something may run.
        WaitingPermission = "waiting_permission",
        /// The person is asked something.
        WaitingInput = "waiting_input",
        /// It is seen whether a goal is reached.
        CheckingReadiness = "checking_readiness",
        /// The turn was cancelled.
        Cancelled = "cancelled",
        /// The goal is reached.
        ReviewReady = "review_ready",
        /// The turn is over.
        Completed = "completed",
        /// The turn is over, and something is left to do.
        Paused = "paused",
        /// The turn is over, and what was written is not verified.
        ReadinessPaused = "readiness_paused",
        /// The agent ended while a turn ran.
        RecoveryPaused = "recovery_paused",
        /// The turn failed.
        Error = "error",
    }
}

object! {
    /// How a turn ended.
    TurnOutcome {
        /// How.
        "kind" kind: OutcomeKind = Defaulted,
        /// Why, for people.
        "reason" reason: Option<String> = Lenient,
    }
}

open_names! {
    /// How a turn ended.
    #[derive(Default)]
    OutcomeKind {
        /// It has not.
        #[default]
        None = "none",
        /// As it should.
        Completed = "completed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Something is left to do.
        Paused = "paused",
        /// It failed.
        Error = "error",
    }
}

object! {
    /// Whether the work of a turn can be looked at.
    FinalReadiness {
        /// Whether it can.
        "readyForReview" ready_for_review: bool = Defaulted,
        /// What the model said last.
        "summary" summary: String = Defaulted,
        /// What is missing.
        "risks" risks: Vec<String> = LenientListShown,
    }
}

object! {
    /// What confines the commands of a session.
    Sandbox {
        /// What was asked for: `auto`, `enforce` or `off`.
        "mode" mode: String = Defaulted,
        /// What does it: `bubblewrap`, `landlock`, `seatbelt`, `none`.
        "engine" engine: String = Defaulted,
        /// Its level, where it has one.
        "abi" abi: Option<u32> = Lenient,
        /// Whether there is one.
        "available" available: bool = Defaulted,
        /// The working directory.
        "workspaceRoot" workspace_root: String = Defaulted,
        /// Where the tools write.
        "writeRoots" write_roots: Vec<String> = LenientListShown,
        /// Whether commands reach the network.
        "networkEnabled" network_enabled: bool = Defaulted,
    }
}

object! {
    /// What a session used.
    Usage {
        /// In the turn that runs or ran last.
        "turn" turn: UsageTotals = Defaulted,
        /// In all.
        "cumulative" cumulative: UsageTotals = Defaulted,
    }
}

object! {
    /// What a number of answers used and cost.
    UsageTotals {
        /// Tokens that went in, cached or not.
        "promptTokens" prompt_tokens: u64 = Defaulted,
        /// Tokens that came out.
        "completionTokens" completion_tokens: u64 = Defaulted,
        /// Of those: reasoning.
        "reasoningTokens" reasoning_tokens: u64 = Defaulted,
        /// Of what went in: found in the provider's cache.
        "cacheHitTokens" cache_hit_tokens: u64 = Defaulted,
        /// Of what went in: not found there.
        "cacheMissTokens" cache_miss_tokens: u64 = Defaulted,
        /// The tokens were guessed, not counted by the provider.
        "estimated" estimated: Option<bool> = Lenient,
        /// The part that was found; null if no provider said so.
        "cacheHitRatio" cache_hit_ratio: Option<Number> = Defaulted,
        /// The amount of what the quote selects; null if it selects nothing.
        "estimatedCost" estimated_cost: Option<Number> = Defaulted,
        /// Its currency.
        "currency" currency: Option<String> = Defaulted,
        /// The quote's.
        "costComplete" cost_complete: Option<bool> = Lenient,
        /// The quote's.
        "displayComplete" display_complete: Option<bool> = Lenient,
        /// The quote's.
        "displayStatus" display_status: Option<DisplayStatus> = Lenient,
        /// The quote's.
        "aggregateMode" aggregate_mode: Option<AggregateMode> = Lenient,
        /// The quote's.
        "originalTotals" original_totals: Option<Vec<Money>> = Lenient,
        /// What it cost; absent if nothing was used.
        "costQuote" cost_quote: Option<CostQuote> = Lenient,
        /// What the answers were for, or `mixed`.
        "usageSource" usage_source: String = Defaulted,
    }
}

object! {
    /// An amount of money, a decimal as a string.
    Money {
        /// How much.
        "amount" amount: String = Required,
        /// ISO 4217 code.
        "currency" currency: String = Required,
        ;
    }
}

object! {
    /// What something cost, and how that is to be shown. Nothing is ever converted: the only
    /// valuation is the price itself.
    CostQuote {
        /// The sum, if there is one in one currency; else null.
        "original" original: Option<Money> = Defaulted,
        /// The sums, a currency.
        "originalTotals" original_totals: Vec<Money> = LenientListShown,
        /// The sums as they are valued, by currency.
        "valuations" valuations: BTreeMap<String, Valuation> = Defaulted,
        /// What is to be shown as the cost.
        "selected" selected: Option<Money> = Lenient,
        /// Whether all that was used is in it.
        "costComplete" cost_complete: bool = Defaulted,
        /// Whether all of that is shown.
        "displayComplete" display_complete: bool = Defaulted,
        /// The same.
        "complete" complete: bool = Defaulted,
        /// How it is shown.
        "displayStatus" display_status: DisplayStatus = Defaulted,
        /// How it was summed.
        "aggregateMode" aggregate_mode: AggregateMode = Defaulted,
        /// How it is paid for.
        "billingMode" billing_mode: String = Defaulted,
        /// How much of what was used is in it: `full`, `partial` or `none`.
        "coverage" coverage: String = Defaulted,
    }
}

object! {
    /// A sum as it is valued.
    Valuation {
        /// By what: `identity`.
        "basis" basis: String = Required,
        /// How much.
        "amount" amount: String = Required,
        /// ISO 4217 code.
        "currency" currency: String = Required,
        ;
    }
}

open_names! {
    /// How a cost is shown.
    #[derive(Default)]
    DisplayStatus {
        /// In the currency of its price.
        Matched = "matched",
        /// In another one than was wanted.
        FallbackOriginal = "fallback_original",
        /// In several.
        Bucketed = "bucketed",
        /// Not at all.
        #[default]
        Unavailable = "unavailable",
    }
}

open_names! {
    /// How a cost was summed.
    #[derive(Default)]
    AggregateMode {
        /// There is one currency.
        #[default]
        SingleCurrency = "single_currency",
        /// Several were converted to one.
        CommonValuation = "common_valuation",
        /// Each by itself.
        CurrencyBuckets = "currency_buckets",
    }
}

object! {
    /// `_meta` of the answer to a prompt.
    PromptMeta {
        /// Ours.
        "reasonix.io" reasonix: TurnMeta = Required,
        ;
    }
}

object! {
    /// What the answer to a prompt says of its turn beside the stop reason.
    TurnMeta {
        /// Where the session is stored, absolute.
        "transcriptPath" transcript_path: Option<String> = Lenient,
        /// How it ended, if something is left to do.
        "turnOutcome" turn_outcome: Option<TurnOutcome> = Lenient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &str = r#"{"sessionId":"s","schemaVersion":1,"sequence":0,"state":"idle","model":"p/m","effort":"auto","mode":"normal","workMode":"balanced","plannerMode":"off","goal":{"status":"none"},"phase":"idle","turnOutcome":{"kind":"none"},"finalReadiness":{"readyForReview":false,"summary":"","risks":[]},"sandbox":{"mode":"off","engine":"none","available":false,"workspaceRoot":"/w","writeRoots":["/w"],"networkEnabled":true},"usage":{"turn":TOTALS,"cumulative":TOTALS}}"#;
    const TOTALS: &str = r#"{"promptTokens":0,"completionTokens":0,"reasoningTokens":0,"cacheHitTokens":0,"cacheMissTokens":0,"cacheHitRatio":null,"estimatedCost":null,"currency":null,"usageSource":"executor"}"#;
    const SPENT: &str = r#"{"promptTokens":10,"completionTokens":4,"reasoningTokens":1,"cacheHitTokens":6,"cacheMissTokens":4,"cacheHitRatio":0.6,"estimatedCost":0.0000123,"currency":"USD","costComplete":true,"displayComplete":true,"displayStatus":"matched","aggregateMode":"single_currency","originalTotals":[{"amount":"0.0000123","currency":"USD"}],"costQuote":{"original":{"amount":"0.0000123","currency":"USD"},"originalTotals":[{"amount":"0.0000123","currency":"USD"}],"valuations":{"USD":{"basis":"identity","amount":"0.0000123","currency":"USD"}},"selected":{"amount":"0.0000123","currency":"USD"},"costComplete":true,"displayComplete":true,"complete":true,"displayStatus":"matched","aggregateMode":"single_currency","billingMode":"payg","coverage":"full"},"usageSource":"executor"}"#;

    #[track_caller]
    fn round_trip(text: &str) -> StatusSnapshot {
        let read: StatusSnapshot = serde_json::from_str(text).expect("it is one");
        assert_eq!(serde_json::to_string(&read).expect("json"), text);
        read
    }

    #[test]
    fn a_snapshot_has_all_its_members_with_null_where_nothing_is_known() {
        let read = round_trip(&FRESH.replace("TOTALS", TOTALS));
        assert_eq!(read.usage.turn.cache_hit_ratio, None);
        let mut made = StatusSnapshot::new(read.session_id.clone());
        made.usage.turn.usage_source = "executor".into();
        let text = serde_json::to_string(&made).expect("json");
        for member in [
            "goal",
            "phase",
            "turnOutcome",
            "finalReadiness",
            "sandbox",
            "usage",
        ] {
            assert!(text.contains(&alloc::format!("\"{member}\":")), "{member}");
        }
        assert!(text.contains(r#""estimatedCost":null,"currency":null"#));
    }

    #[test]
    fn amounts_stay_the_decimals_they_were() {
        let read = round_trip(&FRESH.replace("TOTALS", SPENT));
        let cost = read.usage.turn.estimated_cost.expect("a cost");
        assert_eq!(cost.get(), "0.0000123");
    }

    #[test]
    fn an_update_carries_the_snapshot() {
        let snapshot = FRESH.replace("TOTALS", TOTALS);
        let text = alloc::format!(
            r#"{{"sessionId":"s","event":"phase","status":{snapshot},"schemaVersion":1,"sequence":7}}"#
        );
        let read: StatusUpdate = serde_json::from_str(&text).expect("it is one");
        assert_eq!(serde_json::to_string(&read).expect("json"), text);
    }

    #[test]
    fn a_turn_says_what_is_left_to_do() {
        let text = r#"{"reasonix.io":{"turnOutcome":{"kind":"paused","reason":"r"}}}"#;
        let read: PromptMeta = serde_json::from_str(text).expect("it is one");
        assert_eq!(serde_json::to_string(&read).expect("json"), text);
    }
}
