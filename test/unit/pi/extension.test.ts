import { spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import type { Pi, PiCommandContext, PiContext } from "../../../src/pi/api.ts";
import {
  becomeOnlySession,
  claim,
  configFileOf,
  flagOnCommandLine,
  guardHandlers,
  isForProgram,
  leaveOnlySession,
  notify,
  registerFlag,
} from "../../../src/pi/extension.ts";
import { createRecordingContext } from "../recording-context.ts";
import { createRecordingPi } from "../recording-pi.ts";

test("claim: the first copy -> becomes the owner", () => {
  expect(claim(createRecordingPi(), "/a/index.js")).toBeUndefined();
});

test("claim: later copies on the same bus -> get the first copy's location", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
  expect(claim(pi, "/c/index.js")).toBe("/a/index.js");
});

test("claim: a copy that is loaded again on the same bus -> becomes the owner in place of its older instance", () => {
  const pi = createRecordingPi();
  claim(pi, "/a/index.js");
  expect(claim(pi, "/a/index.js")).toBeUndefined();
  expect(claim(pi, "/b/index.js")).toBe("/a/index.js");
});

test("claim: a copy on another bus -> becomes the owner there", () => {
  claim(createRecordingPi(), "/a/index.js");
  expect(claim(createRecordingPi(), "/b/index.js")).toBeUndefined();
});

it.each<[string[], string | undefined]>([
  [[], undefined],
  [["-p", "go"], undefined],
  [["--mcp-config", "a.json", "-p"], "a.json"],
  [["--mcp-config=a.json"], "a.json"],
  [["--mcp-config=a=b.json"], "a=b.json"],
  [["--mcp-config", "a.json", "--mcp-config=b.json"], "b.json"],
  [["--mcp-config"], undefined],
  [["--mcp-config", "-p"], undefined],
  [["--mcp-config", "@file"], undefined],
  [["--mcp-configs", "a.json"], undefined],
])("%j -> %s", (argv, expected) => {
  expect(flagOnCommandLine("mcp-config", argv)).toBe(expected);
});

it.each<[string, string[], boolean]>([
  ["pi", [], false],
  ["pi", ["-p", "mcp-config"], false],
  ["pi", ["--mcp-configs", "a.json"], false],
  ["pi-rpc", [], false],
  ["pi", ["--mcp-config", "a.json"], true],
  ["pi", ["--mcp-config=a.json"], true],
  ["pi", ["--mcp-config"], true],
  ["pi", ["--help"], true],
  ["pi", ["-h"], true],
  // A program that embeds Pi gives the flag without a command line.
  ["node", [], true],
])("registerFlag in %s beside %j -> %s, since pi-mcp-adapter has the flag, too", (title, argv, expected) => {
  const registered: string[] = [];
  const before = { argv: process.argv, title: process.title };
  Object.assign(process, { argv: ["node", "pi", ...argv], title });
  onTestFinished(() => void Object.assign(process, before));
  const pi = { ...createRecordingPi(), registerFlag: (name: string) => void registered.push(name) };
  registerFlag(pi, "mcp-config", "A file");
  expect(registered).toEqual(expected ? ["mcp-config"] : []);
});

it.each<[string[], boolean]>([
  [["-p", "hello"], true],
  [["--model", "m", "--print", "hello"], true],
  [["--mode", "rpc"], true],
  [["hello"], false],
  [["--models", "m"], false],
])("isForProgram(%j) -> %s", (argv, expected) => {
  expect(isForProgram(argv)).toBe(expected);
});

it.each<[unknown, string | undefined]>([
  [undefined, undefined],
  ["", undefined],
  [true, undefined],
  ["a.json", resolve("/work/a.json")],
  ["/b/a.json", resolve("/b/a.json")],
  ["~/a.json", join(homedir(), "a.json")],
  ["~", homedir()],
  ["~a.json", resolve("/work/~a.json")],
])("configFileOf(%j) -> %s", (flag, expected) => {
  expect(configFileOf(flag, "/work")).toBe(expected);
});

const STALE = "This extension ctx is stale after session replacement or reload.";

/** A context as Pi gives it: each use throws once the session is over. */
function contextUntil(isOver: () => boolean): PiContext {
  return new Proxy({} as PiContext, {
    get: () => {
      if (isOver()) throw new Error(STALE);
      return true;
    },
  });
}

type Heard = (event: unknown, ctx: unknown) => unknown;

function guard(): { pi: Pi; heard: Map<string, Heard>; recorded: ReturnType<typeof createRecordingPi> } {
  const recorded = createRecordingPi();
  const heard = new Map<string, Heard>();
  const on = (event: string, handler: Heard) => {
    heard.set(event, handler);
    return () => undefined;
  };
  return { pi: guardHandlers(Object.assign(recorded, { on: on as Pi["on"] })), heard, recorded };
}

test("a session ends while a handler runs -> the handler ends quietly, at once or later", async () => {
  const { pi, heard, recorded } = guard();
  let over = false;
  const ctx = contextUntil(() => over);
  const later = Promise.withResolvers<void>();
  pi.on("input", async (_event, { ui }) => {
    await later.promise;
    ui.notify("x");
    return { action: "handled" };
  });
  pi.on("input", async (_event, given) => {
    await later.promise;
    return { action: given.hasUI ? "handled" : "continue" };
  });
  pi.on("session_tree", (_event, given) => {
    over = true;
    given.ui.notify("x");
  });
  pi.registerCommand("x", {
    handler: async (_args, given) => {
      await later.promise;
      given.isIdle();
    },
  });
  const running = [
    heard.get("input")?.({}, ctx),
    recorded.commands.get("x")?.handler("", ctx as PiCommandContext),
  ];
  expect(heard.get("session_tree")?.({}, ctx)).toBeUndefined();
  later.resolve();
  expect(await Promise.all(running)).toEqual([{ action: "handled" }, undefined]);
});

