/**
 * Owns: approval in an open session: a call waits for the answer and reaches the server only with it, whatever changes
 * meanwhile; "always" becomes a rule in the user's file. Connections are fakes.
 */
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type ApprovalAnswer, type CallResult, decode } from "../../../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import type { SessionFacts } from "../../../../../src/shared/protocol/session.ts";
import type { Connection } from "../../../../../workers/connection/mcp/connection.ts";
import { settle } from "../servers/support.ts";
import { never, type OpenOptions, openWith } from "./support.ts";

const READS = { name: "read", annotations: { readOnlyHint: true } };
const WRITES = { name: "write", annotations: { readOnlyHint: false } };
const ASKS = { approve: "destructive" };

interface Options extends OpenOptions {
  connection?: Partial<Connection>;
}

/** A session whose server `s` is connected and counts its calls. */
async function opened(entry: object, { connection = {}, ...options }: Options = {}) {
  const at = await openWith({ s: entry }, options);
  const sent: string[] = [];
  const over: Partial<Connection> = {
    listTools: async () => [READS, WRITES],
    callTool: async ({ tool }) => {
      sent.push(tool);
      return { content: [{ type: "text", text: "done" }] };
    },
    readResource: async ({ tool }) => {
      sent.push(tool);
      return { content: [{ type: "text", text: "done" }] };
    },
    ...connection,
  };
  (await at.opening("s")).open(over);
  await at.session.requests.settleTools({ timeoutMs: 60_000 }, never());
  const call = (tool: string, signal = never()) =>
    at.session.requests.callTool({ callId: tool, server: "s", tool, args: { a: 1 } }, signal);
  const answer = async (answer: ApprovalAnswer | undefined, number = 0) =>
    (await at.question(number)).answer(answer);
  return { ...at, over, sent, call, answer };
}

const noPerson: Partial<SessionFacts> = { canAsk: false };

test("a tool that reads runs; one that may write waits, and runs once with a yes", async () => {
  const at = await opened(ASKS);
  await at.call("read");
  const call = at.call("write");
  expect(await at.question()).toMatchObject({
    question: { callId: "write", server: "s", tool: "write", args: "a: 1" },
  });
  expect(at.sent).toEqual(["read"]);
  await at.answer("once");
  await call;
  expect(at.sent).toEqual(["read", "write"]);
});

test("the time that the user took -> not counted as the server's", async () => {
  const at = await opened(ASKS);
  const call = at.call("write");
  await at.question();
  const thoughtMs = 200;
  await sleep(thoughtMs);
  const answeredAt = performance.now();
  await at.answer("once");
  const { durationMs } = decode(await call) as CallResult;
  expect(durationMs).toBeLessThanOrEqual(performance.now() - answeredAt);
});

test("no -> the server gets nothing", async () => {
  const at = await opened(ASKS);
  const call = at.call("write");
  await at.answer("no");
  await expect(call).rejects.toMatchObject({ code: "not_approved", data: { server: "s" } });
  expect(at.sent).toEqual([]);
});

test("nobody can be asked -> the server gets nothing", async () => {
  const at = await opened({}, { settings: { approve: "always" }, facts: noPerson });
  for (const [number, tool] of ["read", "write"].entries()) {
    const call = at.call(tool);
    // No extension of Pi answers either.
    void at.answer(undefined, number);
    await expect(call).rejects.toMatchObject({ code: "not_approved" });
  }
  expect(at.sent).toEqual([]);
});

test("a tool for a resource -> only read, so it asks only where all do", async () => {
  const resources = [{ name: "note", uri: "x://note" }];
  const connection = { listResources: async () => ({ resources, templates: [] }) };
  const reads = await opened({ ...ASKS, exposeResources: true }, { connection });
  await reads.call("get_note");
  expect(reads.sent).toEqual(["get_note"]);
  const denied = await opened({ approve: { get_note: "deny" }, exposeResources: true }, { connection });
  await expect(denied.call("get_note")).rejects.toMatchObject({ code: "not_approved" });
  expect(denied.sent).toEqual([]);
});

