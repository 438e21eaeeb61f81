/**
 * Owns: the panel between the session and the screen: what it asks, what it says afterwards, how it follows events, and its
 * end. The session is a fake.
 */
import { describe, expect, test, vi } from "vitest";
import type { Catalog } from "../../../../src/catalog/catalog.ts";
import { type CallResult, encode } from "../../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../../src/shared/protocol/session.ts";
import { openPanel } from "../../../../src/ui/panel/panel.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { createRecordingContext } from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { settled } from "../../settled.ts";
import { type Answers, fakeHost } from "../fake-host.ts";
import { makeDetails } from "./support.ts";

const ESCAPE = "\u001b";
const ENTER = "\r";
const TAB = "\t";
const DOWN = "\u001b[B";
const UP = "\u001b[A";
const END = "\u001b[F";

/** `user`: the answers to dialogs in order; then each dialog is closed. */
async function open(answers: Answers = {}, user: readonly string[] = []) {
  const left = [...user];
  const servers = [makeStatus("git"), makeStatus("fs", { state: "failed" })];
  let catalog = makeCatalog([]);
  const { host, asked, tell, listeners } = fakeHost(
    {
      status: () => makeReport({ files: ["/mcp.json"] }),
      serverDetails: () => makeDetails({ tools: { names: [], exposures: [], rules: [], places: [] } }),
      ...answers,
    },
    { catalog: () => catalog, servers: () => servers },
  );
  const { ctx, screens, dialogs, notices } = createRecordingContext({
    mode: "tui",
    select: () => left.shift(),
    input: () => left.shift(),
  });
  const closed = openPanel(ctx, host);
  await settled();
  // The one that has failed comes first.
  screens[0]?.handleInput(DOWN);
  /** The lines of the screen as one text; empty once the panel is closed. */
  const screen = () => (screens[0]?.render(80) ?? []).map((line) => line.trimEnd()).join("\n");
  return {
    asked,
    dialogs,
    notices,
    screen,
    until: (expected: RegExp) => vi.waitFor(() => expect(screen()).toMatch(expected), PATIENCE_MS),
    press: async (...keys: string[]) => {
      for (const key of keys) screens[0]?.handleInput(key);
      await settled();
    },
    tell,
    servers,
    setCatalog: (next: Catalog) => {
      catalog = next;
      tell({ type: "catalog" });
    },
    closed,
    listeners,
  };
}

describe("an action", () => {
  test("it is asked of the worker, and the panel says what came of it until the next key", async () => {
    const answer = Promise.withResolvers<undefined>();
    const at = await open({ reconnect: () => answer.promise });
    await at.press(ENTER, DOWN, DOWN, ENTER);
    expect(at.screen()).toContain("Connecting git…");
    answer.resolve(undefined);
    await settled();
    expect(at.screen()).toContain("git is connected.");
    await at.press(DOWN);
    expect(at.screen()).not.toContain("git is connected.");
    expect(at.asked.at(-1)).toEqual(["reconnect", { server: "git" }]);
  });

  test("sharing is switched on -> the panel shows what is written, and where", async () => {
    const at = await open({
      serverDetails: () =>
        makeDetails({ shared: false, tools: { names: [], exposures: [], rules: [], places: [] } }),
      setServer: () => ({ file: "/mcp.json" }),
    });
    await at.press(ENTER);
    await settled();
    await at.press(END, UP, UP, UP, UP, UP, ENTER);
    expect(at.screen()).toContain("Sharing of git");
    await at.press(UP, ENTER);
    const asked = { server: "git", project: false, key: "shared", value: true };
    expect(at.asked).toContainEqual(["setServer", asked]);
    expect(at.screen()).toContain("shared of git is true, in /mcp.json.");
  });

  test("it fails -> the error with its remedy; the panel stays", async () => {
    const at = await open({
      reconnect: () => {
        throw new ThreadsError("spawn_failed", "git: no such program.", { remedy: "Install it." });
      },
    });
    await at.press(ENTER, DOWN, DOWN, ENTER);
    expect(at.screen()).toContain("git: no such program. Install it.");
    expect(at.screen()).not.toContain("Connecting");
  });

  test("disable -> only after a yes, in the file that the worker chooses", async () => {
    const at = await open({ setEnabled: () => ({ file: "/mcp.json", but: "It waits." }) });
    await at.press(ENTER, END, UP, UP, UP, ENTER);
    expect(at.screen()).toContain("Disable git?");
    expect(at.asked.map(([method]) => method)).toEqual(["status", "serverDetails"]);
    await at.press(DOWN, ENTER);
    expect(at.asked.at(-1)).toEqual(["setEnabled", { server: "git", enabled: false, project: false }]);
    expect(at.screen()).toContain("git is disabled in /mcp.json. It waits.");
  });
});