test("a handler that fails in a session that goes on -> its error reaches Pi, and its answer too", async () => {
  const { pi, heard } = guard();
  const ctx = contextUntil(() => false);
  pi.on("input", async () => {
    throw new Error("mine");
  });
  await expect(heard.get("input")?.({}, ctx)).rejects.toThrow("mine");
  pi.on("input", async () => ({ action: "handled" }));
  expect(await heard.get("input")?.({}, ctx)).toEqual({ action: "handled" });
  pi.on("session_tree", () => {
    throw new Error("mine");
  });
  expect(() => heard.get("session_tree")?.({}, ctx)).toThrow("mine");
});

test.each([
  ["plain words, on two lines", "a: b\nc", "a: b\nc"],
  ["an escape sequence in a name", "mcp.json: + \u001b[2J\u001b[1;31mdocs\u001b[0m", "mcp.json: + docs"],
  [
    "a link, a title, a bell",
    "\u001b]8;;http://x\u0007docs\u001b]8;;\u0007 \u001b]0;t\u0007!\u0007",
    "docs !",
  ],
  ["marks that change the direction of text", "\u202egnp.exe", "gnp.exe"],
])("%s", (_, message, shown) => {
  const { ctx, notices } = createRecordingContext();
  notify(ctx, message, "warning");
  expect(notices).toEqual([[shown, "warning"]]);
});

test("a notice of a session without a UI -> one line on stderr, but not into the terminal in which Pi draws for a person", async () => {
  const { ctx } = createRecordingContext({ hasUI: false });
  const written = vi.spyOn(console, "error").mockReturnValue();
  const stop = async () => undefined;
  onTestFinished(() => {
    written.mockRestore();
    leaveOnlySession(stop);
  });
  notify(ctx, "one\n two", "warning");
  becomeOnlySession(stop, createRecordingContext({ mode: "rpc" }).ctx);
  notify(ctx, "three", "warning");
  becomeOnlySession(stop, createRecordingContext({ mode: "tui" }).ctx);
  notify(ctx, "four", "warning");
  leaveOnlySession(stop);
  notify(ctx, "five", "warning");
  expect(written.mock.calls).toEqual([["one | two"], ["three"], ["five"]]);
});

test("nobody reads stderr any more -> a notice does not end Pi, whose answer still comes", async () => {
  const script = `
    import { notify } from ${JSON.stringify(new URL("../../../src/pi/extension.ts", import.meta.url).href)};
    process.stdin.once("data", () => {
      for (const text of ["one", "two"]) notify({ mode: "print", hasUI: false }, text, "warning");
      setImmediate(() => process.stdout.write("the answer", () => process.exit(0)));
    });`;
  const pi = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "pipe" });
  pi.stderr.destroy();
  await once(pi.stderr, "close");
  let printed = "";
  pi.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  pi.stdin.write("go");
  expect(await once(pi, "close")).toEqual([0, null]);
  expect(printed).toBe("the answer");
});

describe("info notices in Pi's terminal, which puts one in the place of the one before", () => {
  const texts = ({ notices }: ReturnType<typeof createRecordingContext>) => notices.map(([text]) => text);

  test("directly behind each other -> the later one has the text of the earlier too", () => {
    const recording = createRecordingContext({ mode: "tui", branch: [{}] });
    for (const text of ["one", "two", "three"]) notify(recording.ctx, text, "info");
    expect(texts(recording)).toEqual(["one", "one\n\ntwo", "one\n\ntwo\n\nthree"]);
  });

  test("a notice of the screens' file, then one of main's -> both are there, although each has this module for itself", async () => {
    const recording = createRecordingContext({ mode: "tui" });
    notify(recording.ctx, "fs is added.", "info");
    const again = new URL("../../../src/pi/extension.ts?again", import.meta.url).href;
    const other = (await import(again)) as { notify: typeof notify };
    expect(other.notify).not.toBe(notify);
    other.notify(recording.ctx, "mcp.json: + fs", "info");
    expect(recording.notices.at(-1)).toEqual(["fs is added.\n\nmcp.json: + fs", "info"]);
  });

  test("behind a warning, or behind a new entry of the transcript -> on its own", () => {
    const branch: unknown[] = [{}];
    const recording = createRecordingContext({ mode: "tui", branch });
    notify(recording.ctx, "one", "info");
    notify(recording.ctx, "wrong", "warning");
    notify(recording.ctx, "two", "info");
    branch.push({});
    notify(recording.ctx, "three", "info");
    expect(texts(recording)).toEqual(["one", "wrong", "two", "three"]);
  });

  test("too long together, of another session, or not in a terminal -> on its own", () => {
    const recording = createRecordingContext({ mode: "tui" });
    notify(recording.ctx, "x".repeat(19_999), "info");
    notify(recording.ctx, "two", "info");
    expect(texts(recording)[1]).toBe("two");
    const other = createRecordingContext({ mode: "tui" });
    notify(other.ctx, "three", "info");
    expect(texts(other)).toEqual(["three"]);
    const rpc = createRecordingContext();
    for (const text of ["one", "two"]) notify(rpc.ctx, text, "info");
    expect(texts(rpc)).toEqual(["one", "two"]);
  });
});
