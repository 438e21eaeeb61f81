/** Owns: what main reads in the shared record of the server whose bytes are being read. */
import { expect, test } from "vitest";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import {
  createTalkMemory,
  TALK_SLOTS,
  talkRecord,
  weightOf,
} from "../../../../../src/shared/protocol/port.ts";
import { createTalkers } from "../../../../../workers/connection/servers/talkers.ts";

function open() {
  const memory = createTalkMemory();
  const events: WorkerEvent[] = [];
  const talkers = createTalkers(memory, (event) => events.push(event));
  return { talkers, events, record: talkRecord(memory) };
}
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("bytes of a server -> its slot until the loop has turned, promises of this turn included", async () => {
  const { talkers, record, events } = open();
  const hears = [talkers.of("a"), talkers.of("b")];
  expect(events).toEqual([
    { type: "talker", slot: 1, server: "a" },
    { type: "talker", slot: 2, server: "b" },
  ]);
  hears[0]?.(10);
  hears[1]?.(10);
  await Promise.resolve();
  expect(record.current[0]).toBe(2);
  await nextTurn();
  expect(record.current[0]).toBe(0);
  hears[0]?.(10);
  expect(record.current[0]).toBe(1);
  await nextTurn();
});

test("bytes add up, and count less as they age", async () => {
  const { talkers, record } = open();
  talkers.of("a")(1_000);
  talkers.of("a")(1_000);
  const now = Date.now();
  expect(weightOf(record, 1, now)).toBeCloseTo(2_000, -2);
  expect(weightOf(record, 1, now + 10_000)).toBeCloseTo(1_000, -2);
  expect(weightOf(record, 1, now + 200_000)).toBeLessThan(1);
  await nextTurn();
});

test("the same server again -> the same slot, one event; more servers than slots -> the slot of no server", async () => {
  const { talkers, record, events } = open();
  for (let i = 0; i < TALK_SLOTS + 10; i++) talkers.of(`s${i}`);
  talkers.of("s0");
  expect(events).toHaveLength(TALK_SLOTS - 1);
  talkers.of(`s${TALK_SLOTS + 5}`)(10);
  expect(record.current[0]).toBe(0);
  await nextTurn();
});