describe("events", () => {
  test("a server changes, comes and goes -> the screen follows, without a request", async () => {
    const at = await open();
    expect(at.screen()).toMatch(/✗ fs\s+failed/);
    at.servers[1] = makeStatus("fs");
    at.servers.push(makeStatus("new"));
    at.tell({ type: "server" });
    expect(at.screen()).toMatch(/● fs\s+connected[\s\S]*● new/);
    expect(at.asked.map(([method]) => method)).toEqual(["status"]);
  });

  test("a plan with a question, a refusal and a mistake -> they stand in the list", async () => {
    const at = await open();
    const problem = {
      severity: "error",
      file: "/mcp.json",
      line: 3,
      column: 1,
      message: "wrong",
      remedy: "",
    } as const;
    at.tell({
      type: "planned",
      ...makeReport({
        questions: [{ server: "site", hash: "1", question: "site: make" }],
        refused: [{ name: "shady", reason: "you refused it" }],
        problems: [problem],
      }),
    });
    expect(at.screen()).toMatch(
      /\? site +asks consent[\s\S]*! mcp\.json:3 wrong[\s\S]*✗ shady +refused +you refused it/,
    );
  });

  test("the server of the open view goes with an edit -> back to the list", async () => {
    const at = await open();
    await at.press(UP, ENTER);
    expect(at.screen()).toContain(" fs  ✗ failed");
    at.servers.pop();
    at.tell({ type: "planned", ...makeReport() });
    expect(at.screen()).toContain("fs is no longer configured.");
  });

  test("the server of the open view goes while it is being read -> what the reading says of it is not told over that", async () => {
    const late = Promise.withResolvers<ReturnType<typeof makeDetails>>();
    const at = await open({ serverDetails: () => late.promise });
    await at.press(UP, ENTER);
    at.servers.pop();
    at.tell({ type: "planned", ...makeReport() });
    late.reject(new ThreadsError("server_removed", "The server fs was removed from the configuration."));
    await late.promise.catch(() => undefined);
    await new Promise(setImmediate);
    expect(at.screen()).toContain("fs is no longer configured.");
  });

  test("thirty servers that come and go a thousand times -> no request, and the screen shows the last word", async () => {
    const at = await open();
    at.servers.splice(0, 2, ...Array.from({ length: 30 }, (_, i) => makeStatus(`s${i}`)));
    for (let turn = 0; turn < 1_000; turn++) {
      const i = turn % 30;
      at.servers[i] = makeStatus(`s${i}`, { state: turn < 970 ? "failed" : "connected" });
      at.tell({ type: "server", status: at.servers[i] as ServerStatus });
    }
    expect(at.screen()).toContain("30 of 30 connected");
    expect(at.asked.map(([method]) => method)).toEqual(["status"]);
  });

  test("the worker crashes while a server is open -> the error is told, and the next worker's plan fills the view again", async () => {
    let isGone = true;
    const at = await open({
      serverDetails: () => {
        if (isGone) throw new ThreadsError("runtime_restarted", "The connection worker ended with code 7.");
        return makeDetails({ runs: "the next one" });
      },
    });
    await at.press(ENTER);
    expect(at.screen()).toContain("The connection worker ended with code 7.");
    isGone = false;
    at.tell({ type: "planned", ...makeReport() });
    await at.until(/runs +the next one/);
  });

  test("the tokens of declared tools are counted, of a new catalog again", async () => {
    const at = await open();
    const tool = (name: string) => ({ tool: name, description: "word ".repeat(50), direct: true });
    at.setCatalog(makeCatalog([{ name: "git", tools: [tool("a")] }]));
    await settled();
    const cost = (): number => Number(/● git\s+connected\s+stdio\s+\d+\s+(\d+)/.exec(at.screen())?.[1]);
    const one = cost();
    expect(one).toBeGreaterThan(50);
    at.setCatalog(makeCatalog([{ name: "git", tools: [tool("a"), tool("b")] }]));
    await settled();
    expect(cost()).toBe(2 * one);
  });
});

