/**
 * Owns: the panel between the session and the screen: what it asks, what it says afterwards, how it follows events, and its
 * end. The session is a fake.
 */
import { describe, expect, test } from "vitest";
import type { Catalog } from "../../../../src/catalog/catalog.ts";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../../src/shared/protocol/events.ts";
import type { ServerStatus } from "../../../../src/shared/protocol/status.ts";
import { openPanel, type PanelHost } from "../../../../src/ui/panel/panel.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { createRecordingContext } from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { settled } from "../../settled.ts";

const ESCAPE = "\u001b";
const ENTER = "\r";
const DOWN = "\u001b[B";

interface Opened {
  asked: unknown[][];
  /** The lines of the screen as one text; empty once the panel is closed. */
  screen: () => string;
  press: (...keys: string[]) => Promise<void>;
  /** Tells an event of the worker, or the session's end. */
  tell: (event: Partial<WorkerEvent> | undefined) => void;
  servers: ServerStatus[];
  setCatalog: (catalog: Catalog) => void;
  closed: Promise<void>;
  listeners: () => number;
}

type Answers = Record<string, (params: never) => unknown>;

async function open(answers: Answers = {}): Promise<Opened> {
  const asked: unknown[][] = [];
  const servers = [makeStatus("git"), makeStatus("fs", { state: "failed" })];
  let catalog = makeCatalog([]);
  const listeners = new Set<Parameters<PanelHost["onChange"]>[0]>();
  const all: Answers = { status: () => makeReport({ files: ["/mcp.json"] }), ...answers };
  const host: PanelHost = {
    ask: (async (method: string, params: never) => {
      asked.push([method, params]);
      const answer = all[method];
      if (!answer) throw new Error(`${method} was asked`);
      return answer(params);
    }) as PanelHost["ask"],
    askConsents: async () => void asked.push(["askConsents"]),
    signIn: async (server) => void asked.push(["signIn", server]),
    catalog: () => catalog,
    servers: () => servers,
    declared: () => [],
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const { ctx, screens } = createRecordingContext({ mode: "tui" });
  const closed = openPanel(ctx, host);
  await settled();
  return {
    asked,
    screen: () => (screens[0]?.render(80) ?? []).map((line) => line.trimEnd()).join("\n"),
    press: async (...keys) => {
      for (const key of keys) screens[0]?.handleInput(key);
      await settled();
    },
    tell: (event) => {
      for (const listener of [...listeners]) listener(event as WorkerEvent | undefined);
    },
    servers,
    setCatalog: (next) => {
      catalog = next;
    },
    closed,
    listeners: () => listeners.size,
  };
}

describe("an action", () => {
  test("it is asked of the worker, and the panel says what came of it until the next key", async () => {
    const answer = Promise.withResolvers<undefined>();
    const at = await open({ reconnect: () => answer.promise });
    await at.press(ENTER, ENTER);
    expect(at.screen()).toContain("Connecting git…");
    answer.resolve(undefined);
    await settled();
    expect(at.screen()).toContain("git is connected.");
    await at.press(DOWN);
    expect(at.screen()).not.toContain("git is connected.");
    expect(at.asked.at(-1)).toEqual(["reconnect", { server: "git" }]);
  });

  test("it fails -> the error with its remedy; the panel stays", async () => {
    const at = await open({
      reconnect: () => {
        throw new ThreadsError("spawn_failed", "git: no such program.", { remedy: "Install it." });
      },
    });
    await at.press(ENTER, ENTER);
    expect(at.screen()).toContain("git: no such program. Install it.");
    expect(at.screen()).not.toContain("Connecting");
  });

  test("disable -> only after a yes, in the file that the worker chooses", async () => {
    const at = await open({ setEnabled: () => ({ file: "/mcp.json", but: "It waits." }) });
    await at.press(ENTER, DOWN, ENTER);
    expect(at.screen()).toContain("Disable git?");
    expect(at.asked.map(([method]) => method)).toEqual(["status"]);
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
      /\? site +asks consent[\s\S]*✗ shady +refused +you refused it[\s\S]*! mcp\.json:3 wrong/,
    );
  });

  test("the server of the open view goes with an edit -> back to the list", async () => {
    const at = await open();
    await at.press(DOWN, ENTER);
    expect(at.screen()).toContain(" fs  ✗ failed");
    at.servers.pop();
    at.tell({ type: "planned", ...makeReport() });
    expect(at.screen()).toContain("fs is no longer configured.");
  });

  test("the tokens of declared tools are counted, of a new catalog again", async () => {
    const at = await open();
    const tool = (name: string) => ({ tool: name, description: "word ".repeat(50), direct: true });
    at.setCatalog(makeCatalog([{ name: "git", tools: [tool("a")] }]));
    at.tell({ type: "catalog" });
    await settled();
    const cost = (): number => Number(/● git\s+connected\s+stdio\s+\d+\s+(\d+)/.exec(at.screen())?.[1]);
    const one = cost();
    expect(one).toBeGreaterThan(50);
    at.setCatalog(makeCatalog([{ name: "git", tools: [tool("a"), tool("b")] }]));
    at.tell({ type: "catalog" });
    await settled();
    expect(cost()).toBe(2 * one);
  });
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

  test("the session ends while an action is under way -> the panel closes, and its late answer does nothing", async () => {
    const answer = Promise.withResolvers<undefined>();
    const at = await open({ reconnect: () => answer.promise });
    await at.press(ENTER, ENTER);
    at.tell(undefined);
    await at.closed;
    answer.resolve(undefined);
    await settled();
    expect(at.listeners()).toBe(0);
  });
});
