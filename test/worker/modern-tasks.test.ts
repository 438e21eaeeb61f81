/**
 * Owns: calls that become tasks (extension io.modelcontextprotocol/tasks), against a server without an SDK: polled,
 * answered, cancelled, and polled again after a lost connection.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TestServer } from "../support/http-server.ts";
import { type Fault, MODERN, metaOf, sentTo, serveTasks } from "../support/modern-http.ts";
import { fixtures, forRows, type Started, start, textOf, until } from "./support.ts";

/** How often a server of its own lost a poll. */
let lost = 0;
const losesPolls: Fault = ({ message }, response) => {
  if (message.method !== "tasks/get" || lost === 2) return false;
  lost++;
  response.destroy();
  return true;
};
/** The sign-in is refused at the second poll of a task. */
const refusing = (status: number, challenge: string): Fault => {
  let polls = 0;
  return ({ message }, response) => {
    if (message.method !== "tasks/get" || ++polls < 2) return false;
    response.writeHead(status, { "www-authenticate": challenge }).end();
    return true;
  };
};
const FAULTS: Record<string, Fault> = {
  loses: losesPolls,
  "signed out": refusing(401, "Bearer"),
  "wants rights": refusing(403, 'Bearer error="insufficient_scope", scope="write"'),
};
const MAY_HAVE_RUN = "The call may have run: what the server did until then has happened.";
const ODD = [
  "no id",
  "an id that is no text",
  "an id with a line break",
  "an id of 100,000 characters",
] as const;

/** One worker with a server for each test; `stdio` is the one over stdio. */
const shared = forRows(async () => {
  const names = ["done", "asks", "fails", "stays", "vanishes", ...Object.keys(FAULTS), ...ODD];
  const served = names.map(async (name) => [name, await serveTasks(FAULTS[name])] as const);
  const servers = Object.fromEntries(await Promise.all(served));
  const stdio = { command: process.execPath, args: [join(fixtures, "modern", "tasks.mjs")] };
  const at = await start({
    stdio: { ...stdio, protocol: MODERN },
    ...Object.fromEntries(names.map((name) => [name, { url: servers[name]?.url, protocol: MODERN }])),
  });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return { at, servers };
});

async function overHttp(name: string): Promise<{ at: Started; server: TestServer }> {
  const { at, servers } = await shared();
  const server = servers[name];
  if (!server) throw new Error(`no server ${name}`);
  return { at, server };
}

test("a task -> polled until it is done; its words are progress; each poll names the task in a header", async () => {
  const { at, server } = await overHttp("done");
  expect(textOf(await at.call("done", "slow", { polls: 2 }))).toBe("after 2 polls");
  expect(sentTo(server, "tools/call")).toHaveLength(1);
  const polls = sentTo(server, "tasks/get");
  expect(polls).toHaveLength(2);
  for (const poll of polls) {
    expect(poll.headers).toMatchObject({ "mcp-method": "tasks/get", "mcp-name": "task-1" });
    expect(metaOf(poll)["io.modelcontextprotocol/clientCapabilities"]).toMatchObject({
      extensions: { "io.modelcontextprotocol/tasks": {} },
    });
  }
  await at.event("progress", ({ message }) => message === "poll 1 of 2");
});

test("a task over stdio -> done", async () => {
  const { at } = await shared();
  expect(textOf(await at.call("stdio", "slow", { polls: 1 }))).toBe("after 1 polls");
});

test("a task that asks -> one question, its answer goes to the task", async () => {
  const { at, server } = await overHttp("asks");
  const calling = at.call("asks", "asks");
  const { question, answer } = await at.question();
  expect(question.ask.message).toBe("Who are you?");
  answer({ action: "accept", values: ["Ann"] });
  expect(JSON.parse(textOf(await calling))).toEqual([
    { who: { action: "accept", content: { name: "Ann" } } },
  ]);
  expect(sentTo(server, "tasks/update")).toHaveLength(1);
  expect(at.user.asked).toHaveLength(1);
});

test("a task that fails, and one that ends with an error result -> told apart", async () => {
  const { at } = await shared();
  const failed = await at.failedCall("fails", "fails");
  expect(failed).toMatchObject({
    code: "call_rejected",
    message: "fails/fails failed after it had begun: the printer is on fire",
    remedy: MAY_HAVE_RUN,
    data: { server: "fails", rpcCode: -32603, begun: true },
  });
  expect(await at.call("fails", "refuses")).toMatchObject({ isError: true });
});

test("a call that is cancelled -> the task is cancelled, and polled no more", async () => {
  const { at, server } = await overHttp("stays");
  const cancel = new AbortController();
  const failed = at.failedCall("stays", "stays", {}, cancel.signal);
  await until(async () => sentTo(server, "tasks/get").length > 0 || undefined);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => sentTo(server, "tasks/cancel").length === 1 || undefined);
  const [sent] = sentTo(server, "tasks/cancel");
  expect(sent?.message.params).toMatchObject({ taskId: "task-1" });
  expect(server.asked.filter(({ message }) => message.id === undefined)).toEqual([]);
});

test("polls that get no answer -> polled again; the call itself is sent once", async () => {
  const { at, server } = await overHttp("loses");
  expect(textOf(await at.call("loses", "slow", { polls: 1 }))).toBe("after 1 polls");
  expect(lost).toBe(2);
  expect(sentTo(server, "tools/call")).toHaveLength(1);
});

test.each([
  ["signed out", "needs-auth"],
  ["wants rights", "connected"],
])(
  "a task whose poll needs a sign-in (%s) -> another error, since the call has begun; the server is %s",
  async (name, state) => {
    const { at, server } = await overHttp(name);
    const failed = await at.failedCall(name, "stays");
    expect(failed).toMatchObject({ code: "call_rejected", data: { server: name, begun: true } });
    expect(failed.remedy).toMatch(/^The server has begun with the call, which may still run there\. ./);
    expect(sentTo(server, "tools/call")).toHaveLength(1);
    await until(async () => (await at.settled(name)).state === state || undefined);
  },
);

test("a task that the server no longer knows -> the call fails, and says that it may have run", async () => {
  const { at, server } = await overHttp("vanishes");
  const failed = await at.failedCall("vanishes", "vanishes");
  expect(failed).toMatchObject({
    code: "call_rejected",
    message: "vanishes/vanishes failed after it had begun: Task not found",
    remedy: MAY_HAVE_RUN,
    data: { server: "vanishes", rpcCode: -32602, begun: true },
  });
  expect(sentTo(server, "tools/call")).toHaveLength(1);
});

test.each([
  [ODD[0], { resultType: "task", status: "working" }],
  [ODD[1], { resultType: "task", taskId: { a: 1 }, status: "working" }],
  [ODD[2], { resultType: "task", taskId: "a\r\nx-header: b", status: "working" }],
  [ODD[3], { resultType: "task", taskId: "x".repeat(100_000), status: "working" }],
] as const)(
  "a task with %s -> the call fails or the id stays one value, and no header is made of it",
  async (name, result) => {
    const { at, server } = await overHttp(name);
    expect(await at.failedCall(name, "odd", { result })).toMatchObject({ data: { begun: true } });
    expect(server.asked.filter(({ headers }) => "x-header" in headers)).toEqual([]);
    expect(textOf(await at.call(name, "seen"))).toContain("tools/call");
  },
);