describe("tools", () => {
  const names = ["read", "write"];
  const tools = (exposures: ("direct" | "search" | "hidden")[]) => ({
    names,
    exposures,
    rules: [-1, -1],
    places: [],
  });
  const openTools = async (at: Awaited<ReturnType<typeof open>>): Promise<void> => {
    at.setCatalog(makeCatalog([{ name: "git", tools: names.map((tool) => ({ tool })) }]));
    await at.press(ENTER);
    await at.until(/Tools +2/);
    await at.press(ENTER);
  };

  test("Tab shows its choice at once, and writes only the last one of those that came while it was writing", async () => {
    const first = Promise.withResolvers<unknown>();
    const asked: unknown[] = [];
    let now = tools(["search", "search"]);
    const at = await open({
      serverDetails: () => makeDetails({ tools: now }),
      setExposure: (params) => {
        asked.push(params);
        return asked.length === 1 ? first.promise : { file: "/mcp.json", ruled: true };
      },
    });
    await openTools(at);
    await at.until(/○ read/);
    await at.press(DOWN, TAB);
    expect(at.screen()).toMatch(/● read +direct/);
    await at.press(TAB, TAB, TAB, TAB);
    expect(at.screen()).toMatch(/– read +hidden/);
    now = tools(["hidden", "search"]);
    first.resolve({ file: "/mcp.json", ruled: true });
    await at.until(/read of git: hidden, in \/mcp\.json\./);
    const written = { server: "git", tools: ["read"], project: false };
    expect(asked).toEqual([
      { ...written, to: "direct" },
      { ...written, to: "hidden" },
    ]);
    expect(at.screen()).toMatch(/– read +hidden/);
  });

  test("back to the default -> the message says that no rule is left", async () => {
    const at = await open({
      serverDetails: () => makeDetails({ tools: tools(["hidden", "search"]) }),
      setExposure: () => ({ file: "/mcp.json", ruled: false }),
    });
    await openTools(at);
    await at.until(/– read/);
    await at.press(DOWN, TAB);
    await at.until(/read of git: deferred again, as no rule is left in \/mcp\.json\./);
  });

  test("a rule forbids it -> the tool shows again what holds, and the error names the rule", async () => {
    const at = await open({
      serverDetails: () => makeDetails({ tools: tools(["search", "search"]) }),
      setExposure: () => {
        throw new ThreadsError(
          "bad_config",
          'read does not become direct: toolExposure "r*" in /mcp.json:3 decides.',
        );
      },
    });
    await openTools(at);
    await at.until(/○ read/);
    await at.press(DOWN, TAB);
    await at.until(/○ read +deferred[\s\S]*toolExposure "r\*" in \/mcp\.json:3 decides/);
  });

  test("Enter shows a tool with the schema as its server declares it", async () => {
    const at = await open({
      serverDetails: () => makeDetails({ tools: tools(["direct", "search"]) }),
      declaredSchema: () => '{\n  "type": "object"\n}',
    });
    await openTools(at);
    await at.until(/● read/);
    await at.press(DOWN, ENTER);
    await at.until(/● direct · ~\d+ tokens\n In Pi: git__read[\s\S]*read it\.[\s\S]*"type": "object"/);
  });
});

