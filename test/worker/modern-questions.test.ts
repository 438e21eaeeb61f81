/**
 * Owns: questions of servers in the stateless era, which come as results: each answer goes back with the repeated request,
 * over stdio and over HTTP, and the same tool asks in the old era.
 */
import { describe, expect, test } from "vitest";
import type { AskAnswer } from "../../src/shared/protocol/calls.ts";
import { type Fault, MODERN, sendMessage, sentTo, serveFixture } from "../support/modern-http.ts";
import { forRows, modernProgram, type Started, start, textOf } from "./support.ts";

const HTTP = ["rounds", "not-done", "for-ever", "cancelled"];
/** How a server meets the answers to its questions. */
const meeting =
  (meet: (...args: Parameters<Fault>) => unknown): Fault =>
  (asked, response, nth) => {
    const isRound = asked.message.params?.inputResponses !== undefined;
    if (isRound) meet(asked, response, nth);
    return isRound;
  };
const REFUSING: Record<string, Fault> = {
  "another state": meeting(({ message: { id } }, response) =>
    sendMessage(response, { id, error: { code: -32602, message: "unknown requestState" } }),
  ),
  "too many": meeting((_asked, response) => response.writeHead(429, { "retry-after": "7" }).end()),
  "bad request": meeting((_asked, response) => response.writeHead(400).end()),
  "gone away": meeting((_asked, response) => response.destroy()),
};
/** One worker for all but the session in which nobody can answer: a server for each way, and for each test over HTTP. */
const shared = forRows(async () => {
  const names = ["http modern", ...HTTP, ...Object.keys(REFUSING)];
  const served = names.map(async (name) => [name, await serveFixture("both", REFUSING[name])] as const);
  const servers = Object.fromEntries(await Promise.all(served));
  const at = await start({
    "stdio modern": { ...modernProgram(), protocol: MODERN },
    "stdio legacy": { ...modernProgram(), protocol: "legacy" },
    ...Object.fromEntries(names.map((name) => [name, { url: servers[name]?.url, protocol: MODERN }])),
  });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return { at, servers };
});

async function overHttp(name: string) {
  const { at, servers } = await shared();
  const server = servers[name];
  if (!server) throw new Error(`no server ${name}`);
  return { at, server };
}

/** Answers the questions of one call in order, and tells what they said. */
async function called(
  at: Started,
  server: string,
  tool: string,
  ...answers: AskAnswer[]
): Promise<{ text: string; said: string[] }> {
  let since = at.user.ofServers().length;
  const calling = at.call(server, tool);
  const said: string[] = [];
  for (const answer of answers) {
    const asked = await Promise.race([at.question(since), calling.then(() => undefined)]);
    if (!asked) break;
    since = at.user.ofServers().indexOf(asked) + 1;
    said.push(asked.question.ask.message);
    asked.answer(answer);
  }
  return { text: textOf(await calling), said };
}

const accept = (...values: string[]): AskAnswer => ({ action: "accept", values });

describe.each(["stdio modern", "stdio legacy", "http modern"])("over %s", (way) => {
  test("a form -> the answer arrives, and the state comes back as it was", async () => {
    const { at } = await shared();
    const { text, said } = await called(at, way, "ask", accept("Ann"));
    expect(said).toEqual(["Who are you?"]);
    expect(JSON.parse(text)).toEqual({
      answer: { kind: "elicit", action: "accept", content: { name: "Ann" } },
      state: 'state: "ä" \u2028 1',
    });
  });

  test.each(["decline", "cancel"] as const)("%s -> the server is told", async (action) => {
    const { at } = await shared();
    const { text } = await called(at, way, "ask", { action });
    expect(JSON.parse(text).answer).toMatchObject({ action });
  });

  test("two rounds and a page -> each question is asked once", async () => {
    const { at } = await shared();
    const twice = await called(at, way, "ask-twice", accept("Ann"), accept("Bob"));
    expect(twice).toEqual({ text: "Ann and Bob", said: ["Who is the first?", "Who is the second?"] });
    const page = await called(at, way, "ask-page", { action: "accept", open: false });
    expect(page.said).toEqual(["Sign in."]);
    expect(JSON.parse(page.text).answer).toMatchObject({ action: "accept" });
  });
});

