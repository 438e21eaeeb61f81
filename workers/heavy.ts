/**
 * Entry of the thread for long messages: parses one message after the other, answers so much of it as the connection worker
 * needs (connection/messages/prune.ts), and keeps results until they are shaped here. It may be ended at any time. It
 * writes no file and knows no server: the connection worker does that for it.
 */
import { parentPort } from "node:worker_threads";
import { toolResultOf } from "./connection/messages/as-tool-result.ts";
import type { ReadLong } from "./connection/messages/heavy.ts";
import type { FromHeavy, ToHeavy } from "./connection/messages/heavy-thread.ts";
import { readLong } from "./connection/messages/incoming.ts";
import { prune } from "./connection/messages/prune.ts";
import type { HeldOptions } from "./connection/results/anywhere.ts";
import { inBytes, linksIn, shapeResult, toShaped } from "./connection/results/shape.ts";
import { createRedactor } from "./connection/secrets/redact.ts";

const port = parentPort;
if (!port) throw new Error("workers/heavy must run as a worker thread");

const say = (message: FromHeavy, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

type Read = Extract<ToHeavy, { read: unknown }>;
type Shape = Extract<ToHeavy, { shape: unknown }>;

interface Held {
  of: number;
  results: Map<number, Record<string, unknown>>;
  /** What held the bytes of the message. The first file of a result takes it, since new memory takes as long as to fill it. */
  room?: ArrayBuffer | undefined;
}

/** The results of the last message, by the position of their message in it. */
let held: Held = { of: 0, results: new Map() };

function read({ job, read: { bytes: room, length, batches, asked } }: Read): {
  answer: ReadLong;
  transfer: ArrayBuffer[];
} {
  const bytes = Buffer.from(room, 0, length);
  const methods = new Map(asked);
  const incoming = readLong(bytes, { batches, asked: methods, onId: (about) => say({ job, about }) });
  if (incoming.kind === "refused")
    return { answer: { kind: "refused", excess: incoming.error.excess, id: incoming.id }, transfer: [] };
  if (incoming.kind !== "messages") return { answer: incoming, transfer: [] };
  const results = new Map<number, Record<string, unknown>>();
  const messages = incoming.messages.map((message, index) => {
    const id = "id" in message ? String(message.id) : "";
    const pruned = prune(message, methods.get(id));
    if (pruned.held) {
      const { result } = message as unknown as { result: Record<string, unknown> };
      results.set(index, pruned.held === "task" ? (result.result as Record<string, unknown>) : result);
    }
    return pruned;
  });
  if (results.size > 0) held = { of: job, results, room };
  const transfer = messages.flatMap(({ items }) => items?.pieces.map(({ buffer }) => buffer) ?? []);
  return { answer: { kind: "messages", messages }, transfer };
}

const asked = new Map<number, (value: unknown) => void>();
let questions = 0;

function ask<T>(job: number, args: unknown, transfer: ArrayBuffer[] = []): Promise<T> {
  const number = ++questions;
  say({ job, ask: number, args }, transfer);
  return new Promise((resolve) => asked.set(number, resolve as (value: unknown) => void));
}

async function shape({ job, shape: { of, index, task } }: Shape): Promise<void> {
  const result = held.of === of ? held.results.get(index) : undefined;
  held.results.delete(index);
  if (!result) throw new Error("another message took its place");
  const { secrets, ...options } = task.options as unknown as HeldOptions;
  const whole = toolResultOf(task.as, result);
  const links = linksIn(whole);
  const sentences = links.length === 0 ? [] : await ask<string[]>(job, links);
  const known = new Map(links.map((uri, i) => [uri, sentences[i]]));
  const shaped = await shapeResult(whole, {
    ...options,
    redact: createRedactor(secrets),
    // The model sees at most as many links as were asked for.
    readResource: (uri) => (known.has(uri) ? known.get(uri) : ""),
    store: {
      save: (parts, label, extension) => {
        const bytes = inBytes(parts, held.room);
        held.room = undefined;
        const transfer = bytes.map(({ buffer }) => buffer);
        return ask(job, { parts: bytes, label, extension }, transfer);
      },
    },
  });
  const done = toShaped(shaped);
  say({ job, done, held: 0 }, [done.bytes.buffer]);
}

port.on("message", (message: ToHeavy) => {
  if ("answer" in message) {
    asked.get(message.answer)?.(message.value);
    asked.delete(message.answer);
    return;
  }
  const failed = (error: unknown): void =>
    say({ job: message.job, failed: error instanceof Error ? error.message : String(error) });
  if ("shape" in message) {
    shape(message).catch(failed);
    return;
  }
  try {
    const { answer, transfer } = read(message);
    const of = answer.kind === "messages" ? answer.messages.filter((one) => one.held).length : 0;
    say({ job: message.job, done: answer, held: of }, transfer);
  } catch (error) {
    failed(error);
  }
});
say({ ready: true });
