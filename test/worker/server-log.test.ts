/** Owns: log messages of servers over stdio and HTTP, through the real connection worker into the real log file. */
import { readdir, stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { answerWell, type Handler, resultOf, serve, startEvents } from "../support/http-server.ts";
import {
  everything,
  fixture,
  forRows,
  type Started,
  start,
  startEverything,
  textOf,
  until,
} from "./support.ts";

const SECRET = "s3cr3t-of-the-test";
/** Messages of 3,000 characters: more than the whole log may hold. */
const FLOOD = 2_000;

/** Waits until lines of the log contain the text, and answers these lines. */
const lines = (started: Started, text: string): Promise<string[]> =>
  until(async () => {
    const found = (await started.log()).split("\n").filter((line) => line.includes(text));
    return found.length > 0 ? found : undefined;
  });

const logs = (env: Record<string, string> = {}, more: Record<string, unknown> = {}) =>
  fixture("logs.mjs", { ...env, TOKEN: SECRET }, more);

/** Servers with the logging capability: what they do when they are asked for a level, and the level. */
const CAPABLE: [name: string, capable: string, more: object, level: string][] = [
  ["capable", "answers", {}, "info"],
  ["capable-debug", "answers", { debug: true }, "debug"],
  ["refusing", "refuses", {}, "info"],
  ["silent", "is silent", {}, "info"],
];
/** It writes a secret to stderr in pieces. */
const PIECES = `
  const key = process.env.TOKEN, rest = key.slice(9) + " was refused\\n";
  process.stderr.write("key " + key.slice(0, 9), () =>
    setTimeout(() => process.stderr.write(rest + "last " + key, () => process.exit(1)), 200));`;

/** One worker with a server for each test, except those that count all lines. */
const shared = forRows(async () =>
  start({
    tells: logs(),
    incapable: logs(),
    ...Object.fromEntries(
      CAPABLE.map(([name, capable, more]) => [name, logs({ CAPABLE: capable }, { ...more })]),
    ),
    pieces: { command: process.execPath, args: ["-e", PIECES], env: { TOKEN: SECRET }, debug: true },
    everything: { ...everything(), debug: true },
    keyed: { url: `${(await serve(repeatsKey)).url}?key=${SECRET}` },
  }),
);

const repeatsKey: Handler = (asked, response) => {
  if (asked.message.method !== "tools/call") return answerWell(asked, response);
  const params = { level: "error", logger: "web", data: `refused key ${SECRET}` };
  const notification = JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params });
  startEvents(response).end(`data: ${notification}\n\ndata: ${resultOf(asked.message)}\n\n`);
};

