//! `mcp`: the MCP servers that sessions of a folder have. Lists them, tries one out, and says which of
//! the project's own may be started. What a client names is not known here.

mod approve;
mod known;
mod list;
mod probe;
mod test;

use crate::exit::{Exit, Failure};
use crate::flags::invocation::{McpPlan, McpTask};
use known::Known;

/// Does it.
pub fn mcp(plan: &McpPlan) -> Result<Exit, Failure> {
    let known = Known::read(plan)?;
    match &plan.task {
        McpTask::List { json } => {
            list::list(&known, *json);
            // Those of config.toml are listed all the same.
            known.whole().map(|_| Exit::Ok)
        }
        McpTask::Test { name, json } => test::test(&known, name, *json),
        McpTask::Approve { names, json } => approve::approve(&known, names, *json),
        McpTask::Revoke { names, json } => approve::revoke(&known, names, *json),
    }
}
