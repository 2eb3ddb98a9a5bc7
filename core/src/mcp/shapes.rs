//! The messages of MCP that this side reads and writes. Tolerant in what it reads: what a server
//! says beyond this is passed over.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the protocol that is asked for.
pub const LATEST_VERSION: &str = "2025-11-25";

/// The versions that are spoken, newest first.
pub const VERSIONS: [&str; 4] = [LATEST_VERSION, "2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Serialize)]
pub(super) struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize<'a> {
    pub protocol_version: &'static str,
    pub capabilities: ClientCapabilities,
    pub client_info: Info<'a>,
}

#[derive(Serialize)]
pub(super) struct ClientCapabilities {
    pub roots: RootsCapability,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Elicitation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RootsCapability {
    pub list_changed: bool,
}

#[derive(Serialize)]
pub(super) struct Elicitation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Empty>,
}

#[derive(Serialize)]
pub(super) struct Info<'a> {
    pub name: &'a str,
    pub version: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized<'a> {
    pub protocol_version: String,
    #[serde(default, borrow)]
    pub capabilities: ServerCapabilities<'a>,
    #[serde(default, borrow)]
    pub server_info: Option<&'a RawValue>,
}

/// What a server calls itself.
#[derive(Default, Deserialize)]
pub(super) struct ServerInfo {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
}

#[derive(Default, Deserialize)]
pub(super) struct ServerCapabilities<'a> {
    #[serde(default, borrow)]
    pub tools: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub resources: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub prompts: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolPage<'a> {
    #[serde(default, borrow)]
    pub tools: Vec<&'a RawValue>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawTool<'a> {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, borrow)]
    pub input_schema: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct CallTool<'a> {
    pub name: &'a str,
    pub arguments: &'a RawValue,
    #[serde(rename = "_meta")]
    pub meta: CallMeta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallMeta {
    pub progress_token: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolAnswer<'a> {
    #[serde(default, borrow)]
    pub content: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    pub structured_content: Option<&'a RawValue>,
    #[serde(default)]
    pub is_error: Option<bool>,
}

/// One part of an answer, whatever its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub data: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub resource: Option<Contents>,
    #[serde(default)]
    pub uri: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

/// What a resource holds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contents {
    #[serde(default)]
    pub uri: String,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub blob: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ResourceAnswer {
    #[serde(default)]
    pub contents: Vec<Contents>,
}

#[derive(Deserialize)]
pub(super) struct ResourcePage {
    #[serde(default)]
    pub resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    pub uri: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ReadResource<'a> {
    pub uri: &'a str,
}

/// Arguments of the tool that reads resources.
#[derive(Deserialize)]
pub(super) struct ResourceWish {
    #[serde(default)]
    pub uri: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptPage<'a> {
    #[serde(default, borrow)]
    pub prompts: Vec<&'a RawValue>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RawPrompt {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub arguments: Option<Vec<RawArgument>>,
}

#[derive(Deserialize)]
pub(super) struct RawArgument {
    pub name: String,
    #[serde(default)]
    pub required: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct GetPrompt<'a> {
    pub name: &'a str,
    pub arguments: &'a BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct PromptAnswer {
    pub messages: Vec<PromptMessage>,
}

#[derive(Deserialize)]
pub(super) struct PromptMessage {
    pub role: String,
    pub content: Part,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancelled<'a> {
    pub request_id: u64,
    pub reason: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WasCancelled<'a> {
    #[serde(borrow)]
    pub request_id: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress<'a> {
    #[serde(borrow)]
    pub progress_token: &'a RawValue,
    #[serde(default, borrow)]
    pub progress: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub total: Option<&'a RawValue>,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Logged<'a> {
    #[serde(default)]
    pub level: Option<String>,
    #[serde(default, borrow)]
    pub data: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub(super) struct Roots<'a> {
    pub roots: Vec<Root<'a>>,
}

#[derive(Serialize)]
pub(super) struct Root<'a> {
    pub uri: String,
    pub name: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicit<'a> {
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default, borrow)]
    pub requested_schema: Option<&'a RawValue>,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub elicitation_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Completed {
    pub elicitation_id: String,
}

#[derive(Serialize)]
pub(super) struct Elicited<'a> {
    pub action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a RawValue>,
}
