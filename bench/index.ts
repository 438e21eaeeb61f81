/**
 * Owns: `npm run bench -- [scenario ...]`: runs scenarios one after the other and prints their figures; `--help` has the
 * options.
 * Must not: decide by a timing; the exit code says only whether the benches ran.
 */
import { parseArgs } from "node:util";
import { cacheWrite } from "./scenarios/cache-write.ts";
import { call } from "./scenarios/call.ts";
import { connect } from "./scenarios/connect.ts";
import { firstCall } from "./scenarios/first-call.ts";
import { gateway } from "./scenarios/gateway.ts";
import { hostile } from "./scenarios/hostile.ts";
import { load } from "./scenarios/load.ts";
import { memory } from "./scenarios/memory.ts";
import { panel } from "./scenarios/panel.ts";
import { reload } from "./scenarios/reload.ts";
import { room } from "./scenarios/room.ts";
import { rpc } from "./scenarios/rpc.ts";
import { scale } from "./scenarios/scale.ts";
import { search } from "./scenarios/search.ts";
import { shared } from "./scenarios/shared.ts";
import { shortRun } from "./scenarios/short-run.ts";
import { signIn } from "./scenarios/sign-in.ts";
import { stall } from "./scenarios/stall.ts";
import { start } from "./scenarios/start.ts";
import { tokens } from "./scenarios/tokens.ts";
import { describeMachine, machineLine } from "./support/machine.ts";
import type { Row, Scenario, ScenarioOptions } from "./support/scenario.ts";
import { summarize } from "./support/stats.ts";
import { formatMisses, formatRows, missesTarget } from "./support/table.ts";
import { PEERS } from "./support/variants.ts";

/** The scenarios of `all`, in the order in which they run. */
const SCENARIOS: readonly Scenario[] = [
  search,
  rpc,
  call,
  cacheWrite,
  load,
  start,
  connect,
  firstCall,
  shortRun,
  signIn,
  reload,
  panel,
  stall,
  memory,
  tokens,
  scale,
  hostile,
];
/** Run only if they are named: `shared` takes more than all others together, `room` needs bubblewrap, `gateway` is of teams. */
const NAMED: readonly Scenario[] = [shared, room, gateway];
const ALL = "all";

const USAGE = `usage: npm run bench -- [scenario ...] [--runs N] [--vs ${PEERS.join(",")}] [--sessions N] [--small]
       [--json | --markdown]
scenarios (all but shared, room and gateway, if none or "all" is named):
${[...SCENARIOS, ...NAMED].map(({ name, description }) => `  ${name.padEnd(11)} ${description}`).join("\n")}
--vs: what to compare with, all by default, "" for nothing
  none     Pi without any MCP client
  builtin  Pi's own
  adapter  pi-mcp-adapter, fetched from npm on first use
--sessions: of shared and gateway, how many at most (8, 10); --small: of both, a short form for a trial
--markdown: the tables as bench/figures/ has them`;

class UsageError extends Error {}

interface Invocation {
  scenarios: readonly Scenario[];
  options: ScenarioOptions;
  format: "text" | "json" | "markdown";
}

function countOf(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const count = Number(value);
  if (Number.isInteger(count) && count > 0) return count;
  throw new UsageError(`--${option} takes a number from 1 up, not ${value}`);
}

function parseInvocation(args: string[]): Invocation | undefined {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      runs: { type: "string" },
      vs: { type: "string", default: PEERS.join(",") },
      sessions: { type: "string" },
      small: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      markdown: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const runs = countOf("runs", values.runs);
  if (values.json && values.markdown) throw new UsageError("--json and --markdown exclude each other");
  const named = positionals
    .filter((name) => name !== ALL)
    .map((name) => {
      const found = [...SCENARIOS, ...NAMED].find((scenario) => scenario.name === name);
      if (found === undefined) throw new UsageError(`there is no scenario ${name}`);
      return found;
    });
  const vs = values.vs.split(",").filter((name) => name !== "");
  const unknown = vs.filter((name) => !PEERS.some((peer) => peer === name));
  if (unknown.length > 0) throw new UsageError(`--vs does not know ${unknown.join(", ")}`);
  const progress = (message: string): void => void process.stderr.write(`${message}\n`);
  return {
    scenarios: named.length > 0 && !positionals.includes(ALL) ? named : SCENARIOS,
    options: { runs, vs, sessions: countOf("sessions", values.sessions), small: values.small, progress },
    format: values.json ? "json" : values.markdown ? "markdown" : "text",
  };
}

const toJson = (rows: readonly Row[]): unknown[] =>
  rows.map((row) => ({
    ...row,
    ...summarize(row.values),
    ...(row.target === undefined ? {} : { missed: missesTarget(row, rows) }),
  }));

interface Result {
  name: string;
  description: string;
  rows: Row[];
}

const toText = ({ name, description, rows }: Result): string =>
  `\n${name}: ${description}\n\n${formatRows(rows)}\n`;

function toMarkdown({ name, description, rows }: Result): string {
  const misses = formatMisses(rows);
  const verdict = rows.some(({ target }) => target !== undefined)
    ? `\n${misses === "" ? "Every target met." : `Missed:\n\n${misses}`}\n`
    : "";
  return `\n### ${name}\n\n${description}\n\n${formatRows(rows)}\n${verdict}`;
}

async function bench({ scenarios, options, format }: Invocation): Promise<void> {
  const machine = describeMachine();
  const results: Result[] = [];
  const heading = format === "markdown" ? "\n## Figures\n\n" : "";
  if (format !== "json") process.stdout.write(`${heading}${machineLine(machine)}\n`);
  for (const { name, description, run } of scenarios) {
    const result = { name, description, rows: await run(options) };
    results.push(result);
    if (format === "text") process.stdout.write(toText(result));
    if (format === "markdown") process.stdout.write(toMarkdown(result));
  }
  if (format !== "json") return;
  const output = { machine, scenarios: results.map((result) => ({ ...result, rows: toJson(result.rows) })) };
  process.stdout.write(`${JSON.stringify(output, null, 2)}\n`);
}

function invocationOrExit(): Invocation | undefined {
  try {
    const invocation = parseInvocation(process.argv.slice(2));
    if (invocation === undefined) process.stdout.write(`${USAGE}\n`);
    return invocation;
  } catch (error) {
    // The code of an error from parseArgs tells whether the command line is wrong.
    const isMistake =
      error instanceof UsageError || String((error as { code?: unknown }).code).startsWith("ERR_PARSE_ARGS");
    if (!isMistake) throw error;
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    process.exitCode = 2;
    return undefined;
  }
}

const invocation = invocationOrExit();
if (invocation !== undefined) await bench(invocation);
