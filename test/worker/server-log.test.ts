/** What servers log, through the real connection worker into the real file: over stdio and HTTP. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/protocol/limits.ts";
import { answerWell, resultOf, serve, startEvents } from "../support/http-server.ts";
import { everything, fixture, type Started, start, startEverything, textOf, until } from "./support.ts";

const SECRET = "s3cr3t-of-the-test";

/** The lines of the log that hold the text, once there are some. */
const lines = (started: Started, text: string): Promise<string[]> =>
  until(async () => {
    const found = (await started.log()).split("\n").filter((line) => line.includes(text));
    return found.length > 0 ? found : undefined;
  });

const logs = (env: Record<string, string> = {}, more: Record<string, unknown> = {}) =>
  fixture("logs.mjs", { ...env, TOKEN: SECRET }, more);

describe("over stdio", () => {
  test("each message -> a line at its level, with server and logger, without secrets or forged lines", async () => {
    const started = await start({ s: logs() });
    const forged = `2026-01-01T00:00:00.000Z error [main] ${SECRET}`;
    const messages = [
      { level: "debug", data: "one" },
      { level: "warning", logger: "pool", data: { left: 2 } },
      { level: "emergency", logger: "a\nb", data: `two\r\n${forged}\u2028${forged}\u001b[2J` },
      { level: "nonsense", data: "three" },
    ];
    expect(textOf(await started.call("s", "say", { messages }))).toBe("said");
    await lines(started, "three");
    const log = await started.log();
    expect(log).toMatch(/Z debug \[connection#\d+\] s debug: one\n/);
    expect(log).toMatch(/Z warn {2}\[connection#\d+\] s\/pool warning: \{"left":2\}\n/);
    expect(log).toMatch(
      /Z error \[connection#\d+\] s\/a b emergency: two\n {4}2026-01-01T.*\[redacted\]\\u2028/,
    );
    expect(log).toMatch(/Z info {2}\[connection#\d+\] s of an unknown level: three\n/);
    expect(log).toContain("\\x1b[2J");
    expect(log).not.toContain(SECRET);
    expect(log.match(/^2026-01-01/gm)).toBeNull();
    // Nothing of it reaches main, and so the terminal.
    expect(JSON.stringify(started.events)).not.toContain("pool");
  });

  test.each([
    ["answers", {}, "info"],
    ["answers", { debug: true }, "debug"],
    ["refuses", {}, "info"],
    ["is silent", {}, "info"],
  ])("a server with the capability that %s, %j -> asked for %s, and works", async (capable, more, level) => {
    const started = await start({ s: logs({ CAPABLE: capable }, more) });
    expect(textOf(await started.call("s", "say", { messages: [] }))).toBe("said");
    expect(await lines(started, "asked for")).toEqual([
      expect.stringMatching(`s notice: asked for ${level}$`),
    ]);
    if (capable === "refuses") await lines(started, "does not take a log level");
  });

  test("a server without the capability -> not asked, its messages are kept all the same", async () => {
    const started = await start({ s: logs() });
    await started.call("s", "say", { messages: [{ level: "info", data: "hello" }] });
    await lines(started, "hello");
    expect(await started.log()).not.toContain("asked for");
  });

  test("a flood -> bounded, told as dropped, the call goes through, the log is whole", async () => {
    const started = await start({ loud: logs(), calm: logs() });
    const messages = [{ level: "info", data: "x".repeat(3_000) }];
    await started.call("loud", "say", { messages, times: 20_000 });
    await started.call("calm", "say", { messages: [{ level: "info", data: "calm as ever" }] });
    await lines(started, "calm as ever");
    await started.runtime.stop();
    const [dropped = ""] = await lines(started, "dropped");
    const kept = (await started.log()).split("\n").filter((line) => line.includes("loud info:"));
    expect(dropped).toMatch(/ warn {2}\[connection#\d+\] loud: [\d,]+ log messages dropped/);
    const count = Number(/([\d,]+) log messages/.exec(dropped)?.[1]?.replaceAll(",", ""));
    expect(count + kept.length).toBe(20_000);
    expect(await readdir(started.agentDir)).not.toContain("mcp-threads.log.1");
    expect((await stat(join(started.agentDir, "mcp-threads.log"))).size).toBeLessThan(
      LIMITS.serverLogChars * 3,
    );
  });

  test("server-everything -> its simulated messages", async () => {
    const started = await start({ everything: { ...everything(), debug: true } });
    await started.call("everything", "toggle-simulated-logging");
    expect((await lines(started, "evel")).join("\n")).toMatch(/ everything \w+: \w+[- ]level[- ]message/);
  });
});

describe("over HTTP", () => {
  test("server-everything -> its simulated messages", async () => {
    const url = `${await startEverything("streamableHttp")}/mcp`;
    const started = await start({ web: { url, debug: true } });
    await started.call("web", "toggle-simulated-logging");
    expect((await lines(started, "SessionId")).join("\n")).toMatch(/ web \w+: \w+[- ]level[- ]message/);
  });

  test("a message that repeats the key of the URL -> without it", async () => {
    const server = await serve((asked, response) => {
      if (asked.message.method !== "tools/call") return answerWell(asked, response);
      const params = { level: "error", logger: "web", data: `refused key ${SECRET}` };
      const notification = JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params });
      startEvents(response).end(`data: ${notification}\n\ndata: ${resultOf(asked.message)}\n\n`);
    });
    const started = await start({ web: { url: `${server.url}?key=${SECRET}` } });
    await started.call("web", "echo", {});
    expect(await lines(started, "refused")).toEqual([
      expect.stringMatching(/ error \[connection#\d+\] web\/web error: refused key \[redacted\]$/),
    ]);
  });
});
