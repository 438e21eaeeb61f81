/** Owns: how much of what is no message a connection may bring. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { receive } from "../../../../../workers/connection/messages/receive.ts";
import { Noise, TooLarge } from "../../../../../workers/connection/messages/too-large.ts";

const { noiseBytes, noiseLines, noiseLinesRead, noiseWindowMs } = LIMITS;

test("as many lines and bytes as may be, in each window -> taken; one more -> refused, with a note", () => {
  const notes: string[] = [];
  let now = 0;
  const noise = new Noise(
    (note) => notes.push(note),
    () => now,
  );
  for (let window = 0; window < 3; window++) {
    noise.add(noiseLines, noiseBytes);
    now += noiseWindowMs;
  }
  noise.add(noiseLines, 0);
  expect(() => noise.add(1, 0)).toThrow(TooLarge);
  now += noiseWindowMs;
  expect(() => noise.add(1, noiseBytes + 1)).toThrow("more than 64 MiB within 10 s that hold no message");
  expect(notes).toEqual([
    "sent more than 100,000 lines within 10 s that hold no message; nothing more of that is read",
    "sent more than 64 MiB within 10 s that hold no message; nothing more of that is read",
  ]);
});

test("lines that begin as messages -> parsed and told up to the limit; a message between them is still read", () => {
  const told: string[] = [];
  const to = {
    server: "loud",
    batches: () => false,
    asked: () => new Map<string, string>(),
    isOver: () => false,
    hand: () => told.push("message"),
    noise: new Noise(() => undefined),
    onNoise: () => told.push("noise"),
    onNote: () => undefined,
  };
  for (let i = 0; i < noiseLinesRead + 500; i++) receive(Buffer.from("{"), to);
  void receive(Buffer.from('{"jsonrpc":"2.0","method":"x"}'), to);
  expect(told.filter((what) => what === "noise")).toHaveLength(noiseLinesRead + 1);
  expect(told.at(-1)).toBe("message");
});
