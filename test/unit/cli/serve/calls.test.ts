/** Owns: to which open call of `serve` a question goes, also while calls are cancelled. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { OpenCalls } from "../../../../src/cli/serve/calls.ts";
import type { PersonsQuestion } from "../../../../src/shared/protocol/contract.ts";

const QUESTION: PersonsQuestion = {
  about: "server",
  server: "s",
  ask: { kind: "form", message: "Which?", fields: [] },
};
const YES = { action: "accept", content: {} };
const shows = { form: true, url: true };

afterEach(() => {
  vi.useRealTimers();
});

/** Calls that never end by themselves, as those of a server that ignores a cancel. */
function opened() {
  const calls = new OpenCalls<string>();
  const begin = (able = shows) => {
    const call = calls.begin({ server: "s", shows: able }, () => new Promise<string>(() => undefined));
    if (!call) throw new Error("too many");
    return call;
  };
  const asked = async (call: ReturnType<typeof begin>): Promise<string> => {
    const turn = await call.turn();
    return "asked" in turn ? turn.asked.id : "";
  };
  return { calls, begin, asked };
}
const KINDS = ["call", "skill"] as const;
const about = (kind: (typeof KINDS)[number], callId: string): PersonsQuestion =>
  kind === "call"
    ? {
        about: kind,
        callId,
        server: "s",
        tool: "t",
        args: "",
        canAlways: false,
        call: { server: "s", tool: "t", args: {} },
      }
    : {
        about: kind,
        callId,
        server: "s",
        uri: "skill://x/SKILL.md",
        name: "x",
        content: "",
        description: "",
        files: "",
        canAlways: false,
      };
const waits = () => new AbortController().signal;

test("the older call has been cancelled -> the newer one is asked", async () => {
  const { calls, begin, asked } = opened();
  const [older, newer] = [begin(), begin()];
  older.cancel();
  const answer = calls.ask(QUESTION, waits());
  expect(older.isAsked).toBe(false);
  newer.answer(await asked(newer), YES);
  expect(await answer).toEqual({ action: "accept", values: [] });
});

test("the older call is cancelled while it is asked -> the newer one is asked; when that one is cancelled, too: a no", async () => {
  const { calls, begin, asked } = opened();
  const [older, newer] = [begin(), begin()];
  const answer = calls.ask(QUESTION, waits());
  const first = await asked(older);
  older.cancel();
  expect(await asked(newer)).not.toBe(first);
  older.answer(first, YES);
  newer.cancel();
  expect(await answer).toEqual({ action: "decline", unseen: true });
});

test("only cancelled calls are open -> declined", async () => {
  const { calls, begin } = opened();
  begin().cancel();
  expect(await calls.ask(QUESTION, waits())).toEqual({ action: "decline", unseen: true });
});

describe.each(KINDS)("a question about a %s", (kind) => {
  test("its call is cancelled -> no, and no other call is asked", async () => {
    const { calls, begin, asked } = opened();
    const [older, newer] = [begin(), begin()];
    const answer = calls.ask(about(kind, older.id), waits());
    await asked(older);
    older.cancel();
    expect(await answer).toBe("no");
    expect(newer.isAsked).toBe(false);
  });

  test("an older call could show it -> the client of its own call is asked", async () => {
    const { calls, begin, asked } = opened();
    const [older, newer] = [begin(), begin()];
    const answer = calls.ask(about(kind, newer.id), waits());
    expect(older.isAsked).toBe(false);
    newer.answer(await asked(newer), YES);
    expect(await answer).toBe(kind === "call" ? "once" : "session");
  });

  test.each([
    ["its client shows no questions", true],
    ["its call is over", false],
  ])("%s -> no, and no other call is asked", async (_what, isOpen) => {
    const { calls, begin } = opened();
    const able = begin();
    const unable = begin({ form: false, url: false });
    expect(await calls.ask(about(kind, isOpen ? unable.id : "over"), waits())).toBe("no");
    expect([able.isAsked, able.wasUnasked, unable.wasUnasked]).toEqual([false, false, isOpen]);
  });
});

test("nobody waits for the answer any more -> nobody else is asked", async () => {
  const { calls, begin, asked } = opened();
  const [older, newer] = [begin(), begin()];
  const server = new AbortController();
  const answer = calls.ask(QUESTION, server.signal);
  await asked(older);
  server.abort();
  expect(await answer).toBeUndefined();
  expect(newer.isAsked).toBe(false);
});

/** A call that ends while its client still has the question, which is withdrawn with it. */
async function endedWhileAsked() {
  const calls = new OpenCalls<string>();
  const run = Promise.withResolvers<string>();
  const call = calls.begin({ server: "s", shows }, () => run.promise);
  if (!call) throw new Error("too many");
  const server = new AbortController();
  const answer = calls.ask(QUESTION, server.signal);
  const turn = await call.turn();
  const asked = "asked" in turn ? turn.asked.id : "";
  expect(calls.isIdle).toBe(false);
  server.abort();
  run.resolve("done");
  expect(await answer).toBeUndefined();
  await call.ended;
  return { calls, call, asked };
}

test("a call ends while its client has a question -> the client that comes back gets the result, once", async () => {
  const { calls, call, asked } = await endedWhileAsked();
  const { state } = call;
  const open = calls.withState(state);
  expect(open).toBe(call);
  open?.answer(asked, YES);
  expect(await open?.turn()).toEqual({ result: "done" });
  await call.over();
  expect(calls.withState(state)).toBeUndefined();
});

test("a call has ended and waits for its client alone -> no call runs, and no question goes to it", async () => {
  const { calls, call } = await endedWhileAsked();
  expect(calls.isIdle).toBe(true);
  expect(await calls.ask(QUESTION, waits())).toEqual({ action: "decline", unseen: true });
  expect(call.isAsked).toBe(false);
});

test("a call has ended, and its client never comes back -> forgotten when its time to answer is over", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { calls, call } = await endedWhileAsked();
  await vi.advanceTimersByTimeAsync(10 * 60_000);
  expect(calls.get(call.id)).toBe(call);
  await vi.advanceTimersByTimeAsync(60_000);
  await call.over();
  expect(calls.get(call.id)).toBeUndefined();
});

test("a call has ended, and its client shows no question -> forgotten at once", async () => {
  const calls = new OpenCalls<string>();
  const call = calls.begin({ server: "s", shows }, async () => "done");
  expect(await call?.turn()).toEqual({ result: "done" });
  await call?.over();
  expect(calls.get(call?.id ?? "")).toBeUndefined();
});
