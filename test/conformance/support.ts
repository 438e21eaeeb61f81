/**
 * Owns: runs scenarios of the conformance suite against the packed connection worker, and tells what failed. The suite is
 * one process (suite.mjs), and the client that it tests is one worker of the process of the tests (driver.ts).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { enableCompileCache } from "node:module";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, inject, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { type Over, startClient } from "./driver.ts";
import { ALL, EXPECTED_FAILURES, LEFT_OUT, OVER_STDIO, RUN, SUITES } from "./scenarios.ts";

type SuiteName = keyof typeof SUITES;

const root = join(import.meta.dirname, "..", "..");
const cliOf = (suite: SuiteName): string =>
  join(root, "node_modules", SUITES[suite].folder, "dist", "index.js");

/** The suite passes the command through a shell. */
const COMMAND = `bash "${join(import.meta.dirname, "client.sh")}"`;

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

interface Running {
  child: ChildProcess;
  /** What the client has said since the last call, and forgets it. */
  said(): string;
}

/** The four lines of client.sh. */
async function readAsked(socket: Socket) {
  const lines: string[] = [];
  for await (const line of createInterface(socket)) {
    if (lines.push(line) === 4) break;
  }
  const [url = "", scenario = "", revision = "", context = ""] = lines;
  return { url, scenario, revision, context };
}

/** How the client of the scenario that runs reaches the server. */
let over: Over = "http";

