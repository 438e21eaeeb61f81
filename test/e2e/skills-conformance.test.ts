/** Owns: the conformance suite's scenarios about skills (SEP-2640) with the real Pi as the client, in print mode. */
import { execFile } from "node:child_process";
import { once as event } from "node:events";
import { mkdtemp, readFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startCli } from "../cli/support.ts";
import { SUITES } from "../conformance/scenarios.ts";
import { filesBelow } from "../support/files-below.ts";
import { type ModelTurn, toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { call, ENTRY, home, model, onCleanup, root, searchFor } from "./support.ts";

const SKILL = "docs__skill_pdf_processing";
const COMMAND = `bash "${join(root, "test/conformance/client.sh")}"`;
/** This limit ends hangs only. */
const SCENARIO_MS = 120_000;

/** Runs `pi -p` against the server at `url`. Resolves with the texts of the tool results. */
async function runPi(url: string, turns: ModelTurn[]): Promise<string[]> {
  const at = await home({ mcp: { mcpServers: { docs: { url, lifecycle: "eager", skills: "allow" } } } });
  // Connects the server once: its skills are known then.
  await startCli(at, ["list"]).ended;
  const scripted = await model([...turns, { text: "ok" }]);
  await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
  const last = scripted.requests.at(-1);
  return last ? toolResultTexts(last) : [];
}

/** Plays the scenario with a Pi that makes these calls. Resolves with the suite's checks and what Pi's model read. */
async function play(scenario: string, turns: ModelTurn[]) {
  let texts: string[] = [];
  const answer = async (socket: Socket): Promise<void> => {
    const lines = createInterface(socket);
    const [url] = (await event(lines, "line")) as [string];
    texts = await runPi(url, turns);
    socket.end("0\n");
  };
  const server = createServer((socket) => void answer(socket));
  server.listen(0, "127.0.0.1");
  await event(server, "listening");
  onCleanup(() => void server.close());
  const results = await mkdtemp(join((await home({})).tmpDir, "suite-"));
  const cli = join(root, "node_modules", SUITES.modern.folder, "dist", "index.js");
  const limits = ["--timeout", String(SCENARIO_MS), "--output-dir", results, ...SUITES.modern.args];
  const args = [cli, "client", "--command", COMMAND, "--scenario", scenario, ...limits];
  const port = (server.address() as AddressInfo).port;
  const env = { ...process.env, NODE_OPTIONS: "", CONFORMANCE_CLIENT: String(port) };
  // An end with another code than 0 is a failed check, which the checks tell better.
  await promisify(execFile)(process.execPath, args, { env }).catch(() => undefined);
  const file = (await filesBelow(results)).find((name) => name.endsWith("checks.json"));
  const checks = JSON.parse(file === undefined ? "[]" : await readFile(file, "utf8")) as {
    status: string;
    errorMessage?: string;
  }[];
  return { statuses: checks.map(({ status, errorMessage }) => errorMessage ?? status), texts };
}

test("found and not loaded -> the suite sees a list and no read", async () => {
  const { statuses, texts } = await play("sep-2640-client-no-prefetch", [searchFor("fill a PDF")]);
  expect(texts[0]).toContain(`${SKILL}(file?: string, line?: integer)`);
  expect(statuses).toEqual(["SUCCESS"]);
});

test.each([
  ["digest", "its SHA-256 is not the one that was listed"],
  ["size", "bytes in place of the"],
  ["frontmatter", "its frontmatter is not the one that was listed"],
])(
  "another %s than was listed, and a model that goes on -> refused, and no other file is read",
  async (what, problem) => {
    const { statuses, texts } = await play(`sep-2640-client-verify-${what}`, [
      searchFor(`select:${SKILL}`),
      call(SKILL, { file: "references/FORMS.md" }),
    ]);
    expect(texts[0]).toContain(`was not used: `);
    expect(texts[0]).toContain(problem);
    expect(texts[1]).toContain("No other file of the skill pdf-processing of docs is read");
    expect(statuses).toEqual(["SUCCESS"]);
  },
);
