/**
 * Owns: `npm start`: the packed package in the real Pi with two real MCP servers and a scripted model, from the search
 * for a tool to its result, and the cost for Pi's main thread.
 * Must not: need a key, or a network beyond the first fetch of Pi.
 * Called by: people who want to see the extension work. If it does not work, the exit code is 1 and the reasons follow.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ModelRequest, type ModelTurn, startModel } from "../test/support/model.ts";
import { ensurePi, PI_VERSION } from "../test/support/pi-host.ts";
import { createHome, type PiHome, type PrintResult, startPrint } from "../test/support/pi-run.ts";
import { packedExtension } from "./support/build.ts";
import { describeMachine, machineLine } from "./support/machine.ts";
import { type ProbeReport, readProbeReport } from "./support/probe-report.ts";
import { formatNumber } from "./support/stats.ts";
import { createStyle } from "./support/style.ts";
import { type Step, stepsOf, threadLines } from "./support/transcript.ts";
import { EMPTY_EXTENSION, withProbe } from "./support/with-probe.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROMPT = "Add 19 and 23 with a tool, then list the project folder.";
const ANSWER = "19 + 23 is 42, and the project folder holds README.md and src.";
const SUM_TOOL = "everything__get-sum";
const LIST_TOOL = "filesystem__list_directory";
const PROJECT_FILES = { "README.md": "# A project\n", "src/main.ts": "export {};\n" };

const COST_CHARS = 50;
const FIGURE_CHARS = 9;

const style = createStyle(process.stdout);
const print = (line = ""): void => void process.stdout.write(`${line}\n`);

/** The entry of a server from npm, which runs on the Node of this process. */
const server = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(ROOT, "node_modules", "@modelcontextprotocol", `server-${name}`, "dist", "index.js"), ...args],
});

/** Calls the tool only if it was declared, as a real model does; otherwise the turn says that the tool is missing. */
const callIfDeclared =
  (name: string, args: unknown) =>
  (request: ModelRequest): ModelTurn =>
    request.toolNames.includes(name)
      ? { toolCalls: [{ name, args }] }
      : { text: `${name} was not declared to the model` };

const search = (query: string) => callIfDeclared("ToolSearch", { query });

interface Measured {
  requests: readonly ModelRequest[];
  result: PrintResult;
  probe: ProbeReport;
}

/** Runs Pi once with `subject` between the halves of the probe. */
async function run(
  home: PiHome,
  subject: string,
  script: Parameters<typeof startModel>[0],
): Promise<Measured> {
  const reportFile = join(home.dir, "report.json");
  const model = await startModel(script);
  try {
    const extensions = withProbe(subject);
    const pi = await startPrint({
      home,
      model,
      extensions,
      prompt: PROMPT,
      env: { BENCH_REPORT: reportFile },
    });
    const stop = (): void => pi.kill("SIGKILL");
    process.once("SIGINT", stop).once("SIGTERM", stop);
    const result = await pi.done;
    process.off("SIGINT", stop).off("SIGTERM", stop);
    if (result.code !== 0) {
      const how = result.timedOut ? "did not end in time" : `ended with ${result.signal ?? result.code}`;
      throw new Error(`Pi ${how}.\n${result.stderr}`);
    }
    return { requests: model.requests, result, probe: await readProbeReport(reportFile) };
  } finally {
    await model.close();
  }
}

/** Runs Pi without any MCP client and with the same number of turns; its own `read` tool replaces the MCP calls. */
function runBare(home: PiHome): Promise<Measured> {
  const read = (path: string) => callIfDeclared("read", { path });
  const reads = [read("README.md"), read("src/main.ts"), read("README.md"), read("src/main.ts")];
  return run(home, EMPTY_EXTENSION, [...reads, { text: ANSWER }]);
}

async function runOurs(home: PiHome): Promise<Measured> {
  const { entry } = await packedExtension();
  return run(home, entry, [
    search("add two numbers sum"),
    callIfDeclared(SUM_TOOL, { a: 19, b: 23 }),
    search(`select:${LIST_TOOL}`),
    callIfDeclared(LIST_TOOL, { path: home.cwd }),
    { text: ANSWER },
  ]);
}

function printStep(step: Step, index: number): void {
  print(`${style.bold(`${index + 1}. ${step.tool}`)} ${JSON.stringify(step.args)}`);
  for (const line of step.result.split("\n")) print(`   ${style.dim(line)}`);
  for (const name of step.declared) print(`   + ${name} is declared to the model from now on`);
}

