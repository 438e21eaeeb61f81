/**
 * A long message as the connection worker gets it from the thread: the few parts that are read here, and results that stay
 * there until they are shaped.
 */
import { createReader, inTurn } from "../../shared/pace/turns.ts";
import type { CallToolResult, JSONRPCMessage, RequestId } from "../mcp/wire/wire.ts";
import { type ResultKind, toolResultOf } from "./as-tool-result.ts";
import { type AnswerHeavy, type HeavyFailure, HeavyThread, type ShapeTask } from "./heavy-thread.ts";
import { countRead, type Incoming } from "./incoming.ts";
import type { LongBytes } from "./pieces.ts";
import { errorOf, LongErrorData, type Pruned } from "./prune.ts";
import { TooLarge, unreadable } from "./too-large.ts";

/** What the thread answers when it has read a message. */
export type ReadLong =
  | Exclude<Incoming, { kind: "messages" } | { kind: "refused" }>
  | { kind: "messages"; messages: Pruned[] }
  | { kind: "refused"; excess: TooLarge["excess"]; id: RequestId | undefined };

/** The one of this worker. */
const ownThread = new HeavyThread();

interface HeldBy {
  heavy: HeavyThread;
  /** The job that read it, and the position of its message. */
  read: number;
  index: number;
  server: string;
  bytes: number;
}

/** A result that is in the thread. No server can send one. */
class HeldResult {
  readonly #of: HeldBy;
  readonly #as: ShapeTask["as"];
  #isClaimed = false;

  constructor(of: HeldBy, as: ShapeTask["as"] = "call") {
    this.#of = of;
    this.#as = as;
  }

  /** The same result, which answers another kind of request. */
  read(as: ShapeTask["as"]): HeldResult {
    return new HeldResult(this.#of, as);
  }

  /** Once only. Rejects with `TooLarge`. */
  async shape(options: ShapeTask["options"], answer: AnswerHeavy): Promise<unknown> {
    const { heavy, read: of, index, server, bytes } = this.#of;
    if (this.#isClaimed) throw unreadable(bytes, "it was read twice");
    this.#isClaimed = true;
    const message = { job: heavy.newJob(), shape: { of, index, task: { as: this.#as, options } } };
    const shaped = heavy.run({ server, bytes, message, transfer: [], answer, isOver: () => false });
    heavy.claimed(of);
    return await shaped.catch((error: HeavyFailure) => {
      throw error.excess;
    });
  }
}

async function unpack({
  json,
  items,
  errorChars,
}: Pruned): Promise<JSONRPCMessage & { result?: Record<string, unknown> }> {
  const message = JSON.parse(json) as JSONRPCMessage & { result?: Record<string, unknown> };
  const error = errorChars === undefined ? undefined : errorOf(message);
  if (error && errorChars !== undefined) error.data = new LongErrorData(errorChars, error.data);
  if (!items || !message.result) return message;
  const reader = createReader();
  const list: unknown[] = [];
  for (const piece of items.pieces) {
    for (const item of JSON.parse(Buffer.from(piece.buffer).toString("utf8")) as unknown[]) list.push(item);
    await inTurn(reader);
  }
  message.result[items.field] = list;
  return message;
}

interface HeavyOptions {
  server: string;
  batches: boolean;
  /** Our open requests: ids as texts, and their methods. */
  asked: ReadonlyMap<string, string>;
  onNote: (note: string) => void;
  /** Whether the connection is closed. */
  isOver: () => boolean;
  /** Absent: the one of this worker. */
  thread?: HeavyThread;
}

export const warmHeavy = (): void => ownThread.warm();

/** Reads a long message in the thread. Never rejects. */
export async function readHeavy(
  { buffer, length: bytes }: LongBytes,
  { server, batches, asked, onNote, isOver, thread: heavy = ownThread }: HeavyOptions,
): Promise<Incoming> {
  countRead(bytes);
  const job = heavy.newJob();
  const read = { bytes: buffer, length: bytes, batches, asked: [...asked] };
  let answer: ReadLong;
  try {
    answer = (await heavy.run({
      server,
      bytes,
      message: { job, read },
      transfer: [buffer],
      isOver,
    })) as ReadLong;
  } catch (error) {
    const { excess, id } = error as HeavyFailure;
    return { kind: "refused", error: excess, id };
  }
  if (answer.kind === "refused") return { ...answer, error: new TooLarge(answer.excess) };
  if (answer.kind !== "messages") return answer;
  const messages: JSONRPCMessage[] = [];
  for (const [index, pruned] of answer.messages.entries()) {
    for (const note of pruned.notes ?? []) onNote(note);
    const message = await unpack(pruned);
    const of = pruned.held === "task" ? (message.result?.result as Record<string, unknown>) : message.result;
    if (pruned.held && of) of.held = new HeldResult({ heavy, read: job, index, server, bytes });
    messages.push(message);
  }
  return { kind: "messages", messages };
}

/** A result that is in the thread for long messages stays there. */
export function asToolResult(kind: ResultKind, result: Record<string, unknown>): CallToolResult {
  const { held } = result;
  if (kind === "call" || !(held instanceof HeldResult)) return toolResultOf(kind, result);
  return { content: [], held: held.read(kind) };
}

/** The result if it is in the thread for long messages. */
export const heldIn = ({ held }: CallToolResult): HeldResult | undefined =>
  held instanceof HeldResult ? held : undefined;
