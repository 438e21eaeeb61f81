/** Owns: which servers' tools are still on their way to the catalog, and so worth a wait. */
import { describe, expect, it } from "vitest";
import { isLearning } from "../../../src/session/first-request.ts";
import { makeCatalog } from "../make-catalog.ts";
import { makeStatus } from "../server-status.ts";

const CATALOG = makeCatalog([
  { name: "held", tools: [{ tool: "work" }] },
  { name: "empty", tools: [] },
  { name: "named", toolsKnown: false, tools: [] },
]);

describe("isLearning", () => {
  it.each([
    ["a server that connects", "other", { toolsKnown: false, state: "connecting" }, true],
    ["a server that is about to connect", "other", { toolsKnown: false, state: "idle" }, true],
    ["a server that failed", "other", { toolsKnown: false, state: "failed" }, false],
    ["a server whose tools the catalog holds", "held", { toolsKnown: true }, false],
    ["a server that listed no tool", "empty", { toolsKnown: true }, false],
    ["a server that has listed tools which the catalog lacks", "other", { toolsKnown: true }, true],
    ["the same, where the catalog holds its name alone", "named", { toolsKnown: true }, true],
    ["a disabled server with stored tools", "other", { toolsKnown: true, state: "disabled" }, false],
  ] as const)("%s -> %s, %j: %s", (_title, name, status, expected) => {
    expect(isLearning(makeStatus(name, status), () => CATALOG)).toBe(expected);
  });
});
