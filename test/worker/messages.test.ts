/**
 * Owns: no message of a server ends the process or the worker. A message that would not fit is refused: only its
 * connection or its request fails, with a reason, and the other servers continue.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, it, test } from "vitest";
import type { WireError } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { answerWell, type Handler, serve, startEvents } from "../support/http-server.ts";
import { oneFile } from "../support/one-file.ts";
import {
  builtWorker,
  configure,
  createPlace,
  fixture,
  fixtures,
  forRows,
  newestCatalog,
  start,
  startHttp,
  textOf,
  until,
} from "./support.ts";

type Entry = Record<string, unknown>;
type Call = [server: string, tool: string, args?: Entry];

interface Report {
  crashes: string[];
  results: { server: string; code?: string; message?: string; received?: number; data?: Entry }[];
  servers: { name: string; state: string; error?: WireError }[];
}

/** Runs a session in a separate process. If a message ends that process, the test fails but the test run continues. */
async function runSession(servers: Record<string, Entry>, calls: readonly Call[]): Promise<Report> {
  const place = await createPlace();
  await configure(place, { ...servers, good: fixture("noisy.mjs") });
  const program = oneFile("session", join(fixtures, "session.ts"));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program.file, place.agentDir, JSON.stringify([...calls, ["good", "work"]]), builtWorker.href],
    { env: { ...process.env, ...program.env, PMT_PLACE: place.agentDir }, maxBuffer: 2 ** 26 },
  );
  const report = JSON.parse(stdout) as Report;
  expect(report.crashes).toEqual([]);
  expect(report.results.at(-1)).toMatchObject({ server: "good", received: "through the noise".length });
  return report;
}

const serverOf = ({ servers }: Report, name: string) => servers.find((server) => server.name === name);
const DENSE = /one message of some \d{1,2},\d{3},\d{3} keys and values, more than 2,000,000\.$/;
const objects = (mebibytes: number): string => `{},`.repeat((mebibytes * 1024 * 1024) / 3);
/** A server that answers `method` with this many MiB of empty objects; the answer's id comes first or last. */
const dense = (method: string, mebibytes: number, idPlace: string): Entry => {
  const { args, ...entry } = fixture("dense.mjs");
  return { ...entry, args: [...(args as string[]), method, String(mebibytes), idPlace] };
};

