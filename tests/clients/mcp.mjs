// The command that the official MCP suite calls with the address of its server: node mcp.mjs PROGRAM ARGS… ADDRESS
// It hands that server to the agent as an editor would, waits until it stands, has one turn, and accepts every form
// with the values that it proposes.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const given = process.argv.slice(2);
const url = given.pop();
const [program, ...args] = given;
const { agent: ask, client: answer } = acp.methods;
const folder = (name) => mkdtempSync(join(tmpdir(), `mcp-${name}-`));
const cwd = folder("work");

const agent = spawn(program, args, {
  stdio: ["pipe", "pipe", "inherit"],
  env: { ...process.env, REASONIX_HOME: folder("home") },
});
const gone = new Promise((resolve) => agent.on("exit", resolve));
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await acp
  .client({ name: "mcp.mjs" })
  .onRequest(answer.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find((o) => o.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(answer.elicitation.create, ({ params }) => {
    const fields = Object.entries(params.requestedSchema?.properties ?? {});
    const content = Object.fromEntries(fields.filter(([, f]) => f.default !== undefined).map(([k, f]) => [k, f.default]));
    return { action: "accept", content };
  })
  .onNotification(answer.session.update, ({ params }) => {
    const { sessionUpdate, title, status } = params.update;
    if (sessionUpdate.startsWith("tool_call")) console.log(sessionUpdate, title ?? "", status ?? "");
  })
  .connectWith(stream, async (to) => {
    await to.request(ask.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { elicitation: { form: {} } },
    });
    const { sessionId } = await to.request(ask.session.new, {
      cwd,
      mcpServers: [{ type: "http", name: "conf", url, headers: [] }],
    });
    const status = async () => {
      const { servers } = await to.request("_reasonix.io/session/mcpStatus", { sessionId });
      return servers[0].status;
    };
    while ((await status()) === "connecting") await new Promise((resolve) => setTimeout(resolve, 50));
    const text = process.env.MCP_CONFORMANCE_SCENARIO;
    console.log(await to.request(ask.session.prompt, { sessionId, prompt: [{ type: "text", text }] }));
    await to.request(ask.session.close, { sessionId });
  });
agent.stdin.end();
process.exit(await gone);
