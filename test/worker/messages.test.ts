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
import { sized } from "../support/long.ts";
import { oneFile } from "../support/one-file.ts";
import { ownTest, SHARED } from "../support/shared.ts";
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
/**
 * A server that answers `method` with this many MiB of empty objects; the answer's id comes first or last. No time of a
 * machine that is slow at the moment decides: 60 MiB may take longer than the 30 s that a start has.
 */
const dense = (method: string, mebibytes: number, idPlace: string): Entry => {
  const { args, ...entry } = fixture("dense.mjs");
  const words = [...(args as string[]), method, String(mebibytes), idPlace];
  return { ...entry, args: words, startupTimeoutMs: 120_000 };
};

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

const OVER_STDIO: [method: string, mebibytes: number, idPlace: string, state: string, words: RegExp][] = [
  // JSON.parse would make 1.3 GB of objects from 60 MiB, more than the heap can hold.
  ["tools/list", sized(8, 60), "first", "failed", /^bad answered tools\/list with one/],
  ["tools/list", 8, "last", "failed", /^bad answered tools\/list with one/],
  ["initialize", 8, "first", "failed", /^bad answered initialize with one/],
  ["tools/call", 8, "first", "connected", /^bad\/work got no answer: bad sent one/],
  ["tools/call", 8, "last", "connected", /^bad\/work got no answer: bad sent one/],
];
const OVER_HTTP = [
  ["tools/list", "application/json"],
  ["tools/call", "application/json"],
  ["tools/call", "text/event-stream"],
] as const;
const OWN_HTTP = "a server over HTTP is never shared";
/** More servers than those whose long messages (of more than 1 MiB) arrive at a time. */
const LONG = Array.from({ length: 2 * LIMITS.longMessagesAtATime }, (_, i) => `long${i}`);
const LONG_BYTES = sized(2, 40) * 1024 * 1024;

/** One session for all rows below, each of which has a server of its own. All calls are made at once. */
const together = forRows(async () => {
  let streams = 0;
  const onStream = await serve((asked, response) => {
    if (asked.http !== "GET") return answerWell(asked, response);
    streams++;
    startEvents(response).write(`data: {"jsonrpc":"2.0","method":"x","params":[${objects(8)}{}]}\n\n`);
  });
  const servers: Record<string, Entry> = {};
  for (const [i, row] of OVER_STDIO.entries()) servers[`bad${i}`] = dense(row[0], row[1], row[2]);
  if (!SHARED) servers.stream = { url: onStream.url };
  for (const [i, [method, type]] of (SHARED ? [] : OVER_HTTP).entries())
    servers[`http${i}`] = { url: (await serve(gzipped(method, type))).url };
  for (const name of LONG) servers[name] = fixture("big-line.mjs", {}, { timeout: 300 });
  const calls = Object.keys(servers).map((name): Call => {
    if (name.startsWith("long")) return [name, "work", { bytes: LONG_BYTES }];
    return [name, name.startsWith("bad") ? "work" : "echo"];
  });
  return { report: await runSession(servers, calls), streams };
});

const resultOf = ({ results }: Report, name: string) => results.find(({ server }) => server === name);

describe("many MiB of empty objects", () => {
  it.each(OVER_STDIO.map((row, i) => [...row, `bad${i}`] as const))(
    "over stdio to %s, %i MiB, the id %s -> only that request fails, the server is %s",
    async (_method, _mebibytes, _idPlace, state, words, name) => {
      const { report } = await together();
      const failed = resultOf(report, name);
      expect(failed).toMatchObject({ code: "message_too_large", data: { server: name } });
      // On a machine that is slow at the moment the limit of time comes first.
      const isSlow = failed?.data?.limitMs !== undefined;
      if (!isSlow) expect(failed?.data?.limitValues).toBe(2_000_000);
      expect(failed?.message?.replaceAll(name, "bad")).toMatch(
        isSlow ? /takes more than 2 s to read/ : words,
      );
      expect(failed?.message).toMatch(isSlow ? /\d MiB/ : DENSE);
      expect(serverOf(report, name)).toMatchObject({ state });
    },
  );

  ownTest(OWN_HTTP).each(OVER_HTTP.map((row, i) => [...row, `http${i}`] as const))(
    "over HTTP with gzip to %s as %s -> only that request fails",
    async (method, _type, name) => {
      const { report } = await together();
      const failed = resultOf(report, name);
      expect(failed).toMatchObject({ code: "message_too_large", data: { server: name } });
      expect(failed?.message).toMatch(DENSE);
      expect(serverOf(report, name)).toMatchObject({
        state: method === "tools/call" ? "connected" : "failed",
      });
    },
  );

  ownTest(OWN_HTTP)("over HTTP on the notification stream -> the connection continues", async () => {
    const { report, streams } = await together();
    expect(resultOf(report, "stream")).toMatchObject({ received: 2 });
    expect(streams).toBeGreaterThan(0);
  });
});

test("long results of twice as many servers as may send one at a time -> all arrive", async () => {
  const { report } = await together();
  const received = LONG.map((name) => resultOf(report, name)?.received ?? 0);
  expect(received.map((bytes) => bytes > LONG_BYTES - 1_000)).toEqual(LONG.map(() => true));
});

