/** Owns: to which open call of `serve` a question goes while calls are cancelled. */
import { expect, test } from "vitest";
import { OpenCalls } from "../../../../src/cli/serve/calls.ts";
import type { PersonsQuestion } from "../../../../src/shared/protocol/contract.ts";

const QUESTION: PersonsQuestion = {
  about: "server",
  server: "s",
  ask: { kind: "form", message: "Which?", fields: [] },
};
const YES = { action: "accept", content: {} };
const shows = { form: true, url: true };

/** Calls that never end by themselves, as those of a server that ignores a cancel. */
function opened() {
  const calls = new OpenCalls<string>();
  const begin = () => {
    const call = calls.begin({ server: "s", shows }, () => new Promise<string>(() => undefined));
    if (!call) throw new Error("too many");
    return call;
  };
  const asked = async (call: ReturnType<typeof begin>): Promise<string> => {
    const turn = await call.turn();
    return "asked" in turn ? turn.asked.id : "";
  };
  return { calls, begin, asked };
}
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
  expect(await answer).toEqual({ action: "decline" });
});

test("only cancelled calls are open -> declined", async () => {
  const { calls, begin } = opened();
  begin().cancel();
  expect(await calls.ask(QUESTION, waits())).toEqual({ action: "decline" });
});

test("a question about a call that is cancelled -> no, and no other call is asked", async () => {
  const { calls, begin, asked } = opened();
  const [older, newer] = [begin(), begin()];
  const call = { server: "s", tool: "t" };
  const answer = calls.ask({ about: "call", ...call, args: "", call } as never, waits());
  await asked(older);
  older.cancel();
  expect(await answer).toBe("no");
  expect(newer.isAsked).toBe(false);
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
