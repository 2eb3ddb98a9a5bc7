//! `run`: one turn in the terminal.

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::flags::invocation::{RunPlan, Show};
use crate::turn::{Approvals, Turn, View};

/// Runs it.
pub fn run(runtime: Runtime, plan: RunPlan) -> Result<Exit, Failure> {
    let turn = Turn {
        config: plan.config,
        cwd: plan.cwd,
        prompt: plan.prompt,
        approvals: Approvals::asking(),
        view: match plan.show {
            Show::All => View::All,
            Show::Answer => View::Answer,
            Show::Json => View::Json,
        },
        frames: false,
    };
    turn.run(runtime)
}
