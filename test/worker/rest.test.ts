/** Owns: which sessions let the next one rest, and that what they leave holds no value of a configuration. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { SessionFacts } from "../../src/shared/protocol/session.ts";
import type { Rest } from "../../src/shared/snapshot/rest.ts";
import {
  configure,
  createPlace,
  endAll,
  fixture,
  type Place,
  type Started,
  start,
  until,
} from "./support.ts";

const SECRET = "pmt-secret-of-the-entry";
const lazy = (more: Record<string, unknown> = {}) => fixture("pages.mjs", { TOKEN: SECRET }, more);

/** What the last session left; undefined: nothing. */
async function left({ agentDir }: Place): Promise<{ text: string; rest: Rest } | undefined> {
  const folder = join(agentDir, "mcp-snapshots");
  const [name] = (await readdir(folder).catch((): string[] => [])).filter((one) =>
    one.endsWith(".rest.json"),
  );
  if (name === undefined) return undefined;
  const text = await readFile(join(folder, name), "utf8");
  return { text, rest: JSON.parse(text) as Rest };
}

/** A session over these files in the worker of `at`, whose snapshot is in its file. */
async function session(
  at: Started,
  servers: Record<string, Record<string, unknown>>,
  {
    settings = {},
    facts = {},
    files = {},
    happens,
  }: {
    settings?: Record<string, unknown>;
    facts?: Partial<SessionFacts>;
    files?: Record<string, unknown>;
    /** While it runs, once its tools are known. */
    happens?: (at: Started, place: Place) => Promise<unknown>;
  } = {},
): Promise<Place> {
  const place = await createPlace();
  await configure(place, servers, settings);
  for (const [name, content] of Object.entries(files))
    await writeFile(join(place.cwd, name), JSON.stringify(content));
  const before = at.events.length;
  const usual = { projectTrusted: true, configPath: undefined, registered: [], canAsk: true };
  at.runtime.post("startSession", { ...place, ...usual, snapshotChecksum: undefined, ...facts });
  await at.event("planned", () => true, before);
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  await happens?.(at, place);
  // The next session closes this one, which keeps its files before.
  await at.runtime.ask("startSession", { ...(await createPlace()), ...usual, snapshotChecksum: undefined });
  return place;
}

describe("a session", () => {
  test("of lazy servers that are known, one is switched off in the file -> the next may rest", async () => {
    const at = await start({});
    const place = await session(at, { s: lazy(), off: lazy({ enabled: false }) });
    const found = await until(() => left(place));
    expect(found.rest).toMatchObject({
      version: 2,
      trusted: true,
      servers: [
        { name: "s", state: "idle", toolsKnown: true },
        { name: "off", state: "disabled" },
      ],
    });
    expect(found.rest.servers[0]).not.toHaveProperty("pid");
    expect(found.rest.files.map(([file]) => file)).toEqual(
      expect.arrayContaining([
        join(place.agentDir, "mcp.json"),
        join(place.agentDir, "settings.json"),
        join(place.cwd, ".mcp.json"),
        join(place.cwd, ".pi", "mcp.json"),
      ]),
    );
    expect(found.text).not.toContain(SECRET);
    expect(found.text).not.toContain("pages.mjs");
  });

  test("whose server was edited into one that does not start -> nothing is left, and the next looks for itself", async () => {
    const at = await start({});
    const place = await session(
      at,
      { s: lazy() },
      {
        happens: async ({ event }, home) => {
          await until(() => left(home));
          const failed = event("server", ({ status }) => status.name === "s" && status.state === "failed");
          await configure(home, { s: lazy({ command: "pmt-absent" }) });
          await failed;
        },
      },
    );
    await until(async () => ((await left(place)) === undefined ? true : undefined));
  });

  test("in which a server that its file disables is on -> the next needs a worker", async () => {
    const at = await start({});
    const off = { s: lazy(), t: lazy({ enabled: false }) };
    const place = await session(at, off, {
      happens: async ({ runtime }, home) => {
        await until(() => left(home));
        // A write of before may still come.
        await until(async () => {
          await rm(join(home.agentDir, "mcp-snapshots"), { recursive: true, force: true, maxRetries: 20 });
          await sleep(500);
          return (await left(home)) === undefined ? true : undefined;
        });
        await runtime.ask("setEnabled", { server: "t", enabled: true, project: false, session: true });
        await runtime.settleTools({ timeoutMs: 40_000 }, undefined);
      },
    });
    expect(await left(place)).toBeUndefined();
  });

  test.each(["", "{", "null", "{}", "[]", '{"servers":[[]],"settings":{}}'])(
    "whose rest left %j of what ran -> starts as any other",
    async (rested) => {
      const at = await start({});
      const before = at.events.length;
      const place = await createPlace();
      await configure(place, { s: lazy() });
      const facts = { projectTrusted: true, configPath: undefined, registered: [], canAsk: true, rested };
      await at.runtime.ask("startSession", { ...place, ...facts, snapshotChecksum: undefined });
      const planned = await at.event("planned", () => true, before);
      expect(planned.servers).toMatchObject([{ name: "s" }]);
      // The place, which is younger than the session, is looked through before that ends by itself.
      await endAll(at);
    },
  );

  test.each<[string, Parameters<typeof session>[1], Parameters<typeof session>[2]?]>([
    ["one server is eager", { s: lazy(), e: lazy({ lifecycle: "eager" }) }],
    ["one server is declared from the first request on", { s: lazy({ directTools: true }) }],
    ["a file has a mistake", { s: lazy({ lifecycle: "sometimes" }) }],
    ["edits wait for the person", { s: lazy() }, { settings: { hotReload: "ask" } }],
    [
      "a project's server waits for consent",
      { s: lazy() },
      { files: { ".mcp.json": { mcpServers: { theirs: fixture("pages.mjs") } } } },
    ],
    [
      "another extension registered a server",
      { s: lazy() },
      { facts: { registered: [{ name: "r", config: lazy(), extensionPath: "/x" }] } },
    ],
    ["a server was switched off in the transcript", { s: lazy(), t: lazy() }, { facts: { off: ["t"] } }],
    ["the tools of a server are not known, because it fails", { s: lazy(), bad: { command: "pmt-absent" } }],
    ["a server listed nothing, as a gateway does that starts", { s: lazy(), empty: fixture("listed.mjs") }],
    ["there is no server, and nobody was told how to add one", {}],
    ["a command of the shell asks", { s: lazy() }, { facts: { onDemand: true } }],
  ])("%s -> the next needs a worker", async (_what, servers, more) => {
    const at = await start({});
    expect(await left(await session(at, servers, more))).toBeUndefined();
  });
});