describe("many MiB of empty objects", () => {
  const ROWS: [method: string, mebibytes: number, idPlace: string, state: string, words: RegExp][] = [
    // JSON.parse would make 1.3 GB of objects from this, more than the heap can hold.
    ["tools/list", 60, "first", "failed", /^bad answered tools\/list with one/],
    ["tools/list", 8, "last", "failed", /^bad answered tools\/list with one/],
    ["initialize", 8, "first", "failed", /^bad answered initialize with one/],
    ["tools/call", 8, "first", "connected", /^bad\/work got no answer: bad sent one/],
    ["tools/call", 8, "last", "connected", /^bad\/work got no answer: bad sent one/],
  ];
  const nameOf = (row: number): string => `bad${row}`;
  /** One session with a server for each row. */
  const overStdio = forRows(() => {
    const servers = ROWS.map(([method, mebibytes, idPlace], i) => [
      nameOf(i),
      dense(method, mebibytes, idPlace),
    ]);
    return runSession(
      Object.fromEntries(servers),
      ROWS.map((_row, i) => [nameOf(i), "work"]),
    );
  });

  it.each(ROWS.map((row, i) => [...row, i] as const))(
    "over stdio to %s, %i MiB, the id %s -> only that request fails, the server is %s",
    async (_method, _mebibytes, _idPlace, state, words, row) => {
      const [report, name] = [await overStdio(), nameOf(row)];
      const failed = report.results[row];
      expect(failed).toMatchObject({
        code: "message_too_large",
        data: { server: name, limitValues: 2_000_000 },
      });
      expect(failed?.message?.replaceAll(name, "bad")).toMatch(words);
      expect(failed?.message).toMatch(DENSE);
      expect(serverOf(report, name)).toMatchObject({ state });
    },
  );

  /** Answers requests with the method with 8 MiB of objects, compressed to about 8 KB. */
  const gzipped =
    (method: string, type: string): Handler =>
    (asked, response) => {
      if (asked.message.method !== method) return answerWell(asked, response);
      const field = method === "tools/list" ? "tools" : "content";
      const body = `{"jsonrpc":"2.0","id":${asked.message.id},"result":{"${field}":[${objects(8)}{}]}}`;
      const packed = gzipSync(type === "text/event-stream" ? `data: ${body}\n\n` : body);
      response.writeHead(200, { "content-type": type, "content-encoding": "gzip" }).end(packed);
    };

  const PACKED = [
    ["tools/list", "application/json"],
    ["tools/call", "application/json"],
    ["tools/call", "text/event-stream"],
  ] as const;
  const overHttp = forRows(async () => {
    const servers = PACKED.map(async ([method, type], i) => [
      nameOf(i),
      { url: (await serve(gzipped(method, type))).url },
    ]);
    return runSession(
      Object.fromEntries(await Promise.all(servers)),
      PACKED.map((_row, i) => [nameOf(i), "echo"]),
    );
  });

  it.each(PACKED.map((row, i) => [...row, i] as const))(
    "over HTTP with gzip to %s as %s -> only that request fails",
    async (method, _type, row) => {
      const [report, name] = [await overHttp(), nameOf(row)];
      expect(report.results[row]).toMatchObject({ code: "message_too_large", data: { server: name } });
      expect(report.results[row]?.message).toMatch(DENSE);
      expect(serverOf(report, name)).toMatchObject({
        state: method === "tools/call" ? "connected" : "failed",
      });
    },
  );

  test("over HTTP on the notification stream -> the connection continues", async () => {
    let streams = 0;
    const server = await serve((asked, response) => {
      if (asked.http !== "GET") return answerWell(asked, response);
      streams++;
      startEvents(response).write(`data: {"jsonrpc":"2.0","method":"x","params":[${objects(8)}{}]}\n\n`);
    });
    const report = await runSession({ bad: { url: server.url } }, [["bad", "echo"]]);
    expect(report.results[0]).toMatchObject({ received: 2 });
    expect(streams).toBeGreaterThan(0);
  });
});

describe("messages of many servers at once", () => {
  test("eight results of 40 MiB, together more than the limit for bytes in flight -> all arrive", async () => {
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
    const servers = Object.fromEntries(
      names.map((name) => [name, fixture("big-line.mjs", {}, { timeout: 300 })]),
    );
    const bytes = 40 * 1024 * 1024;
    const { results } = await runSession(
      servers,
      names.map((name) => [name, "work", { bytes }]),
    );
    expect(results.slice(0, -1).map(({ received = 0 }) => received > bytes - 1_000)).toEqual(
      names.map(() => true),
    );
  });
});

