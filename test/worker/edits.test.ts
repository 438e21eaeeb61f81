/** Owns: the moment at which the user learns the effect of an edit, and the part of the catalog that is made again. */
import { expect, test } from "vitest";
import { configure, fixture, newestCatalog, type Started, start, until } from "./support.ts";

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

/** Starts servers with one tool each. Afterwards their last catalog is stored and its lines are in the log. */
async function settled(servers: Parameters<typeof start>[0]): Promise<Started> {
  const at = await start(servers);
  expect((await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).pending).toEqual([]);
  const count = Object.keys(servers).length;
  const stored = new RegExp(`${count} tools of ${count} servers indexed[^]*snapshot written`);
  await until(async () => stored.test(await at.log()) || undefined);
  return at;
}

test("a server with other variables and the same tools -> notice after its list; nothing is indexed again", async () => {
  const at = await settled({ s: live(), t: live() });
  const before = await indexed(at);
  const since = at.events.length;
  await configure(at, { s: live(), t: live({ OTHER: "1" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t (env)" });
  expect(told(at, "t", since)).toEqual(["connecting", "connected", "notice"]);
  await at.runtime.stop();
  expect(await indexed(at)).toBe(before);
});

test("a server with other tools -> main has the tools before the notice", async () => {
  const at = await settled({ s: live(), t: live() });
  const since = at.events.length;
  await configure(at, { s: live(), t: live({ TOOLS: "work,more" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t (env)" });
  expect(told(at, "t", since)).toEqual(["connecting", "connected", "catalog", "notice"]);
});

test("a server is removed while another restarts -> gone at once, notice after the other has listed its tools", async () => {
  const at = await settled({ s: live(), t: live() });
  const since = at.events.length;
  await configure(at, { t: live({ OTHER: "1" }) });
  expect(await at.event("notice", () => true, since)).toMatchObject({ text: "mcp.json: ~ t (env), - s" });
  const events = told(at, "t", since);
  // The catalog without s may be sent before or after t connects: t keeps its old tools until it has listed them.
  expect(events.filter((event) => event !== "catalog")).toEqual([
    "connecting",
    "removed s",
    "connected",
    "notice",
  ]);
  expect(events.filter((event) => event === "catalog")).toHaveLength(1);
  expect(events.indexOf("removed s")).toBeLessThan(events.indexOf("catalog"));
  expect(events.at(-1)).toBe("notice");
  expect(newestCatalog(at).servers.map(({ name }) => name)).toEqual(["t"]);
});