describe("messages that are not answers", () => {
  const notification = {
    before: '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"',
    after: '"}}',
  };
  const mebibyte = "x".repeat(1024 * 1024);

  const DEEP: [name: string, before: string, after: string][] = [
    ["a value that is not a message", '{"jsonrpc":"2.0","params":', "}"],
    ["an answer without a request", '{"jsonrpc":"2.0","id":99,"result":{"odd":', "}}"],
    ["a malformed error", '{"jsonrpc":"2.0","id":99,"error":{"data":', "}}"],
  ];
  /** Answers that the server over HTTP has not accepted. */
  let underWay = 0;
  let most = 0;
  /** Never accepts an answer of the client. A call makes it send requests. */
  const neverAccepts = (): Promise<string> =>
    startHttp((request, response) => {
      request.setEncoding("utf8");
      let body = "";
      request.on("data", (chunk: string) => {
        body += chunk;
      });
      request.on("end", () => {
        const message = body === "" ? {} : JSON.parse(body);
        if (request.method === "POST" && message.method === undefined) {
          most = Math.max(most, ++underWay);
          response.once("close", () => underWay--);
        } else if (message.method === "tools/call") {
          const stream = startEvents(response);
          for (let id = 0; id <= LIMITS.serverRequestsOpen; id++)
            stream.write(`data: {"jsonrpc":"2.0","id":"ask-${id}","method":"ping"}\n\n`);
        } else answerWell({ http: request.method ?? "", path: "", headers: {}, message }, response);
      });
    });
  /** One worker with a server for each test. */
  const worker = forRows(async () => {
    const names = ["notifies", "unopened", ...DEEP.map((_row, i) => `deep${i}`)];
    const senders = Object.fromEntries(names.map((name) => [name, fixture("sends.mjs")]));
    const http = { url: `${await neverAccepts()}/mcp` };
    return start({ ...senders, asks: fixture("asks.mjs"), http, good: fixture("noisy.mjs") });
  });

  test("a notification of more than 16 MiB -> the connection closes with a reason; the next call connects", async () => {
    const at = await worker();
    const error = await at.failedCall("notifies", "work", { ...notification, piece: mebibyte, times: 16 });
    expect(error).toMatchObject({
      code: "message_too_large",
      message:
        "notifies sent a notification or request of 16 MiB, more than 16 MiB; the connection was closed.",
      data: { server: "notifies", limitBytes: LIMITS.unaskedBytes },
    });
    const fits = { ...notification, piece: mebibyte, times: 15 };
    expect(textOf(await at.call("notifies", "work", fits))).toBe("sent");
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(at.crashes).toEqual([]);
  });

  // What answers nothing stays in the hub: test/unit/workers/hub/routes.test.ts.
  const reaching = SHARED ? DEEP.filter(([, before]) => !before.includes('"id"')) : DEEP;
  test.each(reaching.map((row, i) => [...row, `deep${i}`] as const))(
    "%s, 50,000 levels deep, which the SDK turns into text -> noted in the log, the worker lives",
    async (_name, before, after, server) => {
      const at = await worker();
      const levels = 50_000;
      const sent = { before, piece: "[", times: levels, after: `${"]".repeat(levels)}${after}` };
      expect(textOf(await at.call(server, "work", sent))).toBe("sent");
      await until(
        async () => (await at.log()).includes(`${server} sent a message that cannot be handled`) || undefined,
      );
      expect(at.crashes).toEqual([]);
    },
  );

  ownTest("the hub keeps what answers nothing")(
    "an answer over the limit of unasked bytes without an open request -> not parsed",
    async () => {
      const at = await worker();
      const controller = new AbortController();
      await at.settled("unopened");
      const bare = { piece: "", times: 0, bare: true };
      const failed = at.failedCall("unopened", "work", bare, controller.signal);
      const before = '{"jsonrpc":"2.0","id":99,"result":{"content":"';
      const sent = { before, piece: mebibyte, times: sized(17, 40), after: '"}}' };
      expect(textOf(await at.call("unopened", "work", sent))).toBe("sent");
      controller.abort();
      expect((await failed).code).toBe("cancelled");
      await until(
        async () => (await at.log()).includes("unopened answered a request that is not open") || undefined,
      );
    },
  );

  test("requests without end from a server that never reads the answers -> its connection is closed, the worker lives", async () => {
    const at = await worker();
    const error = await at.failedCall("asks", "work");
    expect(error.code).toBe("server_died");
    // The hub answers pings itself.
    expect(error.message).toMatch(
      SHARED
        ? /it sent more than 10,000 requests within 10 s/
        : /^asks sent more than 1,000 requests that wait/,
    );
    expect(textOf(await at.call("good", "work"))).toBe("through the noise");
    expect(await at.settled("asks")).toMatchObject({ state: "idle", error: { code: "server_died" } });
    expect(at.crashes).toEqual([]);
    expect(await at.log()).not.toContain("MaxListenersExceededWarning");
  });

  ownTest(OWN_HTTP)(
    "requests without end over HTTP -> closed, with at most ten answers in flight",
    async () => {
      const at = await worker();
      await at.settled("http");
      const error = await at.failedCall("http", "echo");
      expect(error.message).toMatch(/^http sent more than 1,000 requests that wait for an answer/);
      expect(textOf(await at.call("good", "work"))).toBe("through the noise");
      expect(most).toBeLessThanOrEqual(10);
      expect(at.crashes).toEqual([]);
    },
  );
});

describe("a list over the limit of kept bytes", () => {
  test("four pages of tools, together more than 32 MiB -> the first 32 MiB can be called, the log names the others", {
    tags: "thorough",
  }, async () => {
    const at = await start({ s: fixture("many-tools.mjs", { PAGES: "4", SIZE: String(sized(88, 100)) }) });
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
