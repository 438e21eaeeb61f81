/**
 * Owns: one definition that starts a different program in each folder. The tools of one folder's server never appear in
 * another folder, and the next session in the same folder knows them.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { ServerStatus } from "../../src/shared/protocol/session.ts";
import { createPlace, fixtures, type Place, start, until } from "./support.ts";

const LIVE = pathToFileURL(join(fixtures, "servers", "live.mjs")).href;

/** The user's own definition, the same in every folder. */
const SERVERS = { local: { command: process.execPath, args: ["./server.mjs"] } };

async function folderOf({ agentDir }: Place, name: string, tools?: string): Promise<Place> {
  const cwd = join(agentDir, "..", name);
  await mkdir(cwd, { recursive: true });
  if (tools !== undefined) {
    const program = `process.env.TOOLS = ${JSON.stringify(tools)}; await import(${JSON.stringify(LIVE)});`;
    await writeFile(join(cwd, "server.mjs"), program);
  }
  return { agentDir, cwd };
}

/** The server's status in a folder, after all tool lists have settled. */
async function known(place: Place): Promise<Pick<ServerStatus, "toolsKnown" | "toolCount">> {
  const at = await start(SERVERS, { place });
  const { toolsKnown, toolCount } = await at.settled("local");
  await at.runtime.stop();
  return { toolsKnown, toolCount };
}

test("a server that is a file of the folder -> its tools are known in its own folder only", async () => {
  const place = await createPlace();
  const one = await folderOf(place, "one", "alpha,beta");
  const two = await folderOf(place, "two");
  const listed = await known(one);
  expect(listed).toMatchObject({ toolsKnown: true });
  expect(listed.toolCount).toBeGreaterThan(0);
  // The same definition finds no program here, and the other folder's tools do not appear.
  expect(await known(two)).toEqual({ toolsKnown: false, toolCount: 0 });
  // The first folder still knows its stored tools without the program.
  await rm(join(one.cwd, "server.mjs"));
  expect(await known(one)).toEqual(listed);
});

test("two projects define the same server in the same words -> each project's file has its own entry", async () => {
  const place = await createPlace();
  const counts: number[] = [];
  for (const [name, tools] of [
    ["one", "alpha"],
    ["two", "alpha,beta,gamma"],
    ["one", undefined],
  ] as const) {
    const at = await folderOf(place, name, tools);
    await mkdir(join(at.cwd, ".pi"), { recursive: true });
    await writeFile(join(at.cwd, ".pi", "mcp.json"), JSON.stringify({ mcpServers: SERVERS }));
    if (tools === undefined) await rm(join(at.cwd, "server.mjs"));
    const started = await start({}, { place: at });
    counts.push((await started.settled("local")).toolCount);
    await until(async () => (await started.log()).includes("snapshot written") || undefined);
    await started.runtime.stop();
  }
  expect(counts[1]).toBeGreaterThan(counts[0] ?? 0);
  expect(counts[2]).toBe(counts[0]);
});
