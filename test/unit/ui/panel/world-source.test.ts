/** Owns: what the panel knows of the session, and when it reads it again. The session is a fake. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { WorkerEvent } from "../../../../src/shared/protocol/events.ts";
import { START, type State } from "../../../../src/ui/panel/model/model.ts";
import type { PanelHost } from "../../../../src/ui/panel/panel.ts";
import { createWorldSource } from "../../../../src/ui/panel/world-source.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { makeDetails } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const GIT: State = {
  ...START,
  views: [...START.views, { name: "tools", server: "git", list: listOf(START) }],
};

function listOf({ views: [first] }: State) {
  if (first.name !== "servers") throw new Error("the panel does not begin with the servers");
  return first.list;
}

function setup(status: () => unknown = () => makeReport({ files: ["/mcp.json"] })) {
  const asked: string[] = [];
  const host: PanelHost = {
    ask: (async (method: string) => {
      asked.push(method);
      return method === "status" ? status() : makeDetails();
    }) as PanelHost["ask"],
    askConsents: async () => undefined,
    signIn: async () => undefined,
    catalog: () => makeCatalog([{ name: "git", tools: [{ tool: "read", direct: true }] }]),
    servers: () => [makeStatus("git")],
    search: async () => ({ hits: [], likely: 0, tookMs: 0 }),
    declared: () => [],
    onChange: () => () => undefined,
  };
  const told = { tools: 0, changes: 0, errors: [] as unknown[] };
  const source = createWorldSource({
    host,
    state: () => GIT,
    chosen: () => new Map([["git\0read", "hidden"]]),
    onTools: () => told.tools++,
    onChange: () => told.changes++,
    onFailed: (error) => told.errors.push(error),
  });
  return { source, asked, told, turn: () => vi.advanceTimersByTimeAsync(20) };
}

test("its start -> the session's report, the costs of declared tools, and what the person has chosen", async () => {
  const { source, asked, turn } = setup();
  source.start();
  await turn();
  const world = source.now();
  expect(asked).toEqual(["status"]);
  expect(world).toMatchObject({ files: ["/mcp.json"], problems: [] });
  expect(world.costs.get("git")).toMatchObject({ declaredTools: 1, isWhole: true });
  expect(world.chosen.get("git\0read")).toBe("hidden");
  source.stop();
});

test("the report cannot be had -> the error is told", async () => {
  const { source, told, turn } = setup(() => {
    throw new Error("no worker");
  });
  source.start();
  await turn();
  expect(told.errors).toEqual([new Error("no worker")]);
  source.stop();
});

test("a plan -> its report takes the place of the one before", () => {
  const { source } = setup();
  source.take({ type: "planned", ...makeReport({ files: ["/new.json"] }) } as WorkerEvent);
  expect(source.now().files).toEqual(["/new.json"]);
  source.stop();
});

test("thirty changes at once -> what is shown is read once; its tools are told", async () => {
  const { source, asked, told, turn } = setup();
  source.follow(GIT);
  await turn();
  for (let i = 0; i < 30; i++) source.readAgain();
  await vi.advanceTimersByTimeAsync(149);
  expect(asked).toEqual(["serverDetails"]);
  const before = told.tools;
  await vi.advanceTimersByTimeAsync(20);
  expect(asked).toEqual(["serverDetails", "serverDetails"]);
  expect([told.tools - before, source.now().tools.get("git")?.rows.length]).toEqual([1, 3]);
  source.stop();
});

test("it is stopped -> nothing is read again and nothing is told", async () => {
  const { source, asked, told } = setup();
  source.start();
  source.readAgain();
  source.stop();
  told.changes = 0;
  await vi.advanceTimersByTimeAsync(1_000);
  expect([asked, told.tools]).toEqual([["status"], 0]);
});