/** Plays the client for each connection of client.sh. */
async function playClients(): Promise<{ port: number; said: Running["said"] }> {
  // As in Pi, the thread finds what Node compiled for an earlier one.
  enableCompileCache(join(inject("piCaches"), "workers"));
  // Scenarios of servers have no client.
  let client: ReturnType<typeof startClient> | undefined;
  onCleanup(async () => (await client)?.close());
  let lines: string[] = [];
  const answer = async (socket: Socket): Promise<void> => {
    client ??= startClient();
    const code = await (await client).drive({ ...(await readAsked(socket)), over }, (line) =>
      lines.push(line),
    );
    socket.end(`${code}\n`);
  };
  const server = createServer((socket) => void answer(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanup(() => server.close());
  const said = (): string => {
    const text = lines.join("\n");
    lines = [];
    return text;
  };
  return { port: (server.address() as AddressInfo).port, said };
}

async function startSuite(): Promise<Running> {
  const { port, said } = await playClients();
  // A real browser must never start. The client of each scenario is a program of its own.
  const env = {
    ...process.env,
    BROWSER: "none",
    NODE_OPTIONS: "",
    NODE_COMPILE_CACHE: COMPILED,
    CONFORMANCE_CLIENT: String(port),
  };
  const child = fork(join(import.meta.dirname, "suite.mjs"), { env, execArgv: [] });
  onCleanup(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return { child, said };
}

let running: Promise<Running> | undefined;

/** Runs the command line of the suite. The processes end with the file. */
async function run(suite: SuiteName, args: readonly string[]): Promise<Ended & Pick<Running, "said">> {
  running ??= forWholeFile(async () => {
    onCleanup(() => {
      running = undefined;
    });
    return startSuite();
  });
  const { child, said } = await running;
  child.send({ suite: cliOf(suite), args });
  const ended = new AbortController();
  try {
    const { signal } = ended;
    const exit = once(child, "exit", { signal }).then(([code]) => {
      throw new Error(`the suite ended with ${code}`);
    });
    const message = once(child, "message", { signal }).then(([answer]) => answer as Ended);
    return { ...(await Promise.race([message, exit])), said };
  } finally {
    ended.abort();
  }
}

/** What the suite says of a scenario. `proven`: how many of its checks the client has met. */
async function readResults(folder: string): Promise<{ report: string; proven: number }> {
  // The name of a scenario has a slash, so its results may lie one folder deeper.
  const names = await readdir(folder, { recursive: true });
  const read = async (file: string): Promise<string> => {
    const path = names.find((name) => name.endsWith(file));
    return path === undefined ? "" : await readFile(join(folder, path), "utf8");
  };
  const checks = JSON.parse((await read("checks.json")) || "[]") as Check[];
  const failed = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING");
  const lines = failed.map(({ id, description, errorMessage }) => `${id}: ${errorMessage ?? description}`);
  const proven = checks.filter(({ status }) => status === "SUCCESS").length;
  return { report: [...lines, await read("stderr.txt")].join("\n"), proven };
}

async function runScenario(suite: SuiteName, scenario: string, way: Over = "http"): Promise<Outcome> {
  over = way;
  const results = await makeTempFolder("pmt-conformance-results");
  const limits = ["--timeout", String(SCENARIO_MS), "--output-dir", results];
  const args = ["client", "--command", COMMAND, "--scenario", scenario, ...limits, ...SUITES[suite].args];
  const { code, said } = await run(suite, args);
  const { report, proven } = await readResults(results);
  await removeFolder(results);
  // A scenario without a check would pass whatever the client does.
  const empty = proven === 0 ? ["the suite has checked nothing"] : [];
  return { passed: code === 0 && proven > 0, report: [...empty, report, said()].join("\n") };
}

/** Runs a scenario against the server at the address. */
export async function runServerScenario(suite: SuiteName, scenario: string, url: string): Promise<Outcome> {
  const results = await makeTempFolder("pmt-conformance-results");
  const args = ["server", "--url", url, "--scenario", scenario, "--output-dir", results];
  const { code } = await run(suite, [...args, ...SUITES[suite].args]);
  const { report, proven } = await readResults(results);
  await removeFolder(results);
  const failed = report.trim() !== "";
  return { passed: code === 0 && proven > 0 && !failed, report };
}

/** Server scenarios of a revision that are no extensions, as `conformance list --server` prints them. */
export async function serverScenarios(suite: SuiteName, revision: string): Promise<string[]> {
  const { printed } = await run(suite, ["list", "--server"]);
  const lines = [...printed.matchAll(/^ +- (\S+) \[([^\]]*)\]/gm)];
  return lines.flatMap(([, name = "", revisions = ""]) => (revisions.includes(revision) ? [name] : []));
}

/** Scenarios that the suite lists, in lines such as `  - auth/iss-supported [2026-07-28]`. */
async function listed(suite: SuiteName): Promise<string[]> {
  const { printed } = await run(suite, ["list", "--client"]);
  return [...printed.matchAll(/^ +- (\S+)/gm)].map(([, name = ""]) => name);
}

/** Declares the tests of one version and revision of servers over stdio. The suite has none: theirs speak HTTP to bridge.mjs. */
export function proveOverStdio(suite: SuiteName, way: Over): void {
  describe(`conformance ${SUITES[suite].version}, ${suite}, over ${way}`, () => {
    test.each(OVER_STDIO[suite])("%s", async (scenario) => {
      const { passed, report } = await runScenario(suite, scenario, way);
      expect(passed, report).toBe(true);
    });
  });
}

/** Declares the tests of one version and revision. */
export function proveConformance(suite: SuiteName): void {
  const { version, folder } = SUITES[suite];

  describe(`conformance ${version}, ${suite}`, () => {
    test("the pinned version is installed", async () => {
      const text = await readFile(join(root, "node_modules", folder, "package.json"), "utf8");
      expect((JSON.parse(text) as { version: string }).version).toBe(version);
    });

    test("each scenario of the suite -> it runs, or a reason says why not", async () => {
      const known = [...ALL[suite], ...Object.keys(LEFT_OUT[suite])];
      const names = await listed(suite);
      expect(names.filter((name) => !known.includes(name))).toEqual([]);
      expect(ALL[suite].filter((name) => !names.includes(name))).toEqual([]);
      expect(Object.keys(EXPECTED_FAILURES[suite]).filter((name) => !ALL[suite].includes(name))).toEqual([]);
    });

    test.each(RUN[suite])("%s", async (scenario) => {
      const { passed, report } = await runScenario(suite, scenario);
      const expected = EXPECTED_FAILURES[suite][scenario] === undefined;
      const what = passed ? "it passes now: take it out of EXPECTED_FAILURES" : report;
      expect(passed, what).toBe(expected);
    });
  });
}