describe("a tool that is tried", () => {
  const fields = [
    { name: "path", field: { kind: "text", title: "path", required: true }, values: [] },
    {
      name: "depth",
      field: { kind: "number", integer: true, title: "depth", required: false, default: 2 },
      values: [],
    },
    {
      name: "mode",
      field: { kind: "choice", choices: [{ title: "1" }, { title: "2" }], title: "mode", required: false },
      values: [1, 2],
    },
    { name: "more", field: { kind: "text", format: "json", title: "more", required: false }, values: [] },
  ];
  const result = (text: string) =>
    encode({ content: [{ type: "text", text }], isError: false, durationMs: 1 } satisfies CallResult);
  const opened = async (user: readonly string[], answers: Answers = {}) => {
    const all = { toolForm: () => ({ fields, left: 0 }), declaredSchema: () => "{}", ...answers };
    const at = await open(all, user);
    at.setCatalog(makeCatalog([{ name: "git", tools: [{ tool: "read" }] }]));
    await settled();
    await at.press("r", "e", "a", "d", "\u0014");
    return at;
  };
  const called = (at: { asked: readonly (readonly [string, unknown])[] }): unknown =>
    at.asked.find(([method]) => method === "callTool")?.[1];

  test("what must be given is asked for; all is shown; the call has the arguments, and the result is the model's", async () => {
    const user = ["src", "mode: (left out)", "2", "more: (left out)", "{broken", '["a"]', "Call it"];
    const at = await opened(user, { callTool: () => result("three files") });
    await at.until(/read answered {2}git, as the model reads it[\s\S]*It answered after[\s\S]*three files/);
    expect(called(at)).toMatchObject({
      server: "git",
      tool: "read",
      args: { path: "src", depth: 2, mode: 2, more: ["a"] },
    });
    const titles = at.dialogs.map(({ title }) => title);
    expect(titles[0]).toMatch(/git:\n│ path\nEscape: back$/);
    expect(titles[1]).toBe("Call read of git? Choose a line to change it.");
    expect(at.dialogs[1]?.options).toEqual([
      "Call it",
      "path: src",
      "depth: 2",
      "mode: (left out)",
      "more: (left out)",
    ]);
    expect(titles.join("\n")).toContain('! "{broken": JSON is needed');
    await at.press(ESCAPE);
    expect(at.screen()).toContain("Find: read");
  });

  test("the form is closed -> nothing is called; a failure -> as the model would read it", async () => {
    const at = await opened([]);
    await vi.waitFor(() => expect(at.dialogs).toHaveLength(1), PATIENCE_MS);
    await settled();
    expect(called(at)).toBeUndefined();
    const failing = await opened(["Call it"], {
      toolForm: () => ({ fields: [], left: 0 }),
      callTool: () => {
        throw new ThreadsError("not_approved", "git/read was not approved.", { remedy: "Ask again." });
      },
    });
    await failing.until(/It failed after[\s\S]*git\/read was not approved\. Ask again\./);
    expect(failing.dialogs[0]?.title).toBe("Call read of git? It takes no arguments.");
  });

  test("Escape while it runs gives the call up, and the panel stays", async () => {
    let signal: AbortSignal | undefined;
    const at = await opened(["Call it"], {
      toolForm: () => ({ fields: [], left: 0 }),
      callTool: (_params, given) => {
        signal = given;
        return new Promise((_, reject) =>
          given?.addEventListener("abort", () => reject(new Error("given up"))),
        );
      },
    });
    await at.until(/Calling read\. Escape cancels it…/);
    await at.press(ESCAPE);
    expect(signal?.aborted).toBe(true);
    await at.until(/read answered/);
  });
});

