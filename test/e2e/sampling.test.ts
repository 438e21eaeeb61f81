/**
 * Owns: prompts of servers for the model (MCP: sampling) in the real Pi over RPC: a real server, the answer that is read
 * first, a no, a model that fails, a call that is cancelled, a project that may not, and print mode.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { runPrint } from "../support/pi-run.ts";
import { inTurn } from "./in-turn.ts";
import { dialogsOf, type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, once, readLog, SERVERS } from "./support.ts";

const asksUser = (more: object): object => ({
  ...fixtureServer("asks-user.mjs"),
  directTools: true,
  elicitation: false,
  ...more,
});
const mcp = {
  mcpServers: {
    real: { ...SERVERS.everything, directTools: true, sampling: true },
    plain: asksUser({}),
    q: asksUser({ sampling: true }),
  },
};
const SEND = "Send it";
const REVIEW = "Send it, and show me the answer before the server gets it";
const GIVE = "Give it to the server";
const REFUSED = { code: -1, message: "User rejected sampling request" };
const ASK = {
  messages: [{ role: "user", content: { type: "text", text: "Colour of the sky?" } }],
  maxTokens: 9,
};
const asking = (ask: object = ASK, server = "q") =>
  call(`${server}__ask`, { ask, method: "sampling/createMessage" });

const turn = inTurn();
/** The first session, for several tests. */
const session = once(() => turn({ mcp }));

/** One prompt, its turns of the model, and the answers to its dialogs, in order; a dialog beyond them stays open. */
async function run(opened: Opened, turns: Parameters<Opened["prompt"]>, ...answers: string[]) {
  const [since, asked] = [opened.rpc.events.length, opened.scripted.requests.length];
  const left = [...answers];
  opened.rpc.answerUi(() => {
    const value = left.shift();
    return value === undefined ? undefined : value === "Escape" ? { cancelled: true } : { value };
  });
  const [end] = await opened.prompt(...turns);
  return {
    end,
    dialogs: dialogsOf(opened.rpc, since),
    requests: opened.scripted.requests.slice(asked),
  };
}
const got = (end: { text?: string } | undefined): unknown => JSON.parse(end?.text ?? "null");

test("server-everything asks the model -> after a yes it gets the answer, and the model read its prompt alone", async () => {
  const at = await session();
  const args = { prompt: "Colour of the sky?", maxTokens: 50 };
  const turns = [call("real__trigger-sampling-request", args), { text: "Blue." }] as const;
  const { end, dialogs, requests } = await run(at, [...turns], SEND);
  expect(dialogs).toHaveLength(1);
  expect(dialogs[0]?.title.replace(/ to \S+\/\S+\?/, " to the model?")).toBe(
    [
      "Send this of the MCP server real to the model? The answer has at most 50 tokens.",
      "System prompt:\n│ You are a helpful test server.",
      "User:\n│ Resource trigger-sampling-request context: Colour of the sky?",
    ].join("\n"),
  );
  const result = JSON.parse(/LLM sampling result: \n(\{[\s\S]*\})/.exec(end?.text ?? "")?.[1] ?? "null");
  expect(result).toMatchObject({
    role: "assistant",
    content: { type: "text", text: "Blue." },
    stopReason: "endTurn",
  });
  const body = JSON.parse(requests[1]?.body ?? "null");
  expect(body.messages.map(({ content }: { content: unknown }) => JSON.stringify(content))).toEqual([
    expect.stringContaining("You are a helpful test server."),
    expect.stringContaining("Resource trigger-sampling-request context: Colour of the sky?"),
  ]);
  expect(body.tools ?? []).toEqual([]);
  expect(body.temperature).toBe(0.7);
  expect([body.max_tokens, body.max_completion_tokens]).toContain(50);
  await expect
    .poll(() => readLog(at.at), { timeout: PATIENCE_MS })
    .toMatch(/real got an answer of \S+, which read/);
});

test("the answer is read first -> it is given, or kept", { tags: "thorough" }, async () => {
  const at = await session();
  const given = await run(at, [asking(), { text: "Blue." }], REVIEW, GIVE);
  expect(given.dialogs[1]?.title).toMatch(/^Give this answer to the MCP server q\?\n\S+:\n│ Blue\.$/);
  expect(got(given.end)).toMatchObject([{ content: { text: "Blue." } }]);
  const kept = await run(at, [asking(), { text: "Blue." }], REVIEW, "No");
  expect(got(kept.end)).toEqual([REFUSED]);
});

