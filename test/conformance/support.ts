/**
 * Owns: runs scenarios of the conformance suite against the packed connection worker, and tells what failed. The suite is
 * one process for each version (suite.mjs), and the client that it tests runs in the process of the tests (driver.ts).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { enableCompileCache } from "node:module";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, inject, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { type Asked, drive } from "./driver.ts";
import { ALL, EXPECTED_FAILURES, LEFT_OUT, RUN, SUITES } from "./scenarios.ts";

type SuiteName = keyof typeof SUITES;

const root = join(import.meta.dirname, "..", "..");
const cliOf = (suite: SuiteName): string =>
  join(root, "node_modules", SUITES[suite].folder, "dist", "index.js");

/** The suite passes the command through a shell. */
const COMMAND = `"${process.execPath}" "${join(import.meta.dirname, "client.mjs")}"`;

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

interface Ended {
  code: number;
  printed: string;
}

/** Plays the client for each connection of client.mjs. Resolves with the port. */
async function playClients(): Promise<number> {
  // As in Pi, the thread of a scenario finds what Node compiled for an earlier one.
  enableCompileCache(join(inject("piCaches"), "workers"));
  const answer = async (socket: Socket): Promise<void> => {
    const [line] = (await once(createInterface(socket), "line")) as [string];
    const said: string[] = [];
    const code = await drive(JSON.parse(line) as Asked, (text) => said.push(`${text}\n`));
    socket.end(JSON.stringify({ code, said: said.join("") }));
  };
  const server = createServer((socket) => void answer(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanup(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function startSuite(suite: SuiteName): Promise<ChildProcess> {
  // A real browser must never start. The client of each scenario is a program of its own.
  const env = {
    ...process.env,
    BROWSER: "none",
    NODE_OPTIONS: "",
    NODE_COMPILE_CACHE: COMPILED,
    CONFORMANCE_CLIENT: String(await playClients()),
  };
  const child = fork(join(import.meta.dirname, "suite.mjs"), [cliOf(suite)], { env, execArgv: [] });
  onCleanup(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return child;
}

const running = new Map<SuiteName, Promise<ChildProcess>>();

/** Runs the command line of the suite. The process of the suite ends with the file. */
async function run(suite: SuiteName, args: readonly string[]): Promise<Ended> {
  let started = running.get(suite);
  if (!started) {
    started = forWholeFile(async () => {
      onCleanup(() => running.delete(suite));
      return startSuite(suite);
    });
    running.set(suite, started);
  }
  const child = await started;
  child.send({ args });
  const ended = new AbortController();
  try {
    const exit = once(child, "exit", { signal: ended.signal }).then(([code]) => {
      throw new Error(`the suite ended with ${code}`);
    });
    const message = once(child, "message", { signal: ended.signal }).then(([answer]) => answer as Ended);
    return await Promise.race([message, exit]);
  } finally {
    ended.abort();
  }
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
  const { printed } = await run(suite, ["list", "--client"]);
  return [...printed.matchAll(/^ +- (\S+)/gm)].map(([, name = ""]) => name);
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
