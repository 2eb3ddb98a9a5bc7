//! `run`: one turn in the terminal.

use crate::Runtime;
use crate::exit::{Exit, Failure};
use crate::flags::invocation::{RunPlan, Show};
use crate::sessions;
use crate::turn::{self, Approvals, Opens, Turn, View};

/// Runs it.
pub fn run(runtime: Runtime, plan: RunPlan) -> Result<Exit, Failure> {
    let (cwd, opens) = match &plan.goes_on {
        None => (plan.cwd, Opens::New),
        Some(which) => {
            let found = sessions::to_go_on(runtime, plan.config.clone(), which, &plan.cwd);
            let found = found.inspect_err(|failure| {
                if plan.show == Show::Json {
                    turn::error_line(failure, None);
                }
            })?;
            let set = plan.set;
            (found.cwd.clone(), Opens::GoesOn { found, set })
        }
    };
    let turn = Turn {
        config: plan.config,
        cwd,
        opens,
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