test.each(["No", "Escape"])("%s -> the model is not asked, and the server gets an error", async (answer) => {
  const at = await session();
  const { end, requests } = await run(at, [asking()], answer);
  expect(got(end)).toEqual([REFUSED]);
  expect(
    requests.filter(({ body }) => body.includes("Colour of the sky?") && !body.includes("q__ask")),
  ).toEqual([]);
});

test("an image, and tools -> no dialog, and the server is told why", async () => {
  const at = await session();
  const image = { type: "image", data: "aaaa", mimeType: "image/png" };
  const { end, dialogs } = await run(at, [
    asking({ messages: [{ role: "user", content: image }], maxTokens: 9 }),
  ]);
  expect(got(end)).toEqual([
    { code: -32_602, message: "Not sent to the model: a message holds something other than text." },
  ]);
  expect(dialogs).toEqual([]);
  expect(got((await run(at, [asking({ ...ASK, tools: [] })])).end)).toMatchObject([{ code: -32_602 }]);
});

test("a call is cancelled while the model works -> its request ends, and the next one works", async () => {
  const at = await session();
  const since = at.scripted.requests.length;
  const never = new Promise<never>(() => undefined);
  const running = run(at, [asking(), () => never as never], SEND);
  await expect.poll(() => at.scripted.requests.length, { timeout: PATIENCE_MS }).toBe(since + 2);
  await at.rpc.request({ type: "abort" });
  expect((await running).end?.isError).toBe(true);
  expect(got((await run(at, [asking(), { text: "Blue." }], SEND)).end)).toMatchObject([
    { stopReason: "endTurn" },
  ]);
});

test("without the key -> the server is told nothing of it, and its request is unknown", async () => {
  const at = await session();
  const { end, dialogs } = await run(at, [asking(ASK, "plain")]);
  expect(got(end)).toEqual([{ code: -32_601, message: "Method not found" }]);
  expect(dialogs).toEqual([]);
  const told = async (server: string) => got((await run(at, [call(`${server}__seen`, {})])).end);
  expect(await told("plain")).toMatchObject({ capabilities: {} });
  expect(await told("q")).toMatchObject({ capabilities: { sampling: {} } });
});

test("print mode -> nobody can say yes, so the server is told that there is no model", {
  tags: "thorough",
}, async () => {
  const at = await home({ mcp });
  const script = await model([asking(), call("q__seen", {}), { text: "done." }]);
  await runPrint({ home: at, model: script, extensions: ENTRY, prompt: "go" });
  const texts = JSON.stringify(script.requests.at(-1));
  expect(texts).toContain("Method not found");
  expect(texts.replaceAll("\\", "")).toContain(
    '{"capabilities":{"extensions":{"io.modelcontextprotocol/skills":{}}},',
  );
});

test("a project's file -> the key has no effect and is named with its place", async () => {
  const file = { mcpServers: { mine: asksUser({ sampling: true }) } };
  const opened = await turn({ mcp: {}, files: { ".mcp.json": file } });
  opened.rpc.answerUi(({ options = [] }) => ({
    value: options.find((one) => one === "Allow" || one === "Next page") ?? options[0] ?? "",
  }));
  await opened.notice(/\.mcp\.json:\d+:\d+: mcpServers\.mine\.sampling: has no effect in a project's file/);
  await opened.notice(/\+ mine \(2 tools\)/);
  const [end] = await opened.prompt(call("mine__seen", {}));
  expect(got(end)).toMatchObject({ capabilities: {} });
});

test("another extension registers the server -> it may: such an extension could ask the model by itself", async () => {
  const entry = JSON.stringify(asksUser({ sampling: true }));
  const registers = `export default (pi) => pi.registerMcpServer("theirs", ${entry});`;
  const opened = await turn(({ cwd }) => ({
    mcp: {},
    files: { "registers.mjs": registers },
    settings: { extensions: ["-builtin:mcp", join(cwd, "registers.mjs")] },
  }));
  const { end, dialogs } = await run(opened, [asking(ASK, "theirs"), { text: "Blue." }], SEND);
  expect(dialogs[0]?.title).toContain("Send this of the MCP server theirs to ");
  expect(got(end)).toMatchObject([{ content: { text: "Blue." } }]);
});
