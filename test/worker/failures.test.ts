/**
 * Owns: the code and the sentence of each way in which a call can fail, from a real call through the real worker. The
 * sentence says what failed, on which server, why, what to do next, and which arguments the tool expects.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PiToolContext } from "../../src/pi/api.ts";
import type { CallResult } from "../../src/shared/protocol/calls.ts";
import { createMcpTool } from "../../src/tools/definition.ts";
import { makeCatalog } from "../unit/make-catalog.ts";
import {
  breakable,
  configure,
  createPlace,
  everything,
  fixture,
  forRows,
  type Place,
  type Started,
  start,
  startHttp,
  tellWorker,
  until,
} from "./support.ts";

type Entry = Record<string, unknown>;

const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

const RESULTS = fixture("results.mjs");
const SECRET = "s3cr3t-of-the-test";
/** It ends after it has written a secret that is cut. */
const WRITES_CUT_SECRET = `process.stdin.once("data", () => {
  process.stderr.write(process.env.SECRET.repeat(8) + "x".repeat(8_300), () => process.exit(1));
});`;

/** One worker with a server for each test that needs no session of its own. */
const others = forRows(async () => {
  const at = await start({
    waits: fixture("waits.mjs"),
    live: { ...fixture("live.mjs", { TOOLS: "work,drop-all" }), excludeTools: ["drop*"] },
    "my-off": { ...fixture("live.mjs"), disabled: true },
    secret: fixture("results.mjs", { SECRET }),
    cuts: { command: process.execPath, args: ["-e", WRITES_CUT_SECRET], env: { SECRET } },
    short: { ...RESULTS, args: [...(RESULTS.args as string[]), "--token", "hunt2"] },
  });
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return at;
});

/** The text of a failed call of `<server>__<tool>` that the model reads, and the call's `details`. */
async function failedResult(
  at: Started,
  tool: string,
  { args = {}, signal, server = "s" }: { args?: Entry; signal?: AbortSignal; server?: string } = {},
): Promise<{ text: string; code: unknown; data: unknown }> {
  const [found] = makeCatalog([{ name: server, tools: [{ tool, schema }] }]).tools;
  if (!found) throw new Error("no tool");
  const piTool = createMcpTool(found, ({ signal: given, onProgress: _, branch: __, ...request }) =>
    at.runtime.callTool({ ...request }, given),
  );
  const result = await piTool.execute("id", args, signal, undefined, {} as PiToolContext);
  const [content] = result.content;
  expect(result.isError).toBe(true);
  const { code, data } = result.details as { code?: unknown; data?: unknown };
  return { text: content?.type === "text" ? content.text : "", code, data };
}

/** How the reason goes on if the call came soon after the attempt that failed. */
const PAUSE = / It is tried again in \d+ s; \/mcp reconnect s tries now\.$/;
const EXPECTED = "\nExpected parameters: s__work(path: string)";

