/**
 * Owns: what a session in which nobody can be asked, as `pi -p`, leaves for one with a person: real threads, and the real
 * server-everything, which lists more tools to a client that takes questions.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { readCatalog } from "../../src/catalog/store.ts";
import type { ServerStatus } from "../../src/shared/protocol/session.ts";
import type { Rest } from "../../src/shared/snapshot/rest.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { createPlace, endAll, everything, fixture, type Place, type Started, start } from "./support.ts";

const ASKS = "trigger-elicitation-request";

const session = async (place: Place, canAsk: boolean, entry = everything()): Promise<Started> => {
  const { checksum: snapshotChecksum } = readCatalog(place.agentDir, place);
  const at = await start({ s: entry }, { place, facts: { canAsk, snapshotChecksum } });
  expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  return at;
};

const known = async (at: Started): Promise<ServerStatus> => {
  const { servers } = await at.runtime.ask("status", {});
  return servers[0] ?? expect.unreachable("no server");
};

/** The tools of the snapshot with which the next session starts. */
const atNextStart = ({ agentDir, cwd }: Place): string[] => {
  const catalog = readCatalog(agentDir, { cwd });
  return Array.from({ length: catalog.count }, (_, at) => catalog.tool(at).tool);
};

/** Waits for that snapshot: what a busy machine has not made within a second is not waited for at the end of a session. */
const untilNextStart = (place: Place, expected: (tools: string[]) => void): Promise<void> =>
  vi.waitFor(() => expected(atNextStart(place)), { timeout: PATIENCE_MS, interval: 50 });

/** When the tools of the cache's entry were listed. */
const listedAt = async ({ agentDir }: Place): Promise<number> => {
  const { servers } = JSON.parse(await readFile(join(agentDir, "mcp-cache.json"), "utf8")) as {
    servers: { s: { cachedAt: number } };
  };
  return servers.s.cachedAt;
};

/** Whether the next session may rest on that snapshot. */
const mayRest = async ({ agentDir, cwd }: Place): Promise<boolean> => {
  const folder = join(agentDir, "mcp-snapshots");
  const [name = ""] = (await readdir(folder)).filter((one) => one.endsWith(".rest.json"));
  const rest = JSON.parse(await readFile(join(folder, name), "utf8")) as Rest;
  return rest.checksum === readCatalog(agentDir, { cwd }).checksum;
};

test("a person's session, one in which nobody can be asked and a call is made, a person's again -> it knows what the first one did, unconnected", async () => {
  const place = await createPlace();
  const first = await session(place, true);
  const all = (await known(first)).toolCount;
  await endAll(first);
  expect(await mayRest(place)).toBe(true);

  const print = await session(place, false);
  expect(await known(print)).toMatchObject({ state: "idle", toolCount: all });
  await print.call("s", "echo", { message: "hello" });
  expect((await known(print)).toolCount).toBeLessThan(all);
  expect(await print.failedCall("s", ASKS)).toMatchObject({ code: "unknown_tool" });
  await untilNextStart(place, (tools) => expect(tools).toContain(ASKS));
  await endAll(print);

  expect(atNextStart(place)).toContain(ASKS);
  expect(await mayRest(place)).toBe(true);
  const again = await session(place, true);
  expect(await known(again)).toMatchObject({ state: "idle", toolCount: all });
  await endAll(again);
}, 120_000);

test("a new server is first known where nobody can be asked -> all sessions know that much, and the rest once one with a person calls it", {
  tags: "thorough",
  timeout: 120_000,
}, async () => {
  const place = await createPlace();
  const print = await session(place, false);
  const few = (await known(print)).toolCount;
  await endAll(print);
  const second = await session(place, false);
  expect(await known(second)).toMatchObject({ state: "idle", toolCount: few });
  await endAll(second);
  expect(atNextStart(place)).not.toContain(ASKS);

  const person = await session(place, true);
  expect(await known(person)).toMatchObject({ state: "idle", toolCount: few });
  await person.call("s", "echo", { message: "hello" });
  const learned = await known(person);
  expect(learned.toolCount).toBeGreaterThan(few);
  await untilNextStart(place, (tools) => expect(tools).toContain(ASKS));
  await endAll(person);
  const next = await session(place, true);
  expect(await known(next)).toMatchObject({ state: "idle", toolCount: learned.toolCount });
});

test("a tool gets another name, and a session in which nobody can be asked is the first to see it -> later ones know both, as long as the old list counts, until one with a person sees it", {
  tags: "thorough",
  timeout: 120_000,
}, async () => {
  const place = await createPlace();
  const file = join(place.agentDir, "tools.json");
  const entry = fixture("listed.mjs", { TOOLS_FILE: file });
  const offer = (...names: string[]) => writeFile(file, JSON.stringify(names.map((name) => ({ name }))));
  await offer("a", "b");
  const first = await session(place, true, entry);
  expect((await known(first)).toolCount).toBe(2);
  await endAll(first);
  const age = await listedAt(place);

  await offer("a", "c");
  const print = await session(place, false, entry);
  await print.call("s", "a");
  expect((await known(print)).toolCount).toBe(2);
  await untilNextStart(place, (tools) => expect(tools).toEqual(["a", "b", "c"]));
  await endAll(print);
  expect(atNextStart(place)).toEqual(["a", "b", "c"]);
  expect(await listedAt(place)).toBe(age);

  const next = await session(place, false, entry);
  expect(await known(next)).toMatchObject({ state: "idle", toolCount: 3 });
  await next.call("s", "c");
  await endAll(next);
  expect(atNextStart(place)).toEqual(["a", "b", "c"]);
  expect(await listedAt(place)).toBe(age);

  const person = await session(place, true, entry);
  expect(await known(person)).toMatchObject({ state: "idle", toolCount: 3 });
  await person.call("s", "c");
  expect((await known(person)).toolCount).toBe(2);
  await untilNextStart(place, (tools) => expect(tools).toEqual(["a", "c"]));
  await endAll(person);
  expect(atNextStart(place)).toEqual(["a", "c"]);
  expect(await listedAt(place)).toBeGreaterThan(age);
});
