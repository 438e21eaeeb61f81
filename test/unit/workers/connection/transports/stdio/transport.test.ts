/** Owns: what happens to a server between the start of its process and the first reader of its output: nothing is lost. */

import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import { createServerLog } from "../../../../../../workers/connection/servers/log.ts";
import { createStdioInbox, LineReader } from "../../../../../../workers/connection/transports/stdio/inbox.ts";
import { ServerStderr } from "../../../../../../workers/connection/transports/stdio/stderr.ts";
import { StdioTransport } from "../../../../../../workers/connection/transports/stdio/transport.ts";
import type { Log } from "../../../../../../workers/shared/log.ts";
import { UNUSED_TIMES } from "../../../../../../workers/shared/pace/pace.ts";
import { describeExit, ProcessEnd } from "../../../../../../workers/shared/programs/end.ts";
import {
  type Killed,
  type ServerProcess,
  spawnServer,
} from "../../../../../../workers/shared/programs/processes.ts";

const MESSAGE_BYTES = 1024 * 1024;

/** `code`: runs as the server. */
function transportOf(code: string, program = process.execPath) {
  const events: string[] = [];
  const spoken = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<void>();
  const transport = new StdioTransport({
    server: "early",
    command: program,
    cwd: import.meta.dirname,
    spawn: () => spawnServer({ program, args: ["-e", code], env: {}, cwd: import.meta.dirname }),
    maxMessageBytes: MESSAGE_BYTES,
    onSpawn: () => void events.push("spawned"),
    onExit: () => {
      events.push("exited");
      exited.resolve();
    },
    onNote: (note) => void events.push(note),
    redact: (text) => text,
    onStderr: () => spoken.resolve(),
  });
  onTestFinished(() => transport.closeWithin({ termMs: 10, killMs: 20 }));
  return { transport, events, spoken: spoken.promise, exited: exited.promise };
}

const EARLY = 'process.stdout.write(\'{"jsonrpc":"2.0","method":"early"}\\n\');';

test("a message that was sent before anybody reads -> read by `start`, and one process only", async () => {
  const { transport, events, spoken } = transportOf(
    `${EARLY} console.error("sent"); setInterval(() => {}, 1e6)`,
  );
  await transport.spawn();
  await spoken;
  const heard = new Promise((resolve) => {
    transport.onmessage = resolve;
  });
  await transport.start();
  expect(await heard).toEqual({ jsonrpc: "2.0", method: "early" });
  expect(events).toEqual(["spawned"]);
});

test("the process has ended before anybody reads -> `start` works, and what is sent fails with the exit", async () => {
  const { transport, events, exited } = transportOf("process.exit(3)");
  await transport.spawn();
  await exited;
  await transport.start();
  await expect(transport.send({ jsonrpc: "2.0", method: "late" })).rejects.toThrow("exited with code 3");
  expect(events).toEqual(["spawned", "exited"]);
});

const CLOSES = 'require("node:fs").closeSync(1);';
const STAYS = "setInterval(() => {}, 1e6);";

test("the process closes its output and lives on -> the connection ends with the reason, and the process with it", async () => {
  const { transport, exited } = transportOf(CLOSES + STAYS);
  const closed = new Promise<void>((resolve) => {
    transport.onclose = resolve;
  });
  await transport.start();
  await Promise.all([closed, exited]);
  expect([transport.exit, transport.failure]).toEqual(["closed its output", undefined]);
});

test("the process closes its input and lives on -> the first message that it does not take ends it, with the reason", async () => {
  const { transport, exited } = transportOf(`require("node:fs").closeSync(0); ${EARLY} ${STAYS}`);
  const closed = new Promise<void>((resolve) => {
    transport.onclose = resolve;
  });
  const heard = new Promise((resolve) => {
    transport.onmessage = resolve;
  });
  await transport.start();
  await heard;
  await transport.send({ jsonrpc: "2.0", method: "unread" });
  await Promise.all([closed, exited]);
  expect([transport.exit, transport.failure]).toEqual(["closed its input", undefined]);
});

test("the process closes its output because this side ends it -> the exit says how it ended", async () => {
  const { transport } = transportOf(
    `process.stdin.resume().on("end", () => { ${CLOSES} }); ${EARLY} ${STAYS}`,
  );
  const heard = new Promise((resolve) => {
    transport.onmessage = resolve;
  });
  await transport.start();
  await heard;
  await transport.closeWithin({ termMs: 600, killMs: 60_000 });
  expect(transport.exit).toBe("was ended by SIGTERM");
});

