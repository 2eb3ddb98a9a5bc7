// A tour of the agent by the official TypeScript SDK, which checks every message it is sent: node sdk.mjs PROGRAM ARGS…
// What was said is then listed and loaded after a restart, with the program that $NEXT_PROGRAM names, or the same one.
// Prints a line a check; fails if one failed. Runs in the folder of the session.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [program, ...args] = process.argv.slice(2);
const cwd = process.cwd();
const { agent: ask, client: answer } = acp.methods;
const updates = [];
const cards = [];
let failed = 0;

const check = (what, holds, seen) => {
  console.log(`${holds ? "ok  " : "FAIL"}  ${what}${holds || seen === undefined ? "" : `: ${JSON.stringify(seen)}`}`);
  failed += holds ? 0 : 1;
};
const said = (from, kind = "agent_message_chunk") =>
  updates.slice(from).filter((u) => u.update.sessionUpdate === kind).map((u) => u.update.content.text).join("");
const hello = (to) =>
  to.request(ask.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "sdk.mjs", version: "1" },
  });
const refused = (promise) => promise.then(() => undefined, (error) => error);

async function tour(to) {
  const { protocolVersion, agentCapabilities } = await hello(to);
  check("initialize is answered with version 1", protocolVersion === 1, protocolVersion);
  const opened = await to.request(ask.session.new, { cwd, mcpServers: [] });
  const { sessionId } = opened;
  check("a session has an id", typeof sessionId === "string" && sessionId.length > 0, opened);
  const prompt = (text) => to.request(ask.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

  let from = updates.length;
  let turn = await prompt("hello");
  check("a turn ends", turn.stopReason === "end_turn", turn);
  check("what was said came before the end", said(from) === "Hello from the script.", said(from));
  check("what was thought too", said(from, "agent_thought_chunk") === "Simple.", said(from, "agent_thought_chunk"));

  for (const [choice, there] of [["reject_once", false], ["allow_once", true]]) {
    cards.length = 0;
    tour.choice = choice;
    from = updates.length;
    turn = await prompt("write a file");
    check(`a write is asked for (${choice})`, cards.length === 1 && !cards[0].there, cards);
    check(`and is on the disk only after a yes (${choice})`, existsSync("made.txt") === there);
    const ends = updates.slice(from).map((u) => u.update.status).filter(Boolean);
    check(`its card ends (${choice})`, ends.at(-1) === (there ? "completed" : "failed"), ends);
  }
  check("the file holds what was shown", readFileSync("made.txt", "utf8") === "made\n");

  from = updates.length;
  const long = prompt("wait_for_cancel");
  while (said(from) === "") await new Promise((resolve) => setTimeout(resolve, 20));
  await to.notify(ask.session.cancel, { sessionId });
  turn = await long;
  check("a cancel ends a turn as cancelled", turn.stopReason === "cancelled", turn);
  const quiet = updates.length;

  const options = opened.configOptions ?? [];
  const option = options.find((o) => o.type === "select" && o.options.length > 1);
  if (option) {
    const { value } = option.options.find((o) => o.value !== option.currentValue);
    const set = await to.request(ask.session.setConfigOption, { sessionId, configId: option.id, value });
    check("an option is set", set.configOptions.find((o) => o.id === option.id).currentValue === value, set);
  }
  check("nothing of a turn comes after its end", updates.slice(quiet).every((u) => !/chunk|tool/.test(u.update.sessionUpdate)));
  let error = await refused(to.request(ask.session.prompt, { sessionId: "nobody", prompt: [{ type: "text", text: "x" }] }));
  check("an unknown session is refused", error?.code === -32002, error);
  error = await refused(to.request(ask.session.new, { cwd: "relative", mcpServers: [] }));
  check("a relative folder is refused", error?.code === -32602, error);

  if (agentCapabilities?.sessionCapabilities?.list) {
    const { sessions } = await to.request(ask.session.list, {});
    check("the session is in the list", sessions.some((s) => s.sessionId === sessionId && s.cwd === cwd), sessions);
  }
  if (agentCapabilities?.loadSession) {
    from = updates.length;
    await to.request(ask.session.load, { sessionId, cwd, mcpServers: [] });
    check("a load tells what was said", said(from).startsWith("Hello from the script."), said(from).slice(0, 80));
    check("and what was asked", said(from, "user_message_chunk").startsWith("hello"), said(from, "user_message_chunk"));
  }
  if (agentCapabilities?.sessionCapabilities?.close) {
    await to.request(ask.session.close, { sessionId });
    error = await refused(prompt("x"));
    check("a closed session is unknown", error?.code === -32002, error);
  }
  tour.session = sessionId;
}

// Another process: what was said is in the list, is shown, and goes on.
async function restarted(to) {
  await hello(to);
  const { sessions } = await to.request(ask.session.list, { cwd });
  const found = sessions.find((s) => s.sessionId === tour.session);
  check("after a restart the session is in the list", found?.title === "hello", sessions);
  let from = updates.length;
  await to.request(ask.session.load, { sessionId: tour.session, cwd, mcpServers: [] });
  const seen = [said(from, "user_message_chunk"), said(from), said(from, "agent_thought_chunk")];
  check("a load tells what was asked", seen[0] === "hellowrite a filewrite a filewait_for_cancel", seen[0]);
  check("and what was said", seen[1].startsWith("Hello from the script.I write it. "), seen[1].slice(0, 80));
  check("and what was thought", seen[2].startsWith("Simple.A file is wanted."), seen[2]);
  const ends = updates.slice(from).map((u) => u.update.status).filter((s) => s === "completed" || s === "failed");
  check("and how the calls ended", ends.join() === "failed,completed", ends);
  from = updates.length;
  const prompt = [{ type: "text", text: "hello again" }];
  const turn = await to.request(ask.session.prompt, { sessionId: tour.session, prompt });
  check("and the session goes on", turn.stopReason === "end_turn" && said(from) === "Hello from the script.", turn);
}

async function live(program, act) {
  const agent = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise((resolve) => agent.on("exit", (code, signal) => resolve({ code, signal })));
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  await acp
    .client({ name: "sdk.mjs" })
    .onRequest(answer.session.requestPermission, ({ params }) => {
      cards.push({ title: params.toolCall.title, there: existsSync("made.txt") });
      const { optionId } = params.options.find((o) => o.kind === tour.choice);
      return { outcome: { outcome: "selected", optionId } };
    })
    .onNotification(answer.session.update, ({ params }) => void updates.push(params))
    .connectWith(stream, act);
  agent.stdin.end();
  const late = setTimeout(() => agent.kill("SIGKILL"), 5000);
  const end = await gone;
  clearTimeout(late);
  check("the end of the input ends the agent well", end.code === 0, end);
}

await live(program, tour);
await live(process.env.NEXT_PROGRAM || program, restarted);
process.exit(failed ? 1 : 0);