test("another spelling of the tool's name -> the same rule", async () => {
  const at = await opened(
    { approve: { "my tool": "deny", "*": "allow" } },
    { connection: { listTools: async () => [{ name: "my tool" }] } },
  );
  for (const spelling of ["my tool", "my_tool"])
    await expect(at.call(spelling)).rejects.toMatchObject({ code: "not_approved" });
  expect(at.sent).toEqual([]);
});

test("cancelled while the question is open -> the question is taken away, the server gets nothing", async () => {
  const at = await opened(ASKS);
  const stop = new AbortController();
  const call = at.call("write", stop.signal);
  const { signal } = await at.question();
  stop.abort();
  await expect(call).rejects.toMatchObject({ code: "cancelled" });
  expect(signal.aborted).toBe(true);
  await at.answer("always");
  await settle();
  expect(at.sent).toEqual([]);
});

describe("while the question is open", () => {
  test("the server's tool gets other hints -> the yes is void", async () => {
    const tools = [WRITES];
    const at = await opened(ASKS, { connection: { listTools: async () => [...tools] } });
    const call = at.call("write");
    await at.question();
    tools[0] = { ...WRITES, annotations: { readOnlyHint: true } } as typeof WRITES;
    const reconnected = at.session.requests.reconnect({ server: "s" }, never());
    await settle();
    (await at.opening("s")).open({ ...at.over, listTools: async () => [...tools] });
    await reconnected;
    await at.answer("session");
    await expect(call).rejects.toMatchObject({
      code: "not_approved",
      message: /changed while the user was asked/,
    });
    expect(at.sent).toEqual([]);
  });

  test("an edit denies the tool -> the yes is void", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.question();
    await at.edit({ s: { approve: { write: "deny" } } });
    await at.answer("once");
    await expect(call).rejects.toMatchObject({ code: "not_approved", message: /denies it/ });
    expect(at.sent).toEqual([]);
  });

  test("an edit gives the server another program -> the yes is void, though the old one still finishes its calls", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.question();
    await at.edit({ s: { ...ASKS, command: "other" } });
    await at.answer("session");
    await expect(call).rejects.toMatchObject({
      code: "not_approved",
      message: /changed while the user was asked/,
    });
    expect(at.sent).toEqual([]);
  });

  test("an edit of another rule -> the yes counts", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.question();
    await at.edit({ s: { ...ASKS, description: "Other words." } });
    await at.answer("once");
    await call;
    expect(at.sent).toEqual(["write"]);
  });

  test("the connection is lost -> the call connects again and runs", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.question();
    const first = await at.opening("s");
    first.options.onClosed();
    await at.answer("once");
    await settle();
    const second = await at.opening("s");
    expect(second).not.toBe(first);
    second.open(at.over);
    await call;
    expect(at.sent).toEqual(["write"]);
  });
});