describe("messages that are not answers", () => {
  const notification = {
    before: '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"',
    after: '"}}',
  };
  const mebibyte = "x".repeat(1024 * 1024);

  test("a notification of more than 16 MiB -> the connection closes with a reason; the next call connects", async () => {
    const at = await start({ s: fixture("sends.mjs"), good: fixture("noisy.mjs") });
    const error = await at.failedCall("s", "work", { ...notification, piece: mebibyte, times: 16 });
    expect(error).toMatchObject({
      code: "message_too_large",
      message: "s sent a notification or request of 16 MiB, more than 16 MiB; the connection was closed.",
      data: { server: "s", limitBytes: LIMITS.unaskedBytes },
    });
    expect(textOf(await at.call("s", "work", { ...notification, piece: mebibyte, times: 15 }))).toBe("sent");
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(at.crashes).toEqual([]);
  });

  test.each([
    ["a value that is not a message", '{"jsonrpc":"2.0","odd":'],
    ["an answer without a request", '{"jsonrpc":"2.0","id":99,"result":{},"odd":'],
    ["a malformed error", '{"jsonrpc":"2.0","id":99,"error":'],
  ])(
    "%s, 50,000 levels deep, which the SDK turns into text -> noted in the log, the worker lives",
    async (_name, before) => {
      const at = await start({ s: fixture("sends.mjs") });
      const levels = 50_000;
      const sent = { before, piece: "[", times: levels, after: `${"]".repeat(levels)}}` };
      expect(textOf(await at.call("s", "work", sent))).toBe("sent");
      await until(
        async () => (await at.log()).includes("sent a message that cannot be handled") || undefined,
      );
      expect(at.crashes).toEqual([]);
    },
  );

  test("an answer of 40 MiB without an open request -> not parsed", async () => {
    const at = await start({ s: fixture("sends.mjs") });
    const controller = new AbortController();
    await at.settled("s");
    const bare = { piece: "", times: 0, bare: true };
    const failed = at.failedCall("s", "work", bare, controller.signal);
    const before = '{"jsonrpc":"2.0","id":99,"result":{"content":"';
    expect(textOf(await at.call("s", "work", { before, piece: mebibyte, times: 40, after: '"}}' }))).toBe(
      "sent",
    );
    controller.abort();
    expect((await failed).code).toBe("cancelled");
    await until(async () => (await at.log()).includes("answered a request that is not open") || undefined);
  });

  test.each([
    [
      "that never reads the answers",
      { s: fixture("asks.mjs") },
      /^s sent more than 1,000 requests that wait/,
    ],
  ])(
    "requests without end from a server %s -> its connection is closed, the worker lives",
    async (_name, servers, words) => {
      const at = await start({ ...servers, good: fixture("noisy.mjs") });
      const error = await at.failedCall("s", "work");
      expect(error.code).toBe("server_died");
      expect(error.message).toMatch(words);
      expect(textOf(await at.call("good", "work"))).toBe("through the noise");
      expect(await at.settled("s")).toMatchObject({ state: "idle", error: { code: "server_died" } });
      expect(at.crashes).toEqual([]);
      expect(await at.log()).not.toContain("MaxListenersExceededWarning");
    },
  );

  test("requests without end over HTTP -> closed, with at most ten answers in flight", async () => {
    let underWay = 0;
    let most = 0;
    const origin = await startHttp((request, response) => {
      request.setEncoding("utf8");
      let body = "";
      request.on("data", (chunk: string) => {
        body += chunk;
      });
      request.on("end", () => {
        const message = body === "" ? {} : JSON.parse(body);
        if (request.method === "POST" && message.method === undefined) {
          // The server never accepts this answer of the client.
          most = Math.max(most, ++underWay);
          response.once("close", () => underWay--);
        } else if (message.method === "tools/call") {
          const stream = startEvents(response);
          for (let id = 0; id <= LIMITS.serverRequestsOpen; id++)
            stream.write(`data: {"jsonrpc":"2.0","id":"ask-${id}","method":"ping"}\n\n`);
        } else answerWell({ http: request.method ?? "", path: "", headers: {}, message }, response);
      });
    });
    const at = await start({ s: { url: `${origin}/mcp` }, good: fixture("noisy.mjs") });
    await at.settled("s");
    const error = await at.failedCall("s", "echo");
    expect(error.message).toMatch(/^s sent more than 1,000 requests that wait for an answer/);
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(most).toBeLessThanOrEqual(10);
    expect(at.crashes).toEqual([]);
  });
});

describe("a list over the limit of kept bytes", () => {
  test("four pages of 10 MiB of tools -> the first 32 MiB can be called, the log names the others", async () => {
    const at = await start({ s: fixture("many-tools.mjs", { PAGES: "4", SIZE: "100" }) });
    const { toolCount, state } = await at.settled("s");
    expect(state).toBe("connected");
    expect(toolCount).toBeGreaterThan(300);
    expect(toolCount).toBeLessThan(400);
    expect(textOf(await at.call("s", "tool0_99"))).toBe("tool0_99");
    const log = await until(async () => {
      const text = await at.log();
      return text.includes("left out") ? text : undefined;
    });
    expect(log).toMatch(
      /s lists more than 32 MiB of tools, and these are left out: tool3_\d+, .* and \d+ more/,
    );
    expect(newestCatalog(at).tools).toHaveLength(toolCount);
  });
});
