//! A reasonix agent inside another program, on async-io: ask it something, show what it says, allow
//! what it asks for. `embed SCRIPT [PROMPT]` plays a scripted model; no key is needed.

#![expect(clippy::wildcard_enum_match_arm, reason = "events are an open enum")]

use std::env;
use std::error::Error;

use async_io::block_on;
use futures_lite::future::zip;
use reasonix_core::agent::Config;
use reasonix_core::model::script::Script;
use reasonix_core::protocol::schema::{
    ClientCapabilities, ContentBlock, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionUpdate,
};
use reasonix_core::protocol::{AgentAnswer, ClientEvent};
use reasonix_smol::{Client, config};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let script = arguments.next().ok_or("usage: embed SCRIPT [PROMPT]")?;
    let prompt = arguments.next().unwrap_or_else(|| "Go on.".into());
    let mut config = Config::new(config::seed()?, config::host());
    config.ephemeral = true; // nothing is stored in the person's home
    config.script = Some(Script::parse(&std::fs::read_to_string(script)?)?);
    let (client, agent) = Client::start(config)?;
    // Any executor of one thread will do; here both take turns on this thread.
    let (talked, served) = block_on(zip(talk(client, prompt), agent));
    served?;
    talked
}

async fn talk(mut client: Client, prompt: String) -> Result<(), Box<dyn Error>> {
    let hello = client.initialize(ClientCapabilities::default()).await?;
    let name = hello.agent_info.map_or("an agent".into(), |it| it.name);
    println!("[talking to {name}]");
    let cwd = env::current_dir()?;
    let session = client.new_session(&cwd.to_string_lossy()).await?;
    client.prompt(&session, vec![ContentBlock::text(prompt)]);
    while let Some(event) = client.next_event().await? {
        match event {
            ClientEvent::Update(note) => match note.update {
                SessionUpdate::AgentMessageChunk(chunk) => {
                    print!("{}", chunk.content.as_text().unwrap_or("[something else]"));
                }
                SessionUpdate::ToolCall(call) => println!("[{}]", call.title),
                _ => {}
            },
            ClientEvent::RequestPermission { asked, request } => {
                let first = &request.options[0];
                println!("[{}: {}]", request.tool_call.tool_call_id, first.name);
                let chosen = SelectedPermissionOutcome::new(first.option_id.clone());
                let outcome = RequestPermissionOutcome::Selected(chosen);
                client.answer(asked, Ok(RequestPermissionResponse::new(outcome)));
            }
            ClientEvent::Answered {
                answer: AgentAnswer::Prompt(answer),
                ..
            } => {
                println!("\n[{:?}]", answer?.stop_reason);
                break;
            }
            _ => {}
        }
    }
    client.close().await?;
    Ok(())
}
