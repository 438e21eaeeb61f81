/**
 * Owns: the real Pi behind a real gateway from npm, as a team uses one: one address, 30 servers, 2,000 tools. What changes at
 * the gateway, its restart during calls, and two sessions at once.
 */
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { makeHome } from "../support/make-home.ts";
import { expectClean, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, fixtureServer, searchFor } from "./support.ts";

const SERVERS = 30;
const TOOLS = 2_000;

/** Servers `area1` to `area30`, each with its part of the tools. The first one's tool `wait` answers when a file is there. */
const all: Readonly<Record<string, unknown>> = (() => {
  const each = Math.floor(TOOLS / SERVERS);
  return Object.fromEntries(
    Array.from({ length: SERVERS }, (_, at) => {
      const count = at === 0 ? TOOLS - each * (SERVERS - 1) : each;
      const names = Array.from({ length: count }, (_, i) => `get_report_${at + 1}_${i}`);
      return [`area${at + 1}`, fixtureServer("live.mjs", { TOOLS: names.join(",") })];
    }),
  );
})();

let gateway: Gateway;
beforeAll(() =>
  forWholeFile(async () => {
    const { dir } = await makeHome({});
    gateway = await startGateway(join(dir, "gateway"), all);
    onCleanup(() => gateway.kill());
  }),
);

const session = (more: Parameters<typeof open>[0] = {}): Promise<Opened> =>
  open({ mcp: { mcpServers: { team: { url: gateway.url, lifecycle: "eager" } } }, ...more });
const ready = ({ statusLine }: Opened, since = 0) =>
  statusLine(`MCP: 1 server ready · ${TOOLS} tools`, since);
const found = async ({ prompt }: Opened, query: string): Promise<string> =>
  (await prompt(searchFor(query)))[0]?.text ?? "";
const TOOL = "team__area17__get_report_17_5";

test("one address with 2,000 tools -> the model finds one by words, calls it by its own schema, and is told of no other", async () => {
  const pi = await session();
  await ready(pi);
  expect(await found(pi, "report 17 5")).toContain(TOOL);
  expect(await pi.ask(TOOL)).toMatchObject({ argv: [] });
  const declared = pi.scripted.requests.at(-1)?.tools.map((tool) => tool.function.name) ?? [];
  expect(declared).toContain(TOOL);
  expect(declared.length).toBeLessThan(20);
  expectClean(pi);
});

test("a server of the gateway is taken out and put back -> its tools go and come back in the running session", async () => {
  const pi = await session();
  await ready(pi);
  const { area30, ...others } = all;
  await gateway.write(others);
  await pi.statusLine(`MCP: 1 server ready · ${TOOLS - Math.floor(TOOLS / SERVERS)} tools`);
  await expect
    .poll(() => found(pi, "select:team__area30__get_report_30_1"), { timeout: PATIENCE_MS })
    .not.toMatch(/^Loaded/);
  const since = pi.rpc.events.length;
  await gateway.write({ ...others, area30 });
  await ready(pi, since);
  await expect
    .poll(() => found(pi, "select:team__area30__get_report_30_1"), { timeout: PATIENCE_MS })
    .toMatch(/^Loaded/);
  expect(await pi.ask("team__area30__get_report_30_1")).toMatchObject({ argv: [] });
  expectClean(pi);
});

test("the gateway ends during a call of two sessions and comes back -> both calls fail with a sentence, the next ones work", {
  tags: "thorough",
}, async () => {
  const { dir } = await makeHome({});
  const pis = [await session(), await session()];
  for (const pi of pis) {
    await ready(pi);
    await found(pi, `select:${TOOL}`);
  }
  const missing = join(dir, "never");
  const before = pis.map(({ rpc }) => rpc.events.length);
  const calls = pis.map((pi) => pi.prompt(call(TOOL, { file: missing })));
  for (const [at, { rpc }] of pis.entries())
    await rpc.waitFor((event) => event.type === "tool_execution_start", PATIENCE_MS, before[at]);
  await gateway.kill();
  for (const ended of await Promise.all(calls)) {
    expect(ended[0]).toMatchObject({ isError: true });
    expect(JSON.stringify(ended[0])).toContain("team");
  }
  await gateway.start();
  for (const pi of pis) {
    const again = async () => (await pi.prompt(call(TOOL, {}))).at(-1);
    await expect.poll(again, { timeout: PATIENCE_MS, interval: 500 }).toMatchObject({ isError: false });
  }
});

test("the gateway is down at the start and comes up -> its tools are found, though nobody asks for a connect", {
  tags: "thorough",
}, async () => {
  await gateway.kill();
  const pi = await session();
  await pi.statusLine("MCP: 0 of 1 server ready · team failed: /mcp");
  expect(await found(pi, "report 17 5")).toMatch(/team.*refused the connection/);
  await gateway.start();
  await expect.poll(() => found(pi, "report 17 5"), { timeout: PATIENCE_MS, interval: 500 }).toContain(TOOL);
  expect(await pi.ask(TOOL)).toMatchObject({ argv: [] });
});
