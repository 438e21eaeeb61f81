/** Owns: which servers are left out of a catalog that cannot be published whole, and after how many attempts. */
import { describe, expect, test } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../../src/shared/protocol/catalog.ts";
import type { PublishLimits } from "../../../../../workers/connection/catalog/cache-worker.ts";
import { publishApart } from "../../../../../workers/connection/catalog/publish-apart.ts";
import type { CatalogServer, PublishResult, PublishTask } from "../../../../../workers/shared/tasks.ts";

const server = (name: string, tools = 1): CatalogServer => ({
  name,
  project: false,
  toolsKnown: true,
  tools: Array.from({ length: tools }, (_, i) => ({ name: `${name}${i}`, direct: false })),
});
const RESULT: PublishResult = { checksum: 1, problems: [], notices: [], repairs: [], threadId: 1 };
const TIMES = { wholeMs: 1, aloneMs: 2, slowMs: 3, finishMs: 4 };

/** `fails`: whether a task fails, by the names of the servers that have tools in it. */
async function publishing(
  servers: CatalogServer[],
  fails: (names: string[], limits: PublishLimits) => boolean,
  signal = new AbortController().signal,
) {
  const tried: string[] = [];
  const publish = async (task: PublishTask, limits: PublishLimits): Promise<PublishResult | undefined> => {
    const names = task.servers.filter(({ tools }) => tools.length > 0).map(({ name }) => name);
    tried.push(`${names.join("+")} ${limits.limitMs}${task.stored ? " stored" : ""}`);
    return fails(names, limits) ? undefined : RESULT;
  };
  const stored = { path: "/x", checksum: 5 };
  const task = { servers, settings: DEFAULT_CATALOG_SETTINGS, stored };
  const { result, leftOut } = await publishApart(task, { publish, signal, times: TIMES });
  return { result, leftOut, tried };
}

const ALL = ["a", "b", "c"].map((name) => server(name));

describe("publishApart", () => {
  test("nothing fails -> tried once", async () => {
    expect(await publishing(ALL, () => false)).toEqual({
      result: RESULT,
      leftOut: [],
      tried: ["a+b+c 1 stored"],
    });
  });

  test("one server fails -> left out, the others are published", async () => {
    expect(await publishing(ALL, (names) => names.includes("b"))).toEqual({
      result: RESULT,
      leftOut: ["b"],
      tried: ["a+b+c 1 stored", " 2", "a 2", "b 2", "c 2", "a+c 3 stored"],
    });
  });

  test("each fails -> all left out", async () => {
    const { result, leftOut } = await publishing(ALL, (names) => names.length > 0);
    expect([result, leftOut]).toEqual([RESULT, ["a", "b", "c"]]);
  });

  test("a catalog without servers fails, too -> no server is to blame", async () => {
    expect(await publishing(ALL, () => true)).toEqual({
      result: undefined,
      leftOut: [],
      tried: ["a+b+c 1 stored", " 2"],
    });
  });

  test("only too slow together -> given more time", async () => {
    const { result, leftOut } = await publishing(
      ALL,
      (names, { limitMs }) => names.length > 1 && limitMs === 1,
    );
    expect([result, leftOut]).toEqual([RESULT, []]);
  });

  test("too much together -> the largest are left out until the rest can be published", async () => {
    const servers = [server("small", 1), server("big", 90), server("medium", 60), server("tiny", 1)];
    const sizes = new Map(servers.map(({ name, tools }) => [name, tools.length]));
    const { result, leftOut } = await publishing(
      servers,
      (names) => names.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0) > 100,
    );
    expect([result, leftOut]).toEqual([RESULT, ["big"]]);
  });

  test("nobody waits any longer -> no further attempt", async () => {
    const controller = new AbortController();
    const { result, tried } = await publishing(
      ALL,
      (names) => {
        if (names.includes("a")) controller.abort();
        return true;
      },
      controller.signal,
    );
    expect([result, tried]).toEqual([undefined, ["a+b+c 1 stored"]]);
  });
});
