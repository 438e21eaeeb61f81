/**
 * Owns: what the panel of `/mcp` costs the main thread with 5,000 tools of one server: a key with the picture after it,
 * and the longest turn of the event loop while the panel opens, counts tokens and lists the tools.
 * Must not: need a terminal; Pi's own drawing is not measured.
 */
import { createMcpTool } from "../../src/tools/definition.ts";
import type { McpHost } from "../../src/ui/mcp-host.ts";
import { openPanel } from "../../src/ui/panel/panel.ts";
import { makeCatalog } from "../../test/unit/make-catalog.ts";
import { createRecordingContext } from "../../test/unit/recording-context.ts";
import { makeReport, makeStatus } from "../../test/unit/server-status.ts";
import { makeDetails } from "../../test/unit/ui/panel/support.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { percentile } from "../support/stats.ts";
import { syntheticTools } from "../support/synthetic-tools.ts";

const TOOLS = 5_000;
const WIDTH = 120;
const DEFAULT_RUNS = 5;
const TARGET_MS = 10;
const [DOWN, UP, PAGE_DOWN, ENTER, BACKSPACE] = ["\u001b[B", "\u001b[A", "\u001b[6~", "\r", "\u007f"];
const KEYS = [
  ...Array.from({ length: 400 }, () => DOWN),
  ...Array.from({ length: 200 }, () => PAGE_DOWN),
  ...Array.from({ length: 200 }, () => UP),
  ..."issues list",
  ...Array.from({ length: 11 }, () => BACKSPACE),
];

interface Sample {
  keysMs: number[];
  longestTurnMs: number;
}

/** Measures the turns of the event loop until it is told to stop; answers the longest, in milliseconds. */
function watchTurns(): () => number {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const look = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    return longest;
  };
}

async function measureOnce(catalog: ReturnType<typeof makeCatalog>, names: string[]): Promise<Sample> {
  const servers = [makeStatus("many", { toolCount: TOOLS })];
  const tools = {
    names,
    exposures: names.map(() => "search" as const),
    rules: names.map(() => -1),
    places: [],
  };
  const answers: Record<string, unknown> = {
    status: makeReport({ servers }),
    serverDetails: makeDetails({ tools }),
  };
  const host: McpHost = {
    ask: (async (method: string) => answers[method]) as McpHost["ask"],
    askConsents: async () => undefined,
    signIn: async () => undefined,
    catalog: () => catalog,
    servers: () => servers,
    search: async () => {
      throw new Error("nothing is searched");
    },
    makeTool: createMcpTool,
    declared: () => [],
    surroundings: () => ({ agentDir: "/agent", otherClients: [] }),
    onChange: () => () => undefined,
  };
  const { ctx, screens } = createRecordingContext({ mode: "tui" });
  const stopWatch = watchTurns();
  const closed = openPanel(ctx, host);
  const screen = () => {
    const [shown] = screens;
    if (!shown) throw new Error("the panel is not open");
    return shown;
  };
  const until = async (expected: RegExp): Promise<void> => {
    for (let looks = 0; !expected.test(screen().render(WIDTH).join("\n")); looks++) {
      if (looks > 2_000) throw new Error(`the panel never showed ${expected}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  await new Promise((resolve) => setImmediate(resolve));
  await until(/many .*k/);
  screen().handleInput(ENTER);
  await until(/Tools/);
  screen().handleInput(ENTER);
  await until(new RegExp(`All ${TOOLS.toLocaleString("en")} tools|All ${TOOLS} tools`));
  const longestTurnMs = stopWatch();
  const keysMs = KEYS.map((key) => {
    const from = performance.now();
    screen().handleInput(key);
    screen().render(WIDTH);
    return performance.now() - from;
  });
  while (screens.length > 0) screen().handleInput("\u001b");
  await closed;
  return { keysMs, longestTurnMs };
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const tools = syntheticTools(TOOLS, 1).map(({ name, description, inputSchema }) => ({
    tool: name,
    description: description ?? "",
    schema: inputSchema as Record<string, unknown>,
  }));
  const catalog = makeCatalog([{ name: "many", tools }]);
  const names = tools.map(({ tool }) => tool);
  const samples: Sample[] = [];
  for (let index = 0; index < runs; index++) {
    progress(`panel: run ${index + 1} of ${runs}`);
    samples.push(await measureOnce(catalog, names));
  }
  const row = (metric: string, pick: (sample: Sample) => number, target?: number): Row => ({
    case: `${TOOLS} tools`,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(target === undefined ? {} : { target }),
  });
  return [
    row("a key and its picture, p50", ({ keysMs }) => percentile(keysMs, 0.5)),
    row("a key and its picture, p99", ({ keysMs }) => percentile(keysMs, 0.99)),
    row("a key and its picture, longest", ({ keysMs }) => Math.max(...keysMs), TARGET_MS),
    row("longest turn while it opens, counts and lists", ({ longestTurnMs }) => longestTurnMs, TARGET_MS),
  ];
}

export const panel: Scenario = {
  name: "panel",
  description: "the panel of /mcp with 5,000 tools: a key press, and the longest turn while it opens",
  run,
};