function printThreads(log: string, { requests }: Measured): void {
  const threads = threadLines(log);
  if (!threads.has("main")) {
    const [first, last] = [requests[0]?.toolNames ?? [], requests.at(-1)?.toolNames ?? []];
    const loaded = last.filter((name) => !first.includes(name)).length;
    threads.set("main", [`declared ToolSearch, scored the searches, activated ${loaded} tools`]);
  }
  for (const [thread, lines] of [...threads].sort()) {
    print(style.bold(thread));
    for (const line of lines) print(`   ${style.dim(line)}`);
  }
}

function printCost(ours: ProbeReport, bare: ProbeReport): void {
  const line = (what: string, pick: (probe: ProbeReport) => number): void => {
    const [mine, other] = [pick(ours), pick(bare)].map((value) =>
      `${formatNumber(value)} ms`.padStart(FIGURE_CHARS),
    );
    print(`   ${what.padEnd(COST_CHARS)}${mine}   ${other}`);
  };
  print(`   ${"".padEnd(COST_CHARS)}${"ours".padStart(FIGURE_CHARS)}   ${"bare Pi".padStart(FIGURE_CHARS)}`);
  line("longest stall, session (servers, search, calls)", (probe) => probe.longestStallSessionMs);
  line("most CPU time in one stall, session", (probe) => probe.mostCpuInStallMs);
  line("longest stall, while Pi loads extensions", (probe) => probe.longestStallLoadingMs);
  line("CPU time of the main thread, all in all", (probe) => probe.cpuMs);
  const note = "a stall also counts the time in which starting servers had the core; the CPU time does not";
  print(style.dim(`   ${note}`));
}

/** The reasons for exit code 1: each expectation of the demo that does not hold. */
function failures({ requests, result }: Measured, steps: readonly Step[], log: string): string[] {
  const expectations: [boolean, string][] = [
    [steps.length === 4, `the model made ${steps.length} calls, not 4`],
    [steps[0]?.declared.includes(SUM_TOOL) ?? false, `the first search did not load ${SUM_TOOL}`],
    [steps[1]?.result.includes("42") ?? false, `${SUM_TOOL} did not answer 42`],
    [steps[2]?.declared.includes(LIST_TOOL) ?? false, `the second search did not load ${LIST_TOOL}`],
    [steps[3]?.result.includes("README.md") ?? false, `${LIST_TOOL} did not list README.md`],
    [result.stdout.trim() === ANSWER, `Pi printed "${result.stdout.trim()}" and not the model's answer`],
    [result.stderr === "", `Pi wrote to stderr: ${result.stderr}`],
    [
      !(requests[0]?.toolNames ?? []).some((name) => name.includes("__")),
      "MCP tools were declared before the model searched for them",
    ],
    [threadLines(log).size > 0, "mcp-threads.log names no worker thread"],
  ];
  return expectations.filter(([holds]) => !holds).map(([, reason]) => reason);
}

async function demo(): Promise<string[]> {
  print(style.dim(`Pi ${PI_VERSION} (fetched once, about 20 MB) ...`));
  await ensurePi();
  const home = await createHome({ files: PROJECT_FILES });
  try {
    await home.writeMcp({
      mcpServers: { everything: server("everything", "stdio"), filesystem: server("filesystem", home.cwd) },
    });
    const bare = await runBare(home);
    const ours = await runOurs(home);
    const log = await readFile(join(home.agentDir, "mcp-threads.log"), "utf8").catch(() => "");
    const steps = stepsOf(ours.requests);

    print(style.dim(machineLine(describeMachine())));
    print(`\n${style.title("What the model was told, called and got")}`);
    print(`   prompt: ${PROMPT}`);
    print(`   declared at first: ${(ours.requests[0]?.toolNames ?? []).join(", ")}`);
    steps.forEach(printStep);
    print(`${style.bold("Answer:")} ${ours.result.stdout.trim()}`);
    print(`\n${style.title("Which thread did what")}`);
    printThreads(log, ours);
    print(`\n${style.title("What it cost Pi's main thread")}`);
    printCost(ours.probe, bare.probe);
    return failures(ours, steps, log);
  } finally {
    await home.dispose();
  }
}

try {
  const reasons = await demo();
  for (const reason of reasons) print(`\n${style.bad("FAILED:")} ${reason}`);
  process.exitCode = reasons.length > 0 ? 1 : 0;
} catch (error) {
  process.stderr.write(`The demo could not run: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