test("a program that cannot be started -> both fail with the reason, and there is nothing to close", async () => {
  const { transport, events } = transportOf("", "/nowhere/at/all");
  await expect(transport.spawn()).rejects.toMatchObject({ code: "spawn_failed" });
  await expect(transport.start()).rejects.toMatchObject({ code: "spawn_failed" });
  await transport.close();
  expect(events).toEqual([]);
});

test("messages of one turn -> the server reads them in their order", async () => {
  const code = 'process.stdin.on("data", (data) => process.stdout.write(data))';
  const { transport } = transportOf(code);
  const heard: unknown[] = [];
  const { promise: all, resolve } = Promise.withResolvers<void>();
  transport.onmessage = (message) => {
    if (heard.push((message as { params: unknown }).params) === 50) resolve();
  };
  await transport.start();
  const sent = Array.from({ length: 50 }, (_, id) => ({ id }));
  await Promise.all(
    sent.map((params) => transport.send({ jsonrpc: "2.0" as const, method: "echo", params })),
  );
  await all;
  expect(heard).toEqual(sent);
});

it.each([
  ["an object whose toString is not a function", { toString: null }],
  ["a list of such an object", [{ toString: null }]],
  ["true", true],
])("the id of an answer is %s -> the line is noted, and the next one is read", (_title, id) => {
  const messages: unknown[] = [];
  const notes: string[] = [];
  const inbox = createStdioInbox({
    server: "odd",
    maxMessageBytes: 1_000_000,
    onMessage: (message) => messages.push(message),
    onTooLarge: (error) => {
      throw error;
    },
    onNote: (note) => notes.push(note),
  });
  const right = { jsonrpc: "2.0", id: 1, result: {} };
  for (const message of [{ jsonrpc: "2.0", id, result: {} }, right])
    for (const _ of inbox.push(Buffer.from(`${JSON.stringify(message)}\n`)));
  inbox.stop();
  expect(messages).toEqual([right]);
  expect(notes).toEqual([expect.stringMatching(/^printed a line that is not a JSON-RPC 2\.0 message: /)]);
});

test("a long message before short ones -> read in another thread, and handed on before them", async () => {
  const told: unknown[] = [];
  const inbox = createStdioInbox({
    server: "long",
    maxMessageBytes: 1_000_000,
    onMessage: (message) => told.push("method" in message ? message.method : "id" in message && message.id),
    onTooLarge: (error) => {
      throw error;
    },
    onNote: (note) => told.push(note),
  });
  inbox.sent({ jsonrpc: "2.0", id: 1, method: "tools/call" });
  inbox.sent({ jsonrpc: "2.0", id: 2, method: "ping" });
  const text = "x".repeat(300_000);
  const lines = [
    { jsonrpc: "2.0", method: "first" },
    { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text }] } },
    { jsonrpc: "2.0", method: "notifications/x", params: { text } },
    { jsonrpc: "2.0", id: 2, result: {} },
    { jsonrpc: "2.0", id: 3, result: { text } },
    { jsonrpc: "2.0", method: "last" },
  ];
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const step of inbox.push(bytes)) await step;
  inbox.stop();
  expect(told).toEqual([
    "first",
    1,
    "notifications/x",
    2,
    "answered a request that is not open, with 300045 bytes",
    "last",
  ]);
});

function read(chunks: readonly (Buffer | string)[], maxBytes = 1_000): { lines: string[]; tooLong: number } {
  const lines: string[] = [];
  let tooLong = 0;
  const reader = new LineReader({
    maxBytes,
    onLine: (line) => void lines.push(line.toString("utf8")) as undefined,
    onTooLong: () => {
      tooLong++;
    },
  });
  for (const chunk of chunks) for (const _ of reader.push(Buffer.from(chunk)));
  return { lines, tooLong };
}

