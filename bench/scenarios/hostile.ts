/**
 * Owns: the effect of hostile servers and clones on Pi with each MCP client: for each attack and client "held" or the
 * harm.
 * Must not: contain the attacks; they are rows of test/hostile, which also say what this package must withstand.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureBare } from "../../test/hostile/support/baseline.ts";
import type { Row as Attack } from "../../test/hostile/support/row.ts";
import { attackClient, type CaseOutcome } from "../support/hostile-case.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants } from "../support/variants.ts";

const DEFAULT_RUNS = 1;

/** Label in the table -> name of the row. All attacks work against any client. */
const ATTACKS: readonly (readonly [string, string])[] = [
  ["tools/list of 60 MiB: empty objects", "a server that answers tools/list with 60 MiB of empty objects"],
  ["result of 60 MiB: empty objects", "a server that answers a call with 60 MiB of empty objects"],
  [
    "HTTP: the same list in 60 KB of gzip",
    "a server that answers tools/list with 60 MiB of empty objects in 60 KB of gzip",
  ],
  [
    "schema of 0.8 KB that refers to itself",
    "a server whose schema has 60 references to itself in allOf: the tools of other servers are found",
  ],
  [
    "schema whose pattern backtracks",
    "a server whose schema has a pattern that backtracks (words), and an argument that makes it backtrack",
  ],
  ["tool names that hold rules for the model", "a server with tool names that hold lines for the model"],
  ["100,000 tools", "a server with 100,000 tools: the list is cut, and the user is told"],
  ["instructions of 50 MB", "a server with instructions of 50 MB"],
  ["asks without end, never reads", "a server that asks without end and never reads an answer"],
  ["a line that never ends", "a server that writes garbage in a line that never ends"],
  ["stderr without end", "a server that writes to stderr without end"],
  [
    "HTTP: stream that ends with retry: 0",
    "a server that ends its stream at once with retry: 0: the client pauses before it asks again",
  ],
  [
    "HTTP: redirect to another origin",
    "a server that redirects with 307 to another origin: no token goes there",
  ],
  [
    "clone: node_modules/.bin/node",
    "a clone with node_modules/.bin/node and no trust: the user's own npx server runs nothing of the clone",
  ],
  [
    "clone: script-shell in .npmrc",
    "a clone with .npmrc with script-shell: the user's own npx server runs nothing of the clone",
  ],
  [
    "clone: .mcp.json with 8,000 entries",
    "a clone whose .mcp.json has 8,000 entries: the user's own servers work",
  ],
  [
    "clone: configuration files are pipes",
    "a clone in which each of .mcp.json, .pi/mcp.json, .env, .cursor/mcp.json, .vscode/mcp.json is a pipe without a writer",
  ],
];

/** The rows have their whole size, and families all of their rows, only if the variables are there when their files load. */
async function wholeRows(): Promise<readonly Attack[]> {
  process.env.HOSTILE_WHOLE = "1";
  process.env.ALL_ROWS = "1";
  return (await import("../../test/hostile/rows/groups.ts")).ROWS;
}

function attackOf(name: string, rows: readonly Attack[]): Attack {
  const found = rows.find((row) => row.name === name);
  if (found === undefined) throw new Error(`test/hostile has no row "${name}"`);
  return found;
}

function toRow(attack: string, client: string, outcomes: readonly CaseOutcome[]): Row {
  const harm = new Set(outcomes.flatMap((outcome) => outcome.harm));
  return {
    case: attack,
    metric: client,
    unit: "ms",
    values: outcomes.map(({ stallMs }) => stallMs).filter((stallMs) => stallMs !== undefined),
    note: harm.size === 0 ? "held" : [...harm].join("; "),
  };
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  // Bare Pi has no server that could attack it.
  const variants = (await loadVariants(options)).filter(({ id }) => id !== "none");
  const rows: Row[] = [];
  const attacks = await wholeRows();
  // The shared caches stand for a machine where Pi has run before, so that the figures contain no compilation.
  const caches = await mkdtemp(join(tmpdir(), "pmt-hostile-"));
  try {
    const bare = await measureBare(caches);
    for (const [label, name] of ATTACKS) {
      for (const variant of variants) {
        const outcomes: CaseOutcome[] = [];
        for (let count = 0; count < runs; count++)
          outcomes.push(await attackClient(attackOf(name, attacks), variant, { caches, bare }));
        const row = toRow(label, variant.label, outcomes);
        progress(`hostile: ${label}, ${variant.label}: ${row.note}`);
        rows.push(row);
      }
    }
  } finally {
    await rm(caches, { recursive: true, force: true });
  }
  return rows;
}

export const hostile: Scenario = {
  name: "hostile",
  description: "hostile servers and clones: main's longest stall, and whether Pi and its healthy server held",
  run,
};
