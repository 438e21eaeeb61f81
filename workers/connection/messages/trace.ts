/**
 * The trace of a server's messages (`"trace": true`): a JSON line for each, with names, ids, sizes and times, and never with what
 * a message holds. Owns: the file in the agent folder, its bound, and the shape of its lines, which is a contract
 * (docs/other-programs.md). Loaded with the first server that is traced. Methods, names and ids come from the server: they are
 * cleaned, cut and free of its secrets. A disk that takes nothing costs the session nothing.
 */
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { appendRotated } from "../../shared/files/rotate.ts";
import type { JSONRPCMessage } from "../mcp/wire/wire.ts";
import { boundText, type Redactor } from "../secrets/redact.ts";
import { isAnswer, isRequest } from "./incoming.ts";
import { measureMessages, sizeOf } from "./receive.ts";

/** A file that gets larger than this becomes `<file>.1`, which another one replaces. */
const TRACE_BYTES = 8 * 1024 * 1024;
const WORD_CHARS = 200;
/** Lines that wait for the disk. */
const LINES = 2_000;
/** Requests whose times are known. */
const OPEN = 1_000;

class TraceFile {
  readonly #path: string;
  #lines: string[] = [];
  #dropped = 0;
  /** The disk may have taken a part of a line. */
  #isTorn = false;
  #isWriting = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** `onFailed`: gets why the lines so far are not in the file. */
  write(line: object, onFailed: (error: Error) => void): void {
    if (this.#lines.length >= LINES) this.#dropped++;
    else this.#lines.push(`${JSON.stringify(line)}\n`);
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#drain()
      .catch(onFailed)
      .finally(() => {
        this.#isWriting = false;
      });
  }

  async #drain(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines;
      const lost = this.#dropped;
      const dropped = lost > 0 ? [`${JSON.stringify({ v: 1, dropped: lost })}\n`] : [];
      this.#lines = [];
      this.#dropped = 0;
      try {
        const text = [...lines, ...dropped].join("");
        await appendRotated(this.#path, this.#isTorn ? `\n${text}` : text, TRACE_BYTES);
        this.#isTorn = false;
      } catch (error) {
        this.#dropped += lost + lines.length;
        this.#isTorn = true;
        throw error;
      }
    }
  }
}

/** All servers of a session write into one file. */
const files = new Map<string, TraceFile>();

export type Direction = "in" | "out";

interface TraceOptions {
  file: string;
  server: string;
  redact: Redactor;
  onNote: (note: string) => void;
}

/** What a request is about, if that is a name: of a tool or of a prompt. An address may hold a secret. */
const nameIn = ({ method, params }: { method: string; params?: unknown }): unknown =>
  method === "tools/call" || method === "prompts/get"
    ? (params as { name?: unknown } | undefined)?.name
    : undefined;

/** Answers what takes each message of one connection. */
export function traceMessages({ file, server, redact, onNote }: TraceOptions) {
  measureMessages();
  const to = files.get(file) ?? new TraceFile(file);
  files.set(file, to);
  const open = new Map<string, { at: number; method: string }>();
  let isNoted = false;
  const word = (value: unknown): string | undefined =>
    typeof value === "string" ? oneLine(boundText(value, WORD_CHARS, redact), WORD_CHARS) : undefined;
  const idOf = (id: unknown): number | string | undefined => (typeof id === "number" ? id : word(id));
  const timed = (key: string, now: number): { method?: string; ms?: number } => {
    const asked = open.get(key);
    open.delete(key);
    return asked ? { method: asked.method, ms: Math.round(now - asked.at) } : {};
  };
  const about = (direction: Direction, message: JSONRPCMessage): object => {
    const now = performance.now();
    if (isAnswer(message)) {
      const { id } = message;
      // The answer to what went the other way.
      const known = timed(`${direction === "in" ? "out" : "in"} ${id}`, now);
      const code = "error" in message ? (message.error as { code?: unknown } | undefined)?.code : undefined;
      return {
        kind: "error" in message ? "error" : "result",
        id: idOf(id),
        ...known,
        ...(typeof code === "number" ? { code } : {}),
      };
    }
    const method = word(message.method) ?? "";
    if (!isRequest(message)) return { kind: "notification", method };
    if (open.size < OPEN) open.set(`${direction} ${message.id}`, { at: now, method });
    return { kind: "request", id: idOf(message.id), method, name: word(nameIn(message)) };
  };
  return (direction: Direction, message: JSONRPCMessage): void => {
    const bytes = direction === "in" ? sizeOf(message) : Buffer.byteLength(JSON.stringify(message));
    const line = {
      v: 1,
      time: new Date().toISOString(),
      server: oneLine(server, WORD_CHARS),
      direction,
      ...about(direction, message),
      bytes,
    };
    to.write(line, ({ message: why }) => {
      if (!isNoted) onNote(`is not traced: ${why}`);
      isNoted = true;
    });
  };
}