describe("LineReader", () => {
  it.each([
    ["one line", ["a\n"], ["a"]],
    ["a line without end", ["a"], []],
    ["several lines in one chunk", ["a\nb\nc\n"], ["a", "b", "c"]],
    ["a line over several chunks", ["a", "b", "", "c\n"], ["abc"]],
    ["a newline of its own chunk", ["a", "\n", "b", "\n"], ["a", "b"]],
    ["empty lines", ["\n\na\n\n\n"], ["a"]],
    ["a newline at the start of the next chunk", ["a", "\nb\n"], ["a", "b"]],
    ["nothing", [], []],
    ["an empty chunk", [""], []],
  ])("%s -> $2", (_name, chunks, lines) => {
    expect(read(chunks)).toEqual({ lines, tooLong: 0 });
  });

  test("a stream of several scripts cut at every two positions -> the same lines", () => {
    const bytes = Buffer.from('{"a":"é"}\n\n漢字\n😀x\nrest');
    const lines = ['{"a":"é"}', "漢字", "😀x"];
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const chunks = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        expect(read(chunks).lines, `cut at ${first} and ${second}`).toEqual(lines);
      }
    }
  });

  test("a stream byte by byte -> the same lines", () => {
    expect(read([..."ab\ncd\n"]).lines).toEqual(["ab", "cd"]);
  });

  it.each([
    ["exactly the limit", ["abcd\n"], ["abcd"], 0],
    ["exactly the limit over chunks", ["ab", "cd", "\n"], ["abcd"], 0],
    ["one byte more", ["abcde\n"], [], 1],
    ["one byte more over chunks", ["ab", "cde"], [], 1],
    ["one byte more without an end", ["abcde"], [], 1],
    ["lines before it", ["ab\nabcde\ncd\n"], ["ab"], 1],
    ["lines of chunks after it", ["abcde", "\nab\n", "cd\n"], [], 1],
    ["two of them", ["abcde\nabcde\n", "abcde\n"], [], 1],
    ["many short lines, more than the limit together", ["ab\ncd\nef\n"], ["ab", "cd", "ef"], 0],
  ])("limit of 4 bytes, %s -> $2, onTooLong called $3 times", (_name, chunks, lines, tooLong) => {
    expect(read(chunks, 4)).toEqual({ lines, tooLong });
  });

  test("a limit in the middle of a character -> counted in bytes", () => {
    expect(read(["漢\n"], 2)).toEqual({ lines: [], tooLong: 1 });
    expect(read(["漢\n"], 3)).toEqual({ lines: ["漢"], tooLong: 0 });
  });
});

test("a line of 400,000 pieces of one byte -> read in a heap of 24 MiB", async () => {
  const url = new URL(`file://${join(import.meta.dirname, "../../../../../fixtures/reads-line.ts")}`);
  const worker = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: 24 } });
  const [length] = await once(worker, "message");
  await worker.terminate();
  expect(length).toBe(400_000);
});

const SECRET = "s3cr3t-of-the-test-äöü";
const redact = createRedactor({ values: [SECRET], named: [] });
/** Any four characters of the secret in a row. */
const PART = new RegExp(
  Array.from({ length: SECRET.length - 3 }, (_, i) => SECRET.slice(i, i + 4)).join("|"),
);

/** The lines as the log would hold them. */
function follow(): { stderr: ServerStderr; lines: string[] } {
  const lines: string[] = [];
  const info = (message: string): void => void lines.push(message);
  const log = { info, warn: info, write: () => undefined } as unknown as Log;
  const serverLog = createServerLog("db", { log, redact });
  return { stderr: new ServerStderr((line) => serverLog.note(`stderr: ${line}`)), lines };
}

const take = (stderr: ServerStderr, piece: Buffer): void => {
  for (const _ of stderr.push(piece));
};

const inPieces = (text: string, size: number): Buffer[] => {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
};

test("a secret that is cut in two by chunks, at each byte -> whole lines, without it", () => {
  const text = `key ${SECRET} refused\n`;
  for (let size = 1; size <= Buffer.byteLength(text); size++) {
    const { stderr, lines } = follow();
    for (const piece of inPieces(text, size)) take(stderr, piece);
    expect(lines, `pieces of ${size}`).toEqual(["db stderr: key [redacted] refused"]);
    expect(stderr.tail(redact)).toBe("key [redacted] refused");
  }
});

test.each([
  ["LF", "one\ntwo\n", ["one", "two"]],
  ["CRLF", "one\r\ntwo\r\n", ["one", "two"]],
  ["CR, as a progress bar", "10 %\r20 %\r", ["10 %", "20 %"]],
  ["none at the end", "one\ntwo", ["one", "two"]],
  ["empty ones", "\n\none\n \n\ntwo\n", ["one", "two"]],
])("lines with %s -> each once", (_name, text, expected) => {
  const { stderr, lines } = follow();
  for (const piece of inPieces(text, 3)) take(stderr, piece);
  stderr.end();
  stderr.end();
  expect(lines).toEqual(expected.map((line) => `db stderr: ${line}`));
});

test.each([1_980, 1_990, 1_999, 2_000, 8_000, 40_950, 40_960, 41_000])(
  "a line with a secret at character %i, wherever it is cut -> no part of the secret",
  (at) => {
    const { stderr, lines } = follow();
    const text = `${"x".repeat(at)}${SECRET}${"y".repeat(50_000)}\n`;
    for (const piece of inPieces(text, 4_096)) take(stderr, piece);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^db stderr: \[a line of [\d,]+ bytes\] x+/);
    expect(lines[0]).not.toMatch(PART);
    expect(lines[0]?.length).toBeLessThan(2_100);
  },
);

