/** Owns: a scenario of the conformance suite with a client that a test of the real Pi plays. */
import { execFile } from "node:child_process";
import { once as event } from "node:events";
import { mkdtemp, readFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { SUITES } from "../conformance/scenarios.ts";
import { filesBelow } from "../support/files-below.ts";
import { home, onCleanup, root } from "./support.ts";

const COMMAND = `bash "${join(root, "test/conformance/client.sh")}"`;
/** This limit ends hangs only. */
const SCENARIO_MS = 120_000;

/** What the suite says to the client: the address of its server, and the context of the scenario. */
interface Asked {
  url: string;
  context: Record<string, string>;
}

/** Plays the scenario with `client`. Resolves with the status of each of the suite's checks, or what is wrong, and what the client answers. */
export async function playScenario<T>(
  suite: keyof typeof SUITES,
  scenario: string,
  client: (asked: Asked) => Promise<T>,
): Promise<{ statuses: string[]; played: T | undefined }> {
  let played: T | undefined;
  const answer = async (socket: Socket): Promise<void> => {
    const lines: string[] = [];
    for await (const line of createInterface(socket)) if (lines.push(line) === 4) break;
    const [url = "", , , context] = lines;
    played = await client({ url, context: JSON.parse(context || "{}") as Record<string, string> });
    socket.end("0\n");
  };
  const server = createServer((socket) => void answer(socket));
  server.listen(0, "127.0.0.1");
  await event(server, "listening");
  onCleanup(() => void server.close());
  const results = await mkdtemp(join((await home({})).tmpDir, "suite-"));
  const { folder, args: more } = SUITES[suite];
  const cli = join(root, "node_modules", folder, "dist", "index.js");
  const limits = ["--timeout", String(SCENARIO_MS), "--output-dir", results, ...more];
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
  return { statuses: checks.map(({ status, errorMessage }) => errorMessage ?? status), played };
}