describe("the other views", () => {
  test("a search as ToolSearch ranks it", async () => {
    const at = await open();
    at.setCatalog(
      makeCatalog([{ name: "git", tools: [{ tool: "clone_repository" }, { tool: "read_file" }] }]),
    );
    await at.press(TAB, ENTER);
    await at.press("f", "i", "l", "e");
    await at.until(/2 tools ranked in [\d.]+ ms[\s\S]*→ ● 1 +git__read_file +\d+\.\d\d/);
  });

  test("a log grows while one looks; the request ends with the view", async () => {
    const next = Promise.withResolvers<unknown>();
    const signals: (AbortSignal | undefined)[] = [];
    let count = 0;
    const at = await open({
      serverLog: (_params, signal) => {
        signals.push(signal);
        count++;
        if (count === 1) return { lines: ["2026-01-02T03:04:05.678Z warn  [worker] git: first"], size: 10 };
        return count === 2 ? next.promise : new Promise(() => undefined);
      },
    });
    await at.press(ENTER, DOWN, ENTER);
    await at.until(/git log {2}following[\s\S]*\d\d:\d\d:\d\d warn: git: first/);
    next.resolve({ lines: ["2026-01-02T03:04:06.678Z info  [worker] git: second"], size: 20 });
    await at.until(/\d\d:\d\d:\d\d git: second/);
    await at.press(ESCAPE);
    expect(signals.every((signal) => signal?.aborted)).toBe(true);
  });

  test("statistics", async () => {
    let captured = false;
    const summary = { tools: [], moreTools: 0, tokensSaved: 0 };
    const at = await open({
      stats: () => (captured ? { captured, summary } : { captured }),
      captureStats: () => {
        captured = true;
        return { file: "/mcp.json" };
      },
    });
    await at.press(TAB, DOWN, ENTER);
    await at.until(/Statistics of calls[\s\S]*Calls are not counted\. Enter switches it on/);
    await at.press(ENTER);
    await at.until(/No calls are recorded yet\.[\s\S]*Calls are counted from now on, in \/mcp\.json\./);
  });
});

test("the doctor of one server, asked when its view is opened and not again by what it does itself", async () => {
  const at = await open({
    diagnose: () => ({
      findings: [
        { id: "connect", severity: "error", server: "git", title: "It is broken.", remedy: "Mend it." },
      ],
      leftOut: 0,
      facts: { waiting: 0, tools: 0 },
      servers: [],
      stages: [],
      tookMs: 5,
    }),
  });
  await at.press(ENTER, END, UP, ENTER);
  await at.until(/git doctor[\s\S]*It is broken\./);
  at.tell({ type: "server", status: makeStatus("git") });
  await settled();
  expect(at.asked.filter(([method]) => method === "diagnose")).toEqual([["diagnose", { server: "git" }]]);
});

describe("the end", () => {
  test("Escape closes the panel, which then listens to nothing", async () => {
    const at = await open();
    expect(at.listeners()).toBe(1);
    await at.press(ESCAPE);
    await at.closed;
    expect(at.screen()).toBe("");
    expect(at.listeners()).toBe(0);
  });

  test("an action fails after the panel is closed -> a notice; after the session has ended -> nothing", async () => {
    for (const [end, told] of [
      [undefined, []],
      [ESCAPE, [["/mcp: git: no such program.", "error"]]],
    ] as const) {
      const answer = Promise.withResolvers<undefined>();
      const at = await open({ reconnect: () => answer.promise });
      await at.press(ENTER, DOWN, DOWN, ENTER);
      if (end === undefined) at.tell(undefined);
      else await at.press(end, end);
      await at.closed;
      answer.reject(new ThreadsError("spawn_failed", "git: no such program."));
      await settled();
      expect(at.notices).toEqual(told);
    }
  });

  test("the session ends while an action is under way -> the panel closes, and its late answer does nothing", async () => {
    const answer = Promise.withResolvers<undefined>();
    const at = await open({ reconnect: () => answer.promise });
    await at.press(ENTER, DOWN, DOWN, ENTER);
    at.tell(undefined);
    await at.closed;
    answer.resolve(undefined);
    await settled();
    expect(at.listeners()).toBe(0);
  });
});