test.each([100, 1_000, 7_999, 8_192, 9_000, 12_000, 32_000, 40_000, 40_955, 41_000, 60_000])(
  "an end that begins %i characters behind a secret -> no part of the secret",
  (behind) => {
    for (const size of [7, 4_096, 65_536]) {
      const { stderr } = follow();
      const text = `${`${SECRET} `.repeat(3_000)}${"y".repeat(behind)}`;
      for (const piece of inPieces(text, size)) take(stderr, piece);
      const tail = stderr.tail(redact);
      expect(tail, `pieces of ${size}`).not.toMatch(PART);
      expect(tail.length).toBeLessThanOrEqual(LIMITS.stderrTailBytes);
      expect(tail).toContain("y".repeat(Math.min(behind, 1_000)));
    }
  },
);

test("only long secrets, line by line -> no part of one is shown, also if the last part is cut", () => {
  const long = Array.from({ length: 200 }, (_, i) => `key${i.toString(36)}`).join("");
  const hide = createRedactor({ values: [long], named: [] });
  for (const end of ["\n", " "]) {
    const stderr = new ServerStderr(undefined);
    for (const piece of inPieces(`${long}${end}`.repeat(200), 1_000)) take(stderr, piece);
    expect(stderr.tail(hide)).not.toMatch(/key/);
  }
});

