// Speaks to the agent in the wasm module: a handshake, a session, a turn. No imports are given to it.
import { readFileSync } from "node:fs";

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const { exports: agent } = new WebAssembly.Instance(module, {});
let now = 0n;
const soon = () => {
  const at = agent.deadline();
  return at > now ? at : now + 100n;
};

const say = (message) => {
  const bytes = new TextEncoder().encode(message ? JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n" : "");
  const at = agent.input(bytes.length);
  new Uint8Array(agent.memory.buffer, at, bytes.length).set(bytes);
  const length = agent.feed((now = soon()));
  const text = new TextDecoder().decode(new Uint8Array(agent.memory.buffer, agent.output(), length));
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
};
const must = (what, holds) => {
  if (!holds) throw new Error(what);
};

agent.start(BigInt(Date.now()), ...crypto.getRandomValues(new BigUint64Array(4)));
const hello = say({ id: 0, method: "initialize", params: { protocolVersion: 1 } });
must("initialize is answered", hello[0].result.protocolVersion === 1);
const opened = say({ id: 1, method: "session/new", params: { cwd: "/", mcpServers: [] } });
const { sessionId } = opened.find((frame) => frame.id === 1).result;
const turn = say({ id: 2, method: "session/prompt", params: { sessionId, prompt: [{ type: "text", text: "hi" }] } });
for (let i = 0; i < 20 && !turn.some((frame) => frame.id === 2); i++) turn.push(...say());
const chunks = turn.filter((frame) => frame.params?.update?.sessionUpdate === "agent_message_chunk");
const text = chunks.map((frame) => frame.params.update.content.text).join("");
must(`the model speaks: ${text}`, text === "Hello from a module without imports.");
must("the turn ends", turn.find((frame) => frame.id === 2).result.stopReason === "end_turn");
console.log(`a turn in wasm: ${JSON.stringify(text)}`);
