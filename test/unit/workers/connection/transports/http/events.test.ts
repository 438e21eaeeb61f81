import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { Noise, TooLarge } from "../../../../../../workers/connection/messages/too-large.ts";
import { EventReader } from "../../../../../../workers/connection/transports/http/events.ts";

interface Read {
  events: string[];
  ids: string[];
  retries: number[];
}

function read(chunks: readonly (string | Buffer)[], maxBytes = 1_000_000): Read {
  const found: Read = { events: [], ids: [], retries: [] };
  const reader = new EventReader({
    maxBytes,
    noise: new Noise(() => undefined),
    onEvent: ({ type, data }) => void found.events.push(`${type}=${data}`) as undefined,
    onId: (id) => found.ids.push(id),
    onRetry: (ms) => found.retries.push(ms),
  });
  for (const chunk of chunks) for (const _ of reader.push(Buffer.from(chunk as string)));
  return found;
}

const STREAM =
  '\uFEFF: hello\nid: 7\nevent: endpoint\ndata: /m?é\n\ndata: {"a":\ndata:1}\nretry: 250\n\ndata\n\nid\n\nevent: none\n\ndata: 🙂\n\n';
const EXPECTED: Read = {
  events: ["endpoint=/m?é", 'message={"a":\n1}', "message=", "message=🙂"],
  ids: ["7"],
  retries: [250],
};

test.each([
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
])("EventReader: %s line ends -> the same events, however the bytes are cut", (_name, end) => {
  const bytes = Buffer.from(STREAM.replaceAll("\n", end));
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(read(chunks), `chunks of ${size}`).toEqual(EXPECTED);
  }
});

test("EventReader: an event that ends in CR -> handed on before the next byte", () => {
  expect(read(["data: x\r\r"]).events).toEqual(["message=x"]);
  expect(read(["data: x\r\n\r"]).events).toEqual(["message=x"]);
});

test("EventReader: an event that is not complete -> not handed on", () => {
  expect(read(["data: x\n"]).events).toEqual([]);
});

test.each([
  ["data", ["41"]],
  ["data: half", ["41"]],
  ["data: whole\n", ["41"]],
  ["data: whole\n\n", ["41", "42"]],
  ["\n", ["41", "42"]],
])("EventReader: an id, and then %j -> the ids are %j", (rest, ids) => {
  expect(read([`id: 41\ndata: x\n\nid: 42\n${rest}`]).ids).toEqual(ids);
});

test("EventReader: an event with an id -> the id comes before the event", () => {
  const order: string[] = [];
  const reader = new EventReader({
    maxBytes: 100,
    noise: new Noise(() => undefined),
    onEvent: ({ data }) => void order.push(`event ${data}`) as undefined,
    onId: (id) => order.push(`id ${id}`),
  });
  for (const _ of reader.push(Buffer.from("data: a\nid: 1\n\ndata: b\n\n")));
  expect(order).toEqual(["id 1", "event a", "event b"]);
});

test.each([
  ["an id with a NUL in it", "id: a\u0000b\n\n"],
  ["an id that no header can hold", "id: ü\n\n"],
  ["a retry that is no number", "retry: soon\n\n"],
  ["an unknown field", "color: red\n\n"],
])("EventReader: %s -> ignored", (_name, text) => {
  expect(read([text])).toEqual({ events: [], ids: [], retries: [] });
});

test.each([
  ["one line", [`data: ${"x".repeat(200)}`]],
  ["a line in pieces", Array.from({ length: 50 }, () => "data: x")],
  ["many lines of one event", Array.from({ length: 50 }, () => "data: x\n")],
  ["an endless comment", Array.from({ length: 50 }, () => ":abcdef")],
])("EventReader: %s beyond the limit -> TooLarge", (_name, chunks) => {
  expect(() => read(chunks, 64)).toThrow(TooLarge);
});

test("EventReader: an event of 600,000 lines -> read in a heap of 12 MiB", async () => {
  const url = new URL(`file://${join(import.meta.dirname, "../../../../../fixtures/reads-events.ts")}`);
  const worker = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: 12 } });
  const [length] = await once(worker, "message");
  await worker.terminate();
  expect(length).toBe(3 * 600_000 - 1);
});

test("EventReader: a field other than data that is too long -> ignored", () => {
  const long = "x".repeat(100_000);
  expect(
    read([`id: ${long}\nretry: 1${"0".repeat(100_000)}\nevent: endpoint${long}\ndata: a\n\ndata: b\n\n`]),
  ).toEqual({
    events: [`endpoint${long.slice(0, 1_025 - "endpoint".length)}=a`, "message=b"],
    ids: [],
    retries: [],
  });
});

test("EventReader: several events -> each one has the whole limit", () => {
  expect(read(["data: 123456\n\n".repeat(100)], 64).events).toHaveLength(100);
});

/** The events of the bytes, and how many bytes the searches for line ends have passed. */
function searched(bytes: Buffer): { events: number; passed: number } {
  let [events, passed] = [0, 0];
  const indexOf = (value: number, from = 0): number => {
    const at = Buffer.prototype.indexOf.call(bytes, value, from, "latin1");
    passed += (at === -1 ? bytes.length : at + 1) - from;
    return at;
  };
  Object.assign(bytes, { indexOf });
  const onEvent = (): undefined => {
    events++;
  };
  const reader = new EventReader({ maxBytes: bytes.length, noise: new Noise(() => undefined), onEvent });
  for (const _ of reader.push(bytes));
  return { events, passed };
}

test.each([
  ["CR-only lines", Buffer.alloc(70_000, "data:\r\r"), 10_000],
  ["bare line ends", Buffer.concat([Buffer.alloc(70_000, "\n"), Buffer.from("data: x\r\r")]), 1],
])("EventReader: %s -> each search for a line end passes each byte once", (_name, bytes, events) => {
  const found = searched(bytes);
  expect(found.events).toBe(events);
  expect(found.passed).toBeGreaterThanOrEqual(bytes.length);
  expect(found.passed).toBeLessThanOrEqual(2 * bytes.length);
});