test("16 MiB without a line end -> a bounded memory and one line", () => {
  const { stderr, lines } = follow();
  const chunk = Buffer.alloc(65_536, "x");
  for (let i = 0; i < 256; i++) take(stderr, chunk);
  take(stderr, Buffer.from("\n"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("[a line of 16,777,216 bytes] xxx");
  expect(stderr.tail(redact).trim()).toMatch(/^x{8000,8192}$/);
});

class FakeProcess extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly pid: number | undefined;
  isUnreferenced = false;

  constructor(pid?: number) {
    super();
    this.pid = pid;
  }

  unref(): void {
    this.isUnreferenced = true;
  }

  exits(code: number | null, signal: NodeJS.Signals | null = null): void {
    this.emit("exit", code, signal);
    this.emit("close", code, signal);
  }
}

type Step = "end of stdin" | "SIGTERM" | "SIGKILL";

interface Behaviour {
  exitsAt?: Step;
  /** The system does not let us signal it. */
  refused?: boolean;
  /** It exits while the system refuses SIGKILL. */
  exitsMeanwhile?: boolean;
}

function start({ exitsAt, refused = false, exitsMeanwhile = false }: Behaviour = {}) {
  const child = new FakeProcess(42);
  const events: string[] = [];
  let hasExited = false;
  const reach = (step: Step): void => {
    events.push(step);
    if (step !== exitsAt) return;
    hasExited = true;
    if (step === "end of stdin") child.exits(0);
    else child.exits(null, step);
  };
  child.stdin.once("finish", () => reach("end of stdin"));
  const end = new ProcessEnd(child as unknown as ServerProcess, {
    onExit: (id) => events.push(`exit of ${id}`),
    onEnd: () => events.push("over"),
    onNote: (note) => events.push(note),
    kill: (_pid, signal): Killed => {
      if (hasExited) {
        events.push(`${signal} to the group`);
        return "gone";
      }
      if (refused) {
        if (exitsMeanwhile && signal === "SIGKILL") setImmediate(() => child.exits(0));
        return "refused";
      }
      reach(signal);
      return "sent";
    },
  });
  return { child, end, events };
}

const LAST = ["SIGKILL to the group", "exit of 42", "over"];
const soon = { termMs: 20, killMs: 40 };

describe("closeWithin, a process that ends", () => {
  test.each<[Step, string[], string]>([
    ["end of stdin", ["end of stdin", ...LAST], "exited with code 0"],
    ["SIGTERM", ["end of stdin", "SIGTERM", ...LAST], "was ended by SIGTERM"],
    ["SIGKILL", ["end of stdin", "SIGTERM", "SIGKILL", ...LAST], "was ended by SIGKILL"],
  ])("at %s -> no step more, then its group is killed", async (exitsAt, steps, exit) => {
    const { end, events } = start({ exitsAt });
    await end.closeWithin(soon);
    expect(events).toEqual(steps);
    expect(end.exit).toBe(exit);
  });

  test("a server that was never of use -> SIGTERM at once, and nobody waits for the end after SIGKILL", async () => {
    const { end, events } = start({ exitsAt: "SIGTERM" });
    await end.closeWithin(UNUSED_TIMES);
    expect(events).toEqual(["end of stdin", "SIGTERM", ...LAST]);
    const stubborn = start();
    await stubborn.end.closeWithin({ ...UNUSED_TIMES, killMs: 10 });
    expect(stubborn.events).toEqual(["end of stdin", "SIGTERM", "SIGKILL"]);
  });

  test("by itself before -> nothing is sent", async () => {
    const { child, end, events } = start();
    child.exits(1);
    await end.exited;
    const before = [...events];
    await end.closeWithin(soon);
    expect(events).toEqual(before);
    expect(end.exit).toBe("exited with code 1");
  });

  test("closed twice -> its end is told once", async () => {
    const { end, events } = start({ exitsAt: "SIGTERM" });
    await Promise.all([end.closeWithin(soon), end.closeWithin(soon)]);
    expect(events.filter((event) => event === "over")).toHaveLength(1);
  });
});

describe("a process that the system does not let us end", () => {
  const NOTE = "still runs as process 42: the system refuses to end it";

  test("closeWithin -> settles, a note says so, nothing holds the worker", async () => {
    const { child, end, events } = start({ refused: true });
    await end.closeWithin(soon);
    expect(events).toEqual(["end of stdin", NOTE, "over"]);
    expect(child.isUnreferenced).toBe(true);
    expect([child.stdin, child.stdout, child.stderr].every(({ destroyed }) => destroyed)).toBe(true);
  });

  test("killNow -> the same at once; its exit later is told, its end no second time", async () => {
    const { child, end, events } = start({ refused: true });
    end.killNow();
    expect(events).toEqual([NOTE, "over"]);
    child.exits(0);
    await end.exited;
    expect(events).toEqual([NOTE, "over", "exit of 42"]);
  });

  test("that has just ended, for which macOS refuses too -> no note", async () => {
    const { end, events } = start({ refused: true, exitsMeanwhile: true });
    await end.closeWithin(soon);
    expect(events).toEqual(["end of stdin", "exit of 42", "over"]);
  });
});

describe("the exit", () => {
  test("while a child of the server holds its output -> told after a moment all the same", async () => {
    const { child, end, events } = start({ exitsAt: "SIGKILL" });
    child.emit("exit", 3, null);
    expect(end.exit).toBe("exited with code 3");
    expect(events).toEqual([]);
    await end.exited;
    expect(events.slice(-2)).toEqual(["exit of 42", "over"]);
    expect(child.stdout.destroyed && child.stderr.destroyed).toBe(true);
  });

  test("endsWithin -> false while it runs, true once it has ended", async () => {
    const { child, end } = start();
    expect(await end.endsWithin(1)).toBe(false);
    child.exits(0);
    expect(await end.endsWithin(60_000)).toBe(true);
  });

  test("its last output comes late, as to a thread without processor time -> the end waits for all of it", async () => {
    const { child, end } = start();
    const heard: string[] = [];
    child.stderr.on("data", (piece) => heard.push(String(piece)));
    child.emit("exit", 1, null);
    // Longer than any time that the end waits, before the loop can turn.
    for (const since = performance.now(); performance.now() - since < 500; );
    setImmediate(() => {
      child.stderr.write("half ");
      setImmediate(() =>
        setImmediate(() => {
          child.stderr.end("and half");
          child.stderr.once("end", () => child.emit("close"));
        }),
      );
    });
    await end.exited;
    expect(heard.join("")).toBe("half and half");
  });

  test("a process that could not be started -> ended; there is nothing to signal or to close", async () => {
    const child = new FakeProcess();
    const sent: string[] = [];
    const end = new ProcessEnd(child as unknown as ServerProcess, {
      onExit: () => sent.push("exit"),
      onEnd: () => sent.push("over"),
      onNote: (note) => sent.push(note),
      kill: (_pid, signal) => {
        sent.push(signal);
        return "sent";
      },
    });
    child.emit("error", new Error("ENOENT"));
    await end.exited;
    await end.closeWithin(soon);
    expect(end.kill("SIGKILL")).toBe("gone");
    expect(sent).toEqual([]);
  });

  test.each<[number | null, NodeJS.Signals | null, string]>([
    [0, null, "exited with code 0"],
    [127, null, "exited with code 127"],
    [null, "SIGSEGV", "was ended by SIGSEGV"],
  ])("describeExit(%s, %s) -> %s", (code, signal, text) => {
    expect(describeExit(code, signal)).toBe(text);
  });
});