describe("a call that the server refuses for want of a sign-in", () => {
  /** A server that wants a sign-in until it has one; each call of it asks. */
  async function refusing(failure: ThreadsError = new ThreadsError("needs_auth", "s: sign in.")) {
    const tools = [WRITES];
    const at = await opened(ASKS, { connection: { listTools: async () => [...tools] } });
    const { callTool } = at.over;
    const call = (callId: string, args: Record<string, unknown> = { a: 1 }) =>
      at.session.requests.callTool({ callId, server: "s", tool: "write", args }, never());
    at.over.callTool = async () => Promise.reject(failure);
    const reconnect = async (): Promise<void> => {
      const done = at.session.requests.reconnect({ server: "s" }, never());
      await settle();
      (await at.opening("s")).open(at.over);
      await done;
    };
    await reconnect();
    const first = call("1");
    await at.answer("once");
    await expect(first).rejects.toMatchObject({ code: failure.code });
    const signIn = (): Promise<void> => {
      Object.assign(at.over, { callTool });
      return reconnect();
    };
    return { ...at, tools, call, signIn };
  }

  test("once -> holds for the same call after the sign-in, and for no other", async () => {
    const at = await refusing();
    await at.signIn();
    await at.call("1");
    expect([at.sent, at.user.asked.length]).toEqual([["write"], 1]);
    const next = at.call("1");
    await at.answer("no", 1);
    await expect(next).rejects.toMatchObject({ code: "not_approved" });
    expect(at.sent).toEqual(["write"]);
  });

  test("refused a second time -> the yes still holds", async () => {
    const at = await refusing();
    await expect(at.call("1")).rejects.toMatchObject({ code: "needs_auth" });
    await at.signIn();
    await at.call("1");
    expect([at.sent, at.user.asked.length]).toEqual([["write"], 1]);
  });

  type Refusing = Awaited<ReturnType<typeof refusing>>;
  test.each<[string, (at: Refusing) => unknown]>([
    ["another call", (at) => at.call("2")],
    ["other arguments", (at) => at.call("1", { a: 2 })],
    [
      "the turn has ended",
      async (at) => {
        await at.session.requests.turnEnded({}, never());
        return at.call("1");
      },
    ],
  ])("%s -> asks", async (_case, repeat) => {
    const at = await refusing();
    await at.signIn();
    const again = repeat(at);
    await at.answer("no", 1);
    await expect(again).rejects.toMatchObject({ code: "not_approved" });
    expect(at.sent).toEqual([]);
  });

  test("the tool is another one after the sign-in -> asks about it as it is", async () => {
    const at = await refusing();
    at.tools[0] = { ...WRITES, description: "Deletes." } as typeof WRITES;
    await at.signIn();
    const again = at.call("1");
    await at.answer("once", 1);
    await again;
    expect(at.sent).toEqual(["write"]);
  });

  test("another failure -> the call may have run, and its repetition asks", async () => {
    const at = await refusing(new ThreadsError("call_rejected", "s refused the call."));
    await at.signIn();
    const again = at.call("1");
    await at.answer("no", 1);
    await expect(again).rejects.toMatchObject({ code: "not_approved" });
  });
});

describe("always", () => {
  test("a rule in the user's file, which is in effect at once and for this tool only", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.answer("always");
    await call;
    // The call does not wait for the rule.
    await expect
      .poll(async () => (await at.session.requests.readConfig({ project: false }, never())).text)
      .toContain("allow");
    const { file, text } = await at.session.requests.readConfig({ project: false }, never());
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual(JSON.parse(text));
    expect(JSON.parse(text).mcpServers.s.approve).toEqual({ write: "allow", "*": "destructive" });
    await at.call("write");
    expect(at.sent).toEqual(["write", "write"]);
    const later = await openWith(JSON.parse(text).mcpServers, { facts: noPerson });
    (await later.opening("s")).open({
      ...at.over,
      listTools: async () => [READS, WRITES, { name: "other" }],
    });
    const call2 = (tool: string) =>
      later.session.requests.callTool({ callId: "1", server: "s", tool, args: {} }, never());
    await call2("write");
    const other = call2("other");
    (await later.question()).answer(undefined);
    await expect(other).rejects.toMatchObject({ code: "not_approved" });
  });

  test("a file that cannot be changed -> the reason is told, and the call runs", async () => {
    const at = await opened(ASKS);
    const call = at.call("write");
    await at.question();
    const { file } = await at.session.requests.readConfig({ project: false }, never());
    await writeFile(file, "{ broken");
    await at.answer("always");
    await call;
    expect(await at.event("notice")).toMatchObject({ level: "error", text: expect.stringContaining(file) });
    expect(at.sent).toEqual(["write"]);
  });
});
