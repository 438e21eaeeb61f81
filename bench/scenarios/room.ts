/**
 * Owns: what a sandbox adds to the start of a local server: until its first line, beside the same program without one, in turn.
 * Only where bubblewrap works.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { parseEntry } from "../../workers/connection/config/entry/definition.ts";
import { sandboxOf } from "../../workers/connection/config/entry/sandbox.ts";
import { roomLaunch } from "../../workers/connection/room/room.ts";
import { type Launch, spawnServer } from "../../workers/shared/programs/processes.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";

const DEFAULT_RUNS = 40;
const PLAIN = "without a sandbox";

/** Until the first line of a Node program. */
async function firstLineMs(launch: () => Promise<Launch>): Promise<{ ms: number; preparedMs: number }> {
  const startedAt = performance.now();
  const ready = await launch();
  const preparedMs = performance.now() - startedAt;
  const server = spawnServer(ready);
  await once(server.stdout, "data");
  const ms = performance.now() - startedAt;
  server.stdin.end();
  await once(server, "close");
  return { ms, preparedMs };
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "pmt-bench-room-"));
  const { definition } = parseEntry(
    "s",
    { command: "node", sandbox: true },
    { file: folder, origin: "user" },
  );
  const room = sandboxOf(true);
  if (!definition || !room) throw new Error("the entry is no server");
  const env = Object.fromEntries(
    Object.entries(process.env).filter((one): one is [string, string] => one[1] !== undefined),
  );
  const launch: Launch = {
    program: process.execPath,
    args: ["-e", 'console.log("ready"); process.stdin.resume()'],
    env,
    cwd: process.cwd(),
  };
  const place = { agentDir: folder, session: process.cwd(), home: homedir(), own: {} };
  const inRoom = async (): Promise<Launch> => (await roomLaunch(launch, definition, room, place)).launch;
  const samples: { plain: number; sandboxed: number; prepared: number }[] = [];
  try {
    // The first room reads code and makes the server's folder.
    await firstLineMs(inRoom);
    for (let index = 0; index < runs; index++) {
      if (index % 10 === 0) progress(`room: run ${index + 1} of ${runs}`);
      const plain = await firstLineMs(async () => launch);
      const sandboxed = await firstLineMs(inRoom);
      samples.push({ plain: plain.ms, sandboxed: sandboxed.ms, prepared: sandboxed.preparedMs });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const metric = "start until the first line";
  return [
    { case: PLAIN, metric, unit: "ms", values: samples.map(({ plain }) => plain) },
    {
      ...{ case: "in a sandbox", metric, unit: "ms", baseline: PLAIN, target: 15 },
      values: samples.map(({ sandboxed }) => sandboxed),
    },
    {
      ...{ case: "in a sandbox", metric: "its rules, until the program is started", unit: "ms" },
      values: samples.map(({ prepared }) => prepared),
    },
  ];
}

export const room: Scenario = {
  name: "room",
  description: "what a sandbox adds to the start of a local server",
  run,
};