describe("over stdio", () => {
  test("each message -> a line at its level, with server and logger, without secrets or forged lines", async () => {
    const started = await shared();
    const forged = `2026-01-01T00:00:00.000Z error [main] ${SECRET}`;
    const messages = [
      { level: "debug", data: "one" },
      { level: "warning", logger: "pool", data: { left: 2 } },
      { level: "emergency", logger: "a\nb", data: `two\r\n${forged}\u2028${forged}\u001b[2J` },
      { level: "nonsense", data: "three" },
    ];
    expect(textOf(await started.call("tells", "say", { messages }))).toBe("said");
    await lines(started, "three");
    const log = await started.log();
    expect(log).toMatch(/Z debug \[connection#\d+\] tells debug: one\n/);
    expect(log).toMatch(/Z warn {2}\[connection#\d+\] tells\/pool warning: \{"left":2\}\n/);
    expect(log).toMatch(
      /Z error \[connection#\d+\] tells\/a b emergency: two\n {4}2026-01-01T.*\[redacted\]\\u2028/,
    );
    expect(log).toMatch(/Z info {2}\[connection#\d+\] tells of an unknown level: three\n/);
    expect(log).toContain("\\x1b[2J");
    expect(log).not.toContain(SECRET);
    expect(log.match(/^2026-01-01/gm)).toBeNull();
    // No message reaches main, so none reaches the terminal.
    expect(JSON.stringify(started.events)).not.toContain("pool");
  });

  test.each(CAPABLE)(
    "a server with the logging capability ($0) that $1, $2 -> asked for level $3, and works",
    async (name, capable, _more, level) => {
      const started = await shared();
      expect(textOf(await started.call(name, "say", { messages: [] }))).toBe("said");
      expect(await lines(started, ` ${name} notice: asked for`)).toEqual([
        expect.stringMatching(`asked for ${level}$`),
      ]);
      if (capable === "refuses") await lines(started, ` ${name} does not take a log level`);
    },
  );

  test("a server without the logging capability -> not asked for a level, its messages are still kept", async () => {
    const started = await shared();
    await started.call("incapable", "say", { messages: [{ level: "info", data: "hello" }] });
    await lines(started, "hello");
    expect(await started.log()).not.toMatch(/ incapable .*asked for/);
  });

  test("a flood of messages -> limited, the log counts the dropped ones, other servers' messages are kept", async () => {
    const started = await start({ loud: logs(), calm: logs() });
    const messages = [{ level: "info", data: "x".repeat(3_000) }];
    await started.call("loud", "say", { messages, times: FLOOD });
    await started.call("calm", "say", { messages: [{ level: "info", data: "calm as ever" }] });
    await lines(started, "calm as ever");
    await started.runtime.stop();
    const kept = (await started.log()).split("\n").filter((line) => line.includes("loud info:"));
    // A flood that takes longer than a window, as on a slow machine, has a line for each window.
    const counts = (await lines(started, "dropped")).map((line) => {
      const [, count = ""] =
        / warn {2}\[connection#\d+\] loud: ([\d,]+) log messages dropped/.exec(line) ?? [];
      return Number(count.replaceAll(",", ""));
    });
    expect(counts.reduce((sum, count) => sum + count, 0) + kept.length).toBe(FLOOD);
    expect(await readdir(started.agentDir)).not.toContain("mcp-threads.log.1");
    expect((await stat(join(started.agentDir, "mcp-threads.log"))).size).toBeLessThan(
      LIMITS.serverLogChars * (counts.length + 2),
    );
  });

  test("debug: the server writes a secret to stderr in pieces -> whole lines, without the secret", async () => {
    const started = await shared();
    const status = await started.settled("pieces");
    expect(status.error?.message).toMatch(/It wrote:\nkey \[redacted\] was refused\nlast \[redacted\]\.?$/);
    expect(await lines(started, " pieces stderr: ")).toEqual([
      expect.stringMatching(/ pieces stderr: key \[redacted\] was refused$/),
      expect.stringMatching(/ pieces stderr: last \[redacted\]$/),
    ]);
    expect(await started.log()).not.toMatch(/s3cr3t|of-the-test/);
  });

  test("server-everything -> its simulated messages", async () => {
    const started = await shared();
    await started.call("everything", "toggle-simulated-logging");
    await until(
      async () => / everything \w+: \w+[- ]level[- ]message/.test(await started.log()) || undefined,
    );
  });
});

describe("over HTTP", () => {
  test("server-everything -> its simulated messages", async () => {
    const url = `${await startEverything("streamableHttp")}/mcp`;
    const started = await start({ web: { url, debug: true } });
    await started.call("web", "toggle-simulated-logging");
    expect((await lines(started, "SessionId")).join("\n")).toMatch(/ web \w+: \w+[- ]level[- ]message/);
  });

  test("a message that repeats the key of the URL -> shown without the key", async () => {
    const started = await shared();
    await started.call("keyed", "echo", {});
    expect(await lines(started, "keyed/web error: refused")).toEqual([
      expect.stringMatching(/ error \[connection#\d+\] keyed\/web error: refused key \[redacted\]$/),
    ]);
  });
});

test("servers fail in ten ways -> each line of the log names its server once", async () => {
  const legacy = await serve(({ http, message }, response) => {
    if (http === "GET") {
      stream = startEvents(response);
      stream.write("event: endpoint\ndata: /messages\n\n");
    } else {
      response.writeHead(202).end();
      if (message.id !== undefined) stream?.write(`data: ${resultOf(message)}\n\n`);
    }
  });
  let stream: ServerResponse | undefined;
  const noResources = await serve((asked, response) => {
    const { method, id, params } = asked.message;
    if (method === "resources/list") return response.writeHead(500).end("out of paper");
    if (method !== "initialize") return answerWell(asked, response);
    const result = {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {}, resources: {} },
      serverInfo: { name: "fixture", version: "1" },
    };
    const type = { "content-type": "application/json" };
    return response.writeHead(200, type).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const refuses = await serve((_asked, response) => response.writeHead(401).end());
  const gone = await serve(() => undefined);
  await gone.close();
  const started = await start({
    "no-command": { command: "no-such-command" },
    "no-folder": { command: process.execPath, cwd: "/no/such/folder" },
    "no-variable": { command: process.execPath, env: { A: "$" + "{PMT_NOT_SET}" } },
    exits: fixture("exits.mjs"),
    "exits-at-list": fixture("exits-at-list.mjs"),
    refuses: { url: refuses.url },
    gone: { url: gone.url },
    "no-resources": { url: noResources.url },
    drops: { url: legacy.url, type: "sse" },
    dies: fixture("dies-in-call.mjs"),
  });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  stream?.destroy();
  await started.failedCall("dies", "work");
  // The log writes a line after the state has changed, on a slow machine some time after.
  for (const line of ["exits could", "exits-at-list did", "refuses: ", "gone: ", "drops: ", " dies exited"]) {
    await lines(started, line);
  }
  const log = await started.log();
  const told = log
    .split("\n")
    .filter((line) => / (error|warn) | does not list /.test(line))
    .flatMap((line) => /^\S+ \w+ +\[\S+\] (.*)/.exec(line)?.[1] ?? []);
  const of = (server: string): string | undefined => told.find((line) => line.startsWith(server));
  const port = (server: { url: string }): string => new URL(server.url).port;
  expect([
    of("no-command"),
    of("no-folder"),
    of("no-variable"),
    of("exits "),
    of("exits-at-list"),
    of("refuses"),
    of("gone: "),
    of("no-resources"),
    of("drops"),
    of("dies"),
  ]).toEqual([
    'no-command: the command "no-such-command" was not found.',
    "no-folder: its working directory /no/such/folder does not exist.",
    expect.stringMatching(/^no-variable: (?!.*no-variable).*PMT_NOT_SET/),
    "exits could not be connected: its process exited with code 3 before it answered. It wrote:",
    "exits-at-list did not list its tools: it exited with code 6. It wrote:",
    `refuses: http://127.0.0.1:${port(refuses)}/mcp answered 401.`,
    `gone: http://127.0.0.1:${port(gone)}/mcp refused the connection (ECONNREFUSED).`,
    `no-resources does not list its resources: resources/list failed: http://127.0.0.1:${port(noResources)}/mcp answered status 500: out of paper.`,
    `drops: http://127.0.0.1:${port(legacy)}/mcp closed the connection without an answer (ECONNRESET). The next call connects again.`,
    "dies exited with code 7. It wrote:",
  ]);
});
