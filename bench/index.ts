/**
 * Owns: `npm run bench -- [scenario ...] [--runs N] [--vs none,...] [--json]`: runs scenarios one after the
 * other and prints what they measured.
 * Must not: decide by a timing; the exit code tells only whether the benches ran.
 */
import { parseArgs } from "node:util";
import { rpc } from "./scenarios/rpc.ts";
import { search } from "./scenarios/search.ts";
import { start } from "./scenarios/start.ts";
import { describeMachine, machineLine } from "./support/machine.ts";
import type { Row, Scenario, ScenarioOptions } from "./support/scenario.ts";
import { summarize } from "./support/stats.ts";
import { formatRows, missesTarget } from "./support/table.ts";

const SCENARIOS: readonly Scenario[] = [search, rpc, start];

const USAGE = `usage: npm run bench -- [scenario ...] [--runs N] [--vs none] [--json]
scenarios (all, if none is named):
${SCENARIOS.map(({ name, description }) => `  ${name.padEnd(8)} ${description}`).join("\n")}
--vs: what to compare with; none: Pi without any MCP client`;

class UsageError extends Error {}

interface Invocation {
  scenarios: readonly Scenario[];
  options: ScenarioOptions;
  json: boolean;
}

function parseInvocation(args: string[]): Invocation | undefined {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      runs: { type: "string" },
      vs: { type: "string", default: "none" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const runs = values.runs === undefined ? undefined : Number(values.runs);
  if (runs !== undefined && !(Number.isInteger(runs) && runs > 0)) {
    throw new UsageError(`--runs takes a number from 1 up, not ${values.runs}`);
  }
  const scenarios = positionals.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (found === undefined) throw new UsageError(`there is no scenario ${name}`);
    return found;
  });
  const vs = values.vs.split(",").filter((name) => name !== "");
  const unknown = vs.filter((name) => name !== "none");
  if (unknown.length > 0) throw new UsageError(`--vs does not know ${unknown.join(", ")}`);
  const progress = (message: string): void => void process.stderr.write(`${message}\n`);
  return {
    scenarios: scenarios.length > 0 ? scenarios : SCENARIOS,
    options: { runs, vs, progress },
    json: values.json,
  };
}

const toJson = (rows: readonly Row[]): unknown[] =>
  rows.map((row) => ({
    ...row,
    ...summarize(row.values),
    ...(row.target === undefined ? {} : { missed: missesTarget(row, rows) }),
  }));

async function bench({ scenarios, options, json }: Invocation): Promise<void> {
  const machine = describeMachine();
  const results: { name: string; description: string; rows: Row[] }[] = [];
  if (!json) process.stdout.write(`${machineLine(machine)}\n`);
  for (const { name, description, run } of scenarios) {
    const rows = await run(options);
    results.push({ name, description, rows });
    if (!json) process.stdout.write(`\n${name}: ${description}\n\n${formatRows(rows)}\n`);
  }
  if (!json) return;
  const output = { machine, scenarios: results.map((result) => ({ ...result, rows: toJson(result.rows) })) };
  process.stdout.write(`${JSON.stringify(output, null, 2)}\n`);
}

function invocationOrExit(): Invocation | undefined {
  try {
    const invocation = parseInvocation(process.argv.slice(2));
    if (invocation === undefined) process.stdout.write(`${USAGE}\n`);
    return invocation;
  } catch (error) {
    // parseArgs marks what a person mistyped by its code.
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