describe("a call to a server that", () => {
  const ROWS: [string, Entry | (() => Promise<Entry>), string, RegExp][] = [
    [
      "dies",
      fixture("dies-in-call.mjs"),
      "server_died",
      /^s\/work got no answer: it exited with code 7\. It wrote:\nout of ink\.\nThe call may have run\. The next call connects again\.$/,
    ],
    [
      "does not answer in time",
      fixture("waits.mjs", {}, { timeout: 0.05 }),
      "call_timeout",
      /^s\/work did not answer within 0\.05 s\. It may still be running there\. Set timeout \(seconds\) /,
    ],
    [
      "answers a JSON-RPC error",
      fixture("rejects.mjs"),
      "call_rejected",
      /^s rejected work: the printer is on fire$/,
    ],
    [
      "is not there",
      { command: "no-such-command" },
      "spawn_failed",
      /^s: the command "no-such-command" was not found\./,
    ],
    [
      "has its arguments in the command",
      { command: "no-such-command -y 'a b'" },
      "spawn_failed",
      /^s: the command "no-such-command -y 'a b'" was not found: it holds its arguments too\./,
    ],
    [
      "prints text in place of messages, and does not start in time",
      {
        ...fixture("shapes.mjs"),
        command: process.execPath,
        args: ["-e", "console.log('Listening on port 3000'); setInterval(() => {}, 1e6)"],
        startupTimeoutMs: 4_000,
      },
      "connect_timeout",
      /^s did not start within 4 s, and wrote text to stdout in place of MCP: "Listening on port 3000"\./,
    ],
    [
      "exits at once",
      fixture("exits.mjs"),
      "connect_failed",
      /^s could not be connected: its process exited with code 3 .*no licence/s,
    ],
    [
      "does not start in time",
      fixture("hangs.mjs", {}, { startupTimeoutMs: 100 }),
      "connect_timeout",
      /^s did not start within 0\.1 s\./,
    ],
    [
      "wants a key",
      async () => ({ url: await startHttp((_request, response) => response.writeHead(401).end()) }),
      "needs_auth",
      /^s: http:\/\/127\.0\.0\.1:\d+\/ answered 401\. It wants a key: \/mcp auth s in Pi asks where it is, or write "bearerTokenEnv": "NAME_OF_VARIABLE" or "headers" for it in \S+mcp\.json\.$/,
    ],
    [
      "is disabled",
      { ...everything(), disabled: true },
      "server_disabled",
      /^s is disabled in \/.*mcp\.json\. \/mcp enable s switches it on\.$/,
    ],
    [
      "offers the tool, but it is excluded",
      { ...fixture("live.mjs"), excludeTools: ["w*"] },
      "tool_excluded",
      /^s offers work, but the configuration excludes it\. Only the user can allow it: excludeTools, includeTools or toolExposure in \S+mcp\.json\.$/,
    ],
    [
      "offers the tool outside includeTools",
      { ...fixture("live.mjs"), includeTools: ["other"] },
      "tool_excluded",
      /^s offers work, but the configuration excludes it\./,
    ],
    [
      "offers the tool, but it is hidden",
      { ...fixture("live.mjs"), toolExposure: { work: "hidden" } },
      "tool_excluded",
      /^s offers work, but the configuration excludes it\./,
    ],
    [
      "does not offer the tool",
      fixture("live.mjs", { TOOLS: "other" }),
      "unknown_tool",
      /^s no longer offers a tool named work\. Search again with ToolSearch\.$/,
    ],
  ];
  /** A name that is no part of any sentence. */
  const nameOf = (row: number): string => `qx${row}z`;
  const shared = forRows(async () => {
    const servers = ROWS.map(async ([, entry], row) => [
      nameOf(row),
      typeof entry === "function" ? await entry() : entry,
    ]);
    return start(Object.fromEntries(await Promise.all(servers)));
  });

  test.each(ROWS.map(([name, _entry, code, text], row) => [name, row, code, text] as const))(
    "$0 -> $2",
    async (_name, row, code, text) => {
      const at = await shared();
      await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
      const server = nameOf(row);
      const failed = await failedResult(at, "work", { server });
      expect(failed.code).toBe(code);
      const says = failed.text.replaceAll(server, "s").replace(PAUSE, "");
      // Only where the server refused the call may its parameters be at fault.
      const isRefused = code === "call_rejected";
      expect(says.endsWith(EXPECTED), failed.text).toBe(isRefused);
      expect(isRefused ? says.slice(0, -EXPECTED.length) : says).toMatch(text);
      expect(failed.data).toMatchObject({ server });
    },
  );

  test("does not answer before the user cancels -> cancelled", async () => {
    const at = await others();
    const failed = await failedResult(at, "work", { server: "waits", signal: AbortSignal.timeout(50) });
    expect([failed.code, failed.text]).toEqual(["cancelled", "waits/work was cancelled."]);
  });

  test("was removed -> server_removed", async () => {
    const place = await createPlace();
    const at = await start({ s: fixture("live.mjs") }, { place });
    await at.settled("s");
    const since = at.events.length;
    await configure(place, {});
    await at.event("planned", ({ servers }) => servers.length === 0, since);
    const failed = await failedResult(at, "work");
    expect([failed.code, failed.text]).toEqual([
      "server_removed",
      "The server s was removed from the configuration. Search again with ToolSearch.",
    ]);
  });

  test("is not configured -> unknown_server", async () => {
    const text = "No server named s is configured. /mcp lists the servers.";
    expect(await failedResult(await others(), "work")).toMatchObject({ code: "unknown_server", text });
  });

  test("does not answer before the worker ends -> runtime_restarted; after a stop -> runtime_stopped", async () => {
    const at = await start({ s: fixture("waits.mjs") }, { workerUrl: breakable });
    await at.settled("s");
    const open = failedResult(at, "work", { args: { file: join(at.cwd, "never") } });
    await tellWorker(at, "exit");
    const failed = await open;
    expect(failed.code).toBe("runtime_restarted");
    expect(failed.text).toMatch(
      /^s\/work got no answer: The connection worker ended with code 7\. .*may have run/s,
    );
    await at.runtime.stop();
    const later = await failedResult(at, "work");
    expect(later.code).toBe("runtime_stopped");
    expect(later.text).toMatch(/^s\/work was not called: The MCP servers of this session are stopped\./);
  });
});

