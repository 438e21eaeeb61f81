/** Owns: how verdicts of other extensions become an answer, also where one hangs; test/e2e/other-extensions.test.ts has the real Pi. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { PiContext } from "../../../src/pi/api.ts";
import { answer } from "../../../src/session/others.ts";

interface Request {
  server: string;
  signal: AbortSignal;
  claim(handler: unknown): boolean;
}

/** Asks about a call while these extensions listen. Answers `asked` if the person is asked. */
function ask(extensions: ((request: Request) => void)[], { onceOnly = false, aborts = false } = {}) {
  const bus = new EventEmitter();
  for (const extension of extensions) bus.on("pi-mcp-threads/approval/v1", extension);
  const events = {
    emit: (channel: string, data: unknown) => void bus.emit(channel, data),
    on: () => () => undefined,
  };
  const question = {
    about: "call" as const,
    callId: "1",
    server: "s",
    tool: "t",
    args: "",
    canAlways: true,
    ...(onceOnly ? { onceOnly: true as const } : {}),
    call: { server: "s", tool: "t", args: { a: 1 } },
  };
  const signal = aborts ? AbortSignal.abort() : new AbortController().signal;
  return answer(question, signal, {
    pi: { events },
    ctx: {} as PiContext,
    inTurn: (task) => task(),
    screens: async () => Promise.reject(new Error("nothing is shown")),
    ask: async () => "asked",
    log: () => undefined,
    verdictMs: 20,
  });
}

const says =
  (verdict: unknown) =>
  ({ claim }: Request): void =>
    void claim(() => verdict);
const hangs = says(new Promise(() => undefined));

test.each([
  [[], "asked"],
  [[says("allow")], "extension-allows"],
  [[says("allow"), says("abstain")], "extension-allows"],
  [[hangs], "asked"],
  [[says("allow"), hangs], "asked"],
  [[hangs, says("deny")], "extension-denies"],
  [[says("ask"), says("allow"), says("deny")], "extension-denies"],
  [[says({ toString: () => "allow" })], "asked"],
] as const)(
  "%#: the strictest verdict counts, and one that does not come is none",
  async (extensions, expected) => {
    expect(await ask([...extensions])).toBe(expected);
  },
);

test("a server that wants the person's yes -> an extension can only deny", async () => {
  expect(await ask([says("allow")], { onceOnly: true })).toBe("asked");
  expect(await ask([says("deny")], { onceOnly: true })).toBe("extension-denies");
});

test("more claims than the limit, something that is no function, a call that is over -> nothing hangs", async () => {
  const taken: boolean[] = [];
  const many = ({ claim }: Request): void => {
    taken.push(claim("allow"));
    for (let at = 0; at < 30; at++) taken.push(claim(() => "allow"));
  };
  expect(await ask([many])).toBe("extension-allows");
  expect(taken.filter(Boolean)).toHaveLength(20);
  expect(await ask([hangs], { aborts: true })).toBe("asked");
});
