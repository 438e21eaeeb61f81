/** Owns: the moment at which the user learns the effect of an edit, and the part of the catalog that is made again. */
import { expect, test } from "vitest";
import {
  configure,
  fixture,
  forRows,
  freePort,
  newestCatalog,
  type Started,
  start,
  until,
} from "./support.ts";

const EAGER = { lifecycle: "eager" };
const live = (env: Record<string, string> = {}) => fixture("live.mjs", env, EAGER);

const indexed = async (at: Started): Promise<number> =>
  (await at.log()).match(/tools of \d+ servers indexed/g)?.length ?? 0;

/** The events of the server and of the catalog, in order. */
function told(at: Started, name: string, since: number): string[] {
  return at.events.slice(since).flatMap((event): string[] => {
    if (event.type === "server") return event.status.name === name ? [event.status.state] : [];
    if (event.type === "removed") return [`removed ${event.servers}`];
    return event.type === "notice" || event.type === "catalog" ? [event.type] : [];
  });
}

/** A pair of servers with one tool each for each test. What a test has edited stays. */
let servers: Parameters<typeof start>[0] = {
  s1: live(),
  t1: live(),
  s2: live(),
  t2: live(),
  s3: live(),
  t3: live(),
};

/** One worker, after the last catalog of the servers is stored and its lines are in the log. */
const shared = forRows(async (): Promise<Started> => {
  const at = await start(servers);
  expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  const count = Object.keys(servers).length;
  const stored = new RegExp(`${count} tools of ${count} servers indexed[^]*snapshot written`);
  await until(async () => stored.test(await at.log()) || undefined);
  return at;
});

async function edit(at: Started, edited: typeof servers): Promise<void> {
  servers = edited;
  await configure(at, servers);
}

test("a server with other variables and the same tools -> notice after its list; nothing is indexed again", async () => {
  const at = await shared();
  const before = await indexed(at);
  const since = at.events.length;
  await edit(at, { ...servers, t1: live({ OTHER: "1" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t1 (env)" });
  expect(told(at, "t1", since)).toEqual(["connecting", "connected", "notice"]);
  expect(await indexed(at)).toBe(before);
});

test("a server with other tools -> main has the tools before the notice", async () => {
  const at = await shared();
  const since = at.events.length;
  await edit(at, { ...servers, t2: live({ TOOLS: "work,more" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t2 (env)" });
  expect(told(at, "t2", since)).toEqual(["connecting", "connected", "catalog", "notice"]);
});

test("a server is removed while another restarts -> gone at once, notice after the other has listed its tools", async () => {
  const at = await shared();
  const since = at.events.length;
  const { s3: _removed, ...others } = servers;
  await edit(at, { ...others, t3: live({ OTHER: "1" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t3 (env), - s3" });
  const events = told(at, "t3", since);
  // The catalog without s may be sent before or after t connects: t keeps its old tools until it has listed them.
  expect(events.filter((event) => event !== "catalog")).toEqual([
    "connecting",
    "removed s3",
    "connected",
    "notice",
  ]);
  expect(events.filter((event) => event === "catalog")).toHaveLength(1);
  expect(events.indexOf("removed s3")).toBeLessThan(events.indexOf("catalog"));
  expect(events.at(-1)).toBe("notice");
  expect(newestCatalog(at).servers.map(({ name }) => name)).toEqual(Object.keys(servers));
});

test("the process before holds a port while it ends -> the one that replaces it starts after it", async () => {
  const PORT = `${await freePort()}`;
  const at = await start({ held: fixture("holds-port.mjs", { PORT }, EAGER) });
  expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  const since = at.events.length;
  await configure(at, { held: fixture("holds-port.mjs", { PORT, OTHER: "1" }, EAGER) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ held (env)" });
  const { servers: found } = await at.runtime.ask("status", {});
  expect(found).toMatchObject([{ name: "held", state: "connected" }]);
});
