/** Owns: which hash a server has while plans follow each other. */
import { expect, test } from "vitest";
import { createDefinitionHashes } from "../../../../../workers/connection/catalog/hashes.ts";
import { definitionOf } from "../servers/support.ts";

test("no plan yet, or no such server -> empty; a failure of the cache worker -> empty", async () => {
  const hashes = createDefinitionHashes({ hashDefinitions: async () => [] }, "/cwd");
  expect(hashes.of("a")).toBe("");
  await hashes.update([definitionOf("a")]);
  expect(hashes.of("a")).toBe("");
});

test("each server -> the hash at its position; a server that left -> empty", async () => {
  const cache = { hashDefinitions: async (all: object[]) => all.map((_, i) => `hash ${i}`) };
  const hashes = createDefinitionHashes(cache, "/cwd");
  await hashes.update([definitionOf("a"), definitionOf("b")]);
  expect([hashes.of("a"), hashes.of("b")]).toEqual(["hash 0", "hash 1"]);
  await hashes.update([definitionOf("b")]);
  expect([hashes.of("a"), hashes.of("b")]).toEqual(["", "hash 0"]);
});

test("an older plan whose hashes come later -> the newest plan's hold", async () => {
  const answers = [Promise.withResolvers<string[]>(), Promise.withResolvers<string[]>()];
  const waiting = answers.map(({ promise }) => promise);
  const cache = { hashDefinitions: () => waiting.shift() ?? Promise.resolve([]) };
  const hashes = createDefinitionHashes(cache, "/cwd");
  const first = hashes.update([definitionOf("a")]);
  const second = hashes.update([definitionOf("a")]);
  answers[1]?.resolve(["new"]);
  answers[0]?.resolve(["old"]);
  await Promise.all([first, second]);
  expect(hashes.of("a")).toBe("new");
});