describe("a server of the project that is not trusted", () => {
  const project = async (): Promise<Place> => {
    const place = await createPlace();
    const { command, args } = fixture("live.mjs");
    await writeFile(join(place.cwd, ".mcp.json"), JSON.stringify({ mcpServers: { s: { command, args } } }));
    return place;
  };
  const notStarted = async (at: Started, reason: string): Promise<void> => {
    const text = `s is not started: ${reason}. Only the user can allow it.`;
    expect(await failedResult(at, "work")).toMatchObject({ code: "server_not_trusted", text });
    expect(at.events.filter(({ type }) => type === "spawned")).toEqual([]);
  };

  test("nobody can be asked -> server_not_trusted with the reason", async () => {
    const at = await start({}, { place: await project(), facts: { canAsk: false } });
    await notStarted(at, "no one can be asked for consent here");
  });

  test("waits for consent, was refused, then allowed -> not started with the reason, then connected", async () => {
    const at = await start({}, { place: await project() });
    await notStarted(at, "it waits for the user's consent");
    const { questions } = await at.runtime.ask("status", {});
    const hash = questions[0]?.hash ?? "";
    await at.runtime.ask("answerConsent", { hash, allow: false });
    await notStarted(at, "it was refused; /mcp trust asks again");
    await at.runtime.ask("answerConsent", { hash, allow: true });
    expect((await at.runtime.ask("explainMissing", { name: "s__work" }))?.code).toBe("server_not_trusted");
    await at.runtime.ask("askAgain", {});
    await at.runtime.ask("answerConsent", { hash, allow: true });
    await at.settled("s");
    expect(await at.runtime.ask("explainMissing", { name: "s__work" })).toBeUndefined();
  });
});

test("explainMissing: a name -> the reason why the configuration allows no such tool", async () => {
  const at = await others();
  const why = async (name: string): Promise<string | undefined> =>
    (await at.runtime.ask("explainMissing", { name }))?.code;
  expect(await why("live__drop-all")).toBe("tool_excluded");
  expect(await why("mcp__LIVE__DROP-ALL")).toBe("tool_excluded");
  expect(await why("my_off__work")).toBe("server_disabled");
  for (const name of ["live__work", "live__nothing", "other__work", "work", ""])
    expect(await why(name)).toBeUndefined();
});

describe("the text of a server's error", () => {
  test("data that is cut within a secret -> no part of the secret stays, at most 4 KB", async () => {
    const started = await others();
    for (let before = 640; before < 680; before += 4) {
      const args = { code: 7, reason: `${"x".repeat(before)}${SECRET}`, more: "y".repeat(9_000) };
      const { code, data, text } = await failedResult(started, "fail", { args, server: "secret" });
      expect(code).toBe("call_rejected");
      expect(JSON.stringify(data) + text).not.toMatch(/s3c/);
      expect(JSON.stringify(data)).toContain("truncated");
      expect(JSON.stringify(data).length).toBeLessThan(4_096);
    }
  });

  test("a message of megabytes -> cut, with its length", async () => {
    const started = await others();
    const args = { code: 7, words: 3_000_000 };
    const { text } = await failedResult(started, "fail", { args, server: "secret" });
    expect(text.length).toBeLessThan(4_500);
    expect(text).toMatch(/^secret rejected fail: no: \[redacted\]w+… \(3,000,014 characters\)\nExpected/);
  });

  test("stderr that is cut within a secret -> no part of the secret stays", async () => {
    const started = await others();
    const status = await started.settled("cuts");
    expect(status.error?.message).toContain("xxx");
    expect(JSON.stringify(status)).not.toMatch(/s3c|-test/);
    expect(await until(async () => (await started.log()).includes("xxx") || undefined)).toBe(true);
    expect(await started.log()).not.toMatch(/s3c|-test/);
  });
});

test("a result with isError -> shown without the definition's secrets; any other result -> unchanged", async () => {
  const started = await others();
  const content = [{ type: "text", text: `the key ${SECRET} is not valid` }];
  const textIn = ({ content: [first] }: CallResult): string => (first?.type === "text" ? first.text : "");
  expect(textIn(await started.call("secret", "answer", { content, isError: true }))).toBe(
    "the key [redacted] is not valid",
  );
  expect(textIn(await started.call("secret", "answer", { content }))).toBe(`the key ${SECRET} is not valid`);
});

test("a result with isError that repeats a short secret of the command line -> shown without the secret", async () => {
  const started = await others();
  const content = [{ type: "text", text: "hunt2 is not valid, hunt23 would be" }];
  const { content: shown } = await started.call("short", "answer", { content, isError: true });
  expect(shown[0]).toEqual({ type: "text", text: "[redacted] is not valid, hunt23 would be" });
});
