/** Owns: what a server whose session can ask nobody leaves for later sessions; the connections are fakes. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../../../../workers/shared/listed.ts";
import { setup } from "./support.ts";

const named = (...names: string[]): CachedTool[] => names.map((name) => ({ name }));
const long = (name: string): CachedTool => ({ name, description: "x".repeat(LIMITS.listBytes / 2) });
const numbered = (count: number, word: string): CachedTool[] =>
  named(...Array.from({ length: count }, (_, at) => `${word}${at}`));

test.each<[string, CachedTool[], CachedTool[], CachedTool[] | undefined]>([
  ["the same", named("a", "b"), named("a", "b"), undefined],
  ["one more", named("a", "b"), named("a", "b", "c"), undefined],
  ["one less", named("a", "b"), named("a"), named("a", "b")],
  ["one by another name", named("a", "b"), named("c", "a"), named("a", "b", "c")],
  [
    "one less, and another description",
    named("a", "b"),
    [{ name: "a", description: "new" }],
    [{ name: "a", description: "new" }, { name: "b" }],
  ],
  ["others, as many as one server may list", numbered(LIMITS.toolsPerServer, "a"), named("b"), undefined],
  ["others, as long as one server may list", [long("a")], [long("b")], undefined],
])("known with a person, and listed: %s -> kept", async (_what, tools, listed, kept) => {
  const { server, connected } = setup();
  server.restore({ tools, cachedAt: 5 });
  expect(server.withLeftOut).toBeUndefined();
  await connected({ listTools: async () => listed });
  expect(server.tools).toEqual(listed);
  expect(server.withLeftOut).toEqual(kept && { tools: kept, cachedAt: 5 });
  expect(server.withLeftOut).toBe(server.withLeftOut);
  expect(server.isUnattended).toBe(false);
});

test.each<[string, Parameters<typeof setup>, true | undefined]>([
  ["a person can be asked", [{}, { context: { asks: { of: () => ({}) as never } } }], undefined],
  ["the server is told of nobody in any session", [{ elicitation: false }], undefined],
  ["only such a session has listed it", [], true],
])("%s -> what it listed is all", async (_why, given, unattended) => {
  const { server, connected } = setup(...given);
  server.restore({ tools: named("a", "b"), unattended, cachedAt: 5 });
  await connected({ listTools: async () => named("a") });
  expect(server.withLeftOut).toBeUndefined();
});
