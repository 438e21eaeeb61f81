/** Owns: runs one scenario of the conformance suite against the packed connection worker, and tells what failed. */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ALL, EXPECTED_FAILURES, LEFT_OUT, RUN, SUITES } from "./scenarios.ts";

type SuiteName = keyof typeof SUITES;

const root = join(import.meta.dirname, "..", "..");
const cliOf = (suite: SuiteName): string =>
  join(root, "node_modules", SUITES[suite].folder, "dist", "index.js");

/** The suite passes the command through a shell. */
const COMMAND = `"${process.execPath}" "${join(import.meta.dirname, "driver.ts")}"`;

const COMPILED = join(root, "node_modules", ".cache", "conformance");

/** This limit ends hangs only. */
const SCENARIO_MS = 60_000;

interface Check {
  id: string;
  status: string;
  description: string;
  errorMessage?: string;
}

interface Outcome {
  passed: boolean;
  /** What failed, and what the client said. */
  report: string;
}

function run(
  suite: SuiteName,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  // A real browser must never start. Each scenario starts two programs, which compile the same files.
  const env = { ...process.env, BROWSER: "none", NODE_OPTIONS: "", NODE_COMPILE_CACHE: COMPILED };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [cliOf(suite), ...args], { env }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") reject(error);
      else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

async function readResults(folder: string): Promise<string> {
  // The name of a scenario has a slash, so its results may lie one folder deeper.
  const names = await readdir(folder, { recursive: true });
  const read = async (file: string): Promise<string> => {
    const path = names.find((name) => name.endsWith(file));
    return path === undefined ? "" : await readFile(join(folder, path), "utf8");
  };
  const checks = JSON.parse((await read("checks.json")) || "[]") as Check[];
  const failed = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING");
  const lines = failed.map(({ id, description, errorMessage }) => `${id}: ${errorMessage ?? description}`);
  return [...lines, await read("stderr.txt")].join("\n");
}

async function runScenario(suite: SuiteName, scenario: string): Promise<Outcome> {
  const results = await mkdtemp(join(tmpdir(), "pmt-conformance-results-"));
  const limits = ["--timeout", String(SCENARIO_MS), "--output-dir", results];
  const args = ["client", "--command", COMMAND, "--scenario", scenario, ...limits, ...SUITES[suite].args];
  const { code } = await run(suite, args);
  const report = await readResults(results);
  await rm(results, { recursive: true, force: true });
  return { passed: code === 0, report };
}

/** Scenarios that the suite lists, in lines such as `  - auth/iss-supported [2026-07-28]`. */
async function listed(suite: SuiteName): Promise<string[]> {
  const { stdout } = await run(suite, ["list", "--client"]);
  return [...stdout.matchAll(/^ +- (\S+)/gm)].map(([, name = ""]) => name);
}

/** Declares the tests of one version. */
export function proveConformance(suite: SuiteName): void {
  const { version, folder } = SUITES[suite];

  test(`conformance ${version}: the pinned version is installed`, async () => {
    const text = await readFile(join(root, "node_modules", folder, "package.json"), "utf8");
    expect((JSON.parse(text) as { version: string }).version).toBe(version);
  });

  test(`conformance ${version}: each scenario of the suite -> it runs, or a reason says why not`, async () => {
    const known = [...ALL[suite], ...Object.keys(LEFT_OUT[suite])];
    const names = await listed(suite);
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
    expect(ALL[suite].filter((name) => !names.includes(name))).toEqual([]);
    expect(Object.keys(EXPECTED_FAILURES[suite]).filter((name) => !ALL[suite].includes(name))).toEqual([]);
  });

  test.each(RUN[suite])(`conformance ${version}: %s`, async (scenario) => {
    const { passed, report } = await runScenario(suite, scenario);
    const expected = EXPECTED_FAILURES[suite][scenario] === undefined;
    const what = passed ? "it passes now: take it out of EXPECTED_FAILURES" : report;
    expect(passed, what).toBe(expected);
  });
}