test("a page that is not done yet -> asked about again, as one to which the user has been sent", async () => {
  const { at } = await overHttp("not-done");
  const since = at.user.ofServers().length;
  const calling = at.call("not-done", "ask-page", { looks: 2 });
  const first = await at.question(since);
  first.answer({ action: "accept", open: false });
  const second = await at.question(at.user.ofServers().indexOf(first) + 1);
  expect(first.question.ask).not.toHaveProperty("again");
  expect(second.question.ask).toEqual({ ...first.question.ask, again: true });
  second.answer({ action: "accept", open: false });
  expect(JSON.parse(textOf(await calling)).answer).toMatchObject({ action: "accept" });
});

test("each round over HTTP -> a new id, the same arguments, the state of the last answer", async () => {
  const { at, server } = await overHttp("rounds");
  await called(at, "rounds", "ask-twice", accept("Ann"), accept("Bob"));
  const sent = sentTo(server, "tools/call").map(({ message }) => message);
  expect(sent.map(({ params }) => params?.requestState)).toEqual([undefined, undefined, "Ann"]);
  expect(sent.map(({ params }) => params?.inputResponses)).toEqual([
    undefined,
    { who: { action: "accept", content: { name: "Ann" } } },
    { who: { action: "accept", content: { name: "Bob" } } },
  ]);
  expect(sent[0]?.params).not.toHaveProperty("requestState");
  expect(sent[1]?.params).not.toHaveProperty("requestState");
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  expect(new Set(sent.map(({ params }) => JSON.stringify(params?.arguments))).size).toBe(1);
});

test("a server that never has enough answers -> the call ends after ten rounds, and says so", async () => {
  const { at, server } = await overHttp("for-ever");
  let since = at.user.ofServers().length;
  const calling = at.failedCall("for-ever", "ask-for-ever");
  for (let round = 0; round < 20; round++) {
    const asked = await Promise.race([at.question(since), calling.then(() => undefined)]);
    if (!asked) break;
    since = at.user.ofServers().indexOf(asked) + 1;
    asked.answer(accept("Ann"));
  }
  expect((await calling).message).toMatch(/10/);
  expect(sentTo(server, "tools/call").length).toBeLessThanOrEqual(11);
});

const ENDED = { code: "server_died", remedy: "The call may have run. The next call connects again." };
test.each([
  [
    "another state",
    {
      code: "call_rejected",
      message: "another state/ask failed after it had begun: unknown requestState",
      remedy: "The call may have run: what the server did until then has happened.",
      data: { server: "another state", rpcCode: -32602, begun: true },
    },
  ],
  ["too many", { ...ENDED, message: expect.stringMatching(/^too many\/ask failed: .* answered status 429/) }],
  ["bad request", { ...ENDED, message: expect.stringMatching(/^bad request\/ask failed: .* status 400/) }],
  ["gone away", { ...ENDED, message: expect.stringMatching(/^gone away\/ask failed: .* without an answer/) }],
])(
  "answers that a server does not take (%s) -> the call may have run, and is not repeated",
  async (name, expected) => {
    const { at, server } = await overHttp(name);
    const since = at.user.ofServers().length;
    const calling = at.failedCall(name, "ask");
    (await at.question(since)).answer(accept("Ann"));
    expect(await calling).toMatchObject(expected);
    expect(sentTo(server, "tools/call")).toHaveLength(2);
  },
);

test("nobody can answer -> no server is told that it may ask, and its question fails the call", async () => {
  const server = await serveFixture("both");
  const at = await start({ s: { url: server.url, protocol: MODERN } }, { facts: { canAsk: false } });
  await at.settled("s");
  const { envelope } = JSON.parse(textOf(await at.call("s", "sees")));
  expect(envelope["io.modelcontextprotocol/clientCapabilities"]).not.toHaveProperty("elicitation");
  const calling = await at.call("s", "ask").catch((error: unknown) => error);
  expect(String(calling instanceof Error ? calling.message : textOf(calling as never))).toMatch(
    /elicitation|ask/i,
  );
  expect(sentTo(server, "tools/call")).toHaveLength(2);
  expect(at.user.asked).toEqual([]);
});

test("a call that is cancelled while it asks -> the question is withdrawn, and the call is not repeated", async () => {
  const { at, server } = await overHttp("cancelled");
  const cancel = new AbortController();
  const since = at.user.ofServers().length;
  const failed = at.failedCall("cancelled", "ask", {}, cancel.signal);
  const { signal } = await at.question(since);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await expect.poll(() => signal.aborted).toBe(true);
  expect(sentTo(server, "tools/call")).toHaveLength(1);
});
