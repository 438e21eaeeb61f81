/**
 * Owns: calls that become tasks (extension io.modelcontextprotocol/tasks), against a server without an SDK: polled,
 * answered, cancelled, and polled again after a lost connection.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Fault, MODERN, metaOf, sentTo, serveTasks } from "../support/modern-http.ts";
import { fixtures, type Started, start, textOf, until } from "./support.ts";

async function overHttp(fault?: Fault, facts: { canAsk?: boolean } = {}) {
  const server = await serveTasks(fault);
  const at = await start({ s: { url: server.url, protocol: MODERN } }, { facts });
  await at.settled("s");
  return { at, server };
}

async function overStdio(): Promise<Started> {
  const args = [join(fixtures, "modern", "tasks.mjs")];
  const at = await start({ s: { command: process.execPath, args, protocol: MODERN } });
  await at.settled("s");
  return at;
}

test("a task -> polled until it is done; its words are progress; each poll names the task in a header", async () => {
  const { at, server } = await overHttp();
  expect(textOf(await at.call("s", "slow", { polls: 2 }))).toBe("after 2 polls");
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
  const at = await overStdio();
  expect(textOf(await at.call("s", "slow", { polls: 1 }))).toBe("after 1 polls");
});

test("a task that asks -> one question, its answer goes to the task", async () => {
  const { at, server } = await overHttp();
  const calling = at.call("s", "asks");
  const { askId, ask } = await at.event("ask");
  expect(ask.message).toBe("Who are you?");
  await at.runtime.ask("answerAsk", { askId, answer: { action: "accept", values: ["Ann"] } });
  expect(JSON.parse(textOf(await calling))).toEqual([
    { who: { action: "accept", content: { name: "Ann" } } },
  ]);
  expect(sentTo(server, "tasks/update")).toHaveLength(1);
  expect(at.events.filter(({ type }) => type === "ask")).toHaveLength(1);
});

test("a task that fails, and one that ends with an error result -> told apart", async () => {
  const { at } = await overHttp();
  const failed = await at.failedCall("s", "fails");
  expect(failed).toMatchObject({ code: "call_rejected" });
  expect(failed.message).toContain("the printer is on fire");
  expect(await at.call("s", "refuses")).toMatchObject({ isError: true });
});

test("a call that is cancelled -> the task is cancelled, and polled no more", async () => {
  const { at, server } = await overHttp();
  const cancel = new AbortController();
  const failed = at.failedCall("s", "stays", {}, cancel.signal);
  await until(async () => sentTo(server, "tasks/get").length > 0 || undefined);
  cancel.abort();
  expect(await failed).toMatchObject({ code: "cancelled" });
  await until(async () => sentTo(server, "tasks/cancel").length === 1 || undefined);
  const [sent] = sentTo(server, "tasks/cancel");
  expect(sent?.message.params).toMatchObject({ taskId: "task-1" });
  expect(server.asked.filter(({ message }) => message.id === undefined)).toEqual([]);
});

test("polls that get no answer -> polled again; the call itself is sent once", async () => {
  let lost = 0;
  const { at, server } = await overHttp(({ message }, response) => {
    if (message.method !== "tasks/get" || lost === 2) return false;
    lost++;
    response.destroy();
    return true;
  });
  expect(textOf(await at.call("s", "slow", { polls: 1 }))).toBe("after 1 polls");
  expect(lost).toBe(2);
  expect(sentTo(server, "tools/call")).toHaveLength(1);
});

test("a task that the server no longer knows -> the call fails, and says so", async () => {
  const { at, server } = await overHttp();
  const failed = await at.failedCall("s", "vanishes");
  expect(failed.message).toContain("Task not found");
  expect(sentTo(server, "tools/call")).toHaveLength(1);
});

test.each([
  ["no id", { resultType: "task", status: "working" }],
  ["an id that is no text", { resultType: "task", taskId: { a: 1 }, status: "working" }],
  ["an id with a line break", { resultType: "task", taskId: "a\r\nx-header: b", status: "working" }],
  ["an id of 100,000 characters", { resultType: "task", taskId: "x".repeat(100_000), status: "working" }],
])(
  "a task with %s -> the call fails or the id stays one value, and no header is made of it",
  async (_name, result) => {
    const { at, server } = await overHttp();
    await at.failedCall("s", "odd", { result });
    expect(server.asked.filter(({ headers }) => "x-header" in headers)).toEqual([]);
    expect(textOf(await at.call("s", "seen"))).toContain("tools/call");
  },
);
