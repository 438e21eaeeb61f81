/** Owns: prompts through the real connection worker and real servers: how they are known, what they answer, suggestions. */
import { expect, test } from "vitest";
import { type CallResult, decode } from "../../src/shared/protocol/calls.ts";
import type { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { answerWell, resultOf, serve } from "../support/http-server.ts";
import {
  createPlace,
  currentCatalog,
  everything,
  fixture,
  forRows,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

const promptsOf = async (started: Started, server: string) =>
  (await currentCatalog(started)).servers.find(({ name }) => name === server)?.prompts ?? [];

const get = async (
  { runtime }: Started,
  server: string,
  prompt: string,
  args: Record<string, string> = {},
): Promise<CallResult> => decode(await runtime.ask("getPrompt", { server, prompt, args })) as CallResult;

const complete = (
  { runtime }: Started,
  server: string,
  value: string,
  context: Record<string, string> = {},
): Promise<string[]> =>
  runtime.ask("completePrompt", {
    server,
    prompt: "completable-prompt",
    argument: Object.keys(context).length > 0 ? "name" : "department",
    value,
    context,
  });

const shared = forRows(async () => {
  const started = await start({
    everything: everything(),
    s: fixture("prompts.mjs", ODD),
    off: { ...fixture("prompts.mjs", ODD), exposePrompts: false },
  });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return started;
});

test("server-everything -> its prompts with their arguments; each answers its messages; suggestions follow the context", async () => {
  const started = await shared();
  const prompts = await promptsOf(started, "everything");
  expect(prompts.map(({ command }) => command)).toContain("mcp__everything__simple-prompt");
  expect(prompts.find(({ prompt }) => prompt === "args-prompt")?.arguments).toMatchObject([
    { name: "city", required: true },
    { name: "state" },
  ]);
  expect(textOf(await get(started, "everything", "args-prompt", { city: "Paris" }))).toContain("Paris");
  const embedded = await get(started, "everything", "resource-prompt", {
    resourceType: "Text",
    resourceId: "7",
  });
  expect(textOf(embedded)).toContain("[Resource: demo://resource/dynamic/text/7]");
  expect(await complete(started, "everything", "S")).toEqual(["Sales", "Support"]);
  expect(await complete(started, "everything", "", { department: "Support" })).toEqual([
    "John",
    "Kim",
    "Lee",
  ]);

  const failed = await get(started, "everything", "args-prompt").catch((error: ThreadsError) => error);
  expect(failed).toMatchObject({ code: "call_rejected" });
});

const BLOCKS = [
  { role: "user", content: { type: "text", text: "Look\u001b[2J:" } },
  { role: "user", content: { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } },
  { role: "assistant", content: [{ type: "text", text: "I see.", annotations: { audience: ["user"] } }] },
  { role: "user", content: { type: "resource", resource: { uri: "x://a", text: "long ".repeat(20_000) } } },
  null,
];
const ODD = {
  PROMPTS: JSON.stringify([{ name: "odd" }, { name: "none" }, { name: 7 }]),
  MESSAGES: JSON.stringify({ odd: BLOCKS, none: [] }),
};

test("messages of both roles with images, resources and nonsense -> one bounded message, whose lines tell the role", async () => {
  const started = await shared();
  expect((await promptsOf(started, "s")).map(({ prompt }) => prompt)).toEqual(["odd", "none"]);
  const { content, storedAt } = await get(started, "s", "odd");
  const texts = content.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n");
  expect(texts).toMatch(/^Look:\n/);
  expect(texts).toContain("\n[assistant]\nI see.\n[user]\n[Resource: x://a]");
  expect(Buffer.byteLength(texts)).toBeLessThan(60 * 1024);
  expect(storedAt).toBeDefined();
  const failed = await get(started, "s", "none").catch((error: ThreadsError) => error);
  expect(failed).toMatchObject({
    code: "call_rejected",
    message: "s answered the prompt none without messages.",
  });
});

test("a server over HTTP that starts again in a version with prompts -> its commands, without a new connection", async () => {
  let version = 1;
  const server = await serve((asked, response) => {
    const { message, headers } = asked;
    const session = `session-${version}`;
    const isStart = message.method === "initialize";
    if (asked.http === "POST" && !isStart && headers["mcp-session-id"] !== session)
      return response.writeHead(404).end();
    if (!isStart && message.method !== "prompts/list") return answerWell(asked, response);
    const answer = JSON.parse(resultOf(message));
    const capabilities = version === 1 ? { tools: {} } : { tools: {}, prompts: {} };
    const more = isStart ? { capabilities } : { prompts: [{ name: "greet" }] };
    response
      .writeHead(200, { "content-type": "application/json", "mcp-session-id": session })
      .end(JSON.stringify({ ...answer, result: { ...answer.result, ...more } }));
  });
  const started = await start({ web: { url: server.url } });
  await started.settled("web");
  expect(await promptsOf(started, "web")).toEqual([]);
  version = 2;
  expect((await started.failedCall("web", "echo")).message).toContain("no longer knows this session");
  const commands = await until(async () => {
    const prompts = await promptsOf(started, "web");
    return prompts.length > 0 ? prompts.map(({ command }) => command) : undefined;
  });
  expect(commands).toEqual(["mcp__web__greet"]);
  expect(server.log.filter((line) => line === "POST initialize")).toHaveLength(2);
});

test("suggestions of a server that is not connected -> none, and the server is not started", async () => {
  const place = await createPlace();
  const first = await start({ s: fixture("prompts.mjs", ODD) }, { place });
  await first.settled("s");
  await first.runtime.stop();
  const started = await start({ s: fixture("prompts.mjs", ODD) }, { place });
  await started.settled("s");
  expect(await complete(started, "s", "S")).toEqual([]);
  expect(started.events.filter(({ type }) => type === "spawned")).toEqual([]);
  // The prompt itself starts the server, as a call of a tool does.
  expect(textOf(await get(started, "s", "odd"))).toMatch(/^Look:/);
});

test("exposePrompts: false -> no commands", async () => {
  expect(await promptsOf(await shared(), "off")).toEqual([]);
});
