/**
 * Owns: which era the worker speaks with servers of both eras, of the new one alone and of the old one alone, over stdio
 * and over HTTP, by the entry's `protocol`; and that all that a server offers works in either era.
 */
import { expect, test } from "vitest";
import { type CallResult, decode } from "../../src/shared/protocol/calls.ts";
import { type Eras, MODERN, serveFixture } from "../support/modern-http.ts";
import { currentCatalog, forRows, modernProgram, type Started, start, textOf } from "./support.ts";

const stdio = (eras: Eras): Record<string, unknown> => modernProgram({ ERAS: eras });
const ENTRIES = {
  stdio: async (eras: Eras) => stdio(eras),
  http: async (eras: Eras) => ({ url: (await serveFixture(eras)).url }),
};
const TRANSPORTS = Object.keys(ENTRIES) as (keyof typeof ENTRIES)[];

/** The revision with which the server got a call; undefined: it got none, so the era is the old one. */
async function revisionSeen(at: Started, server: string): Promise<unknown> {
  const seen = JSON.parse(textOf(await at.call(server, "sees")));
  return seen.envelope?.["io.modelcontextprotocol/protocolVersion"];
}

const SPOKEN: [eras: Eras, protocol: string, revision: string | undefined][] = [
  ["both", "auto", undefined],
  ["both", "legacy", undefined],
  ["both", MODERN, MODERN],
  ["modern", "auto", MODERN],
  ["modern", MODERN, MODERN],
  ["legacy", "auto", undefined],
  ["legacy", "legacy", undefined],
];
const WAYS = TRANSPORTS.flatMap((transport) => SPOKEN.map((row) => [transport, ...row] as const));
const nameOf = (...way: [transport: string, eras: Eras, protocol: string]): string => way.join(" ");
const shared = forRows(async () => {
  const servers = WAYS.map(async ([transport, eras, protocol]) => [
    nameOf(transport, eras, protocol),
    { ...(await ENTRIES[transport](eras)), protocol },
  ]);
  const forbidden = TRANSPORTS.map(async (transport) => [
    [`${transport} new`, { ...(await ENTRIES[transport]("modern")), protocol: "legacy" }],
    [`${transport} old`, { ...(await ENTRIES[transport]("legacy")), protocol: MODERN }],
  ]);
  return start(
    Object.fromEntries([...(await Promise.all(servers)), ...(await Promise.all(forbidden)).flat()]),
  );
});

test.each(WAYS)(
  'over %s, a server of the era "%s", protocol "%s" -> tools, a call, a resource and a prompt; the revision is %s',
  async (transport, eras, protocol, revision) => {
    const at = await shared();
    const name = nameOf(transport, eras, protocol);
    expect(await at.settled(name)).toMatchObject({ state: "connected", transport });
    expect(await revisionSeen(at, name)).toBe(revision);
    expect(textOf(await at.call(name, "echo", { text: "é漢😀" }))).toBe("é漢😀");
    expect(await at.call(name, "fail")).toMatchObject({ isError: true });
    expect(textOf(await at.call(name, "get_note"))).toContain("The note.");

    const catalog = await currentCatalog(at);
    const server = catalog.servers.find((one) => one.name === name);
    expect(catalog.tools.filter((one) => one.server.name === name).map(({ tool }) => tool)).toEqual(
      expect.arrayContaining(["echo", "work", "get_note"]),
    );
    expect(server?.prompts?.map(({ prompt }) => prompt)).toEqual(["weather"]);
    const prompt = await at.runtime.ask("getPrompt", {
      server: name,
      prompt: "weather",
      args: { city: "Bern" },
    });
    expect(textOf(decode(prompt) as CallResult)).toBe("What is the weather in Bern?");
    const typed = { server: name, prompt: "weather", argument: "city", value: "Be", context: {} };
    expect(await at.runtime.ask("completePrompt", typed)).toEqual(["Bern", "Berlin"]);
    expect(at.crashes).toEqual([]);
  },
);

test.each(TRANSPORTS)(
  "over %s, a server that the protocol forbids -> an error that names both",
  async (transport) => {
    const at = await shared();
    const [newer, older] = [await at.settled(`${transport} new`), await at.settled(`${transport} old`)];
    expect(newer).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(newer.error?.message).toContain('"protocol": "legacy" forbids');
    expect(older).toMatchObject({ state: "failed", error: { code: "connect_failed" } });
    expect(older.error?.message).toContain(`"protocol": "${MODERN}" forbids`);
    expect(newer.error?.remedy).toContain('"protocol"');
  },
);

test("auto over stdio, a server of the new era alone -> one process speaks both attempts", async () => {
  const at = await shared();
  const name = nameOf("stdio", "modern", "auto");
  await at.settled(name);
  expect(await revisionSeen(at, name)).toBe(MODERN);
  const spawned = at.events.filter((event) => event.type === "spawned" && event.server === name);
  expect(spawned).toHaveLength(1);
});
