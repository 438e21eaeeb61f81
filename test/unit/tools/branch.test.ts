import { describe, expect, it, test } from "vitest";
import { declaredTools, serverByName } from "../../../src/tools/branch.ts";

const tool = (name: string, description = "D.") => ({ name, description, parameters: { type: "object" } });
const system = (message: object) => ({
  type: "message",
  message: { role: "system", content: [], ...message },
});
const namesOf = (branch: readonly unknown[]): string[] => [...declaredTools(branch).keys()];

describe("declaredTools", () => {
  it.each<[string, unknown[], string[]]>([
    ["nothing", [], []],
    ["added", [system({ toolsAdded: [tool("a"), tool("b")] })], ["a", "b"]],
    [
      "added, then one removed",
      [system({ toolsAdded: [tool("a"), tool("b")] }), system({ toolsRemoved: [tool("a")] })],
      ["b"],
    ],
    [
      "removed, then added again",
      [
        system({ toolsAdded: [tool("a")] }),
        system({ toolsRemoved: [tool("a")] }),
        system({ toolsAdded: [tool("a")] }),
      ],
      ["a"],
    ],
    [
      "replaced in one message",
      [system({ toolsAdded: [tool("a")] }), system({ toolsRemoved: [tool("a")], toolsAdded: [tool("a")] })],
      ["a"],
    ],
    ["of a user's message", [{ type: "message", message: { role: "user", toolsAdded: [tool("a")] } }], []],
    ["of another entry", [{ type: "custom", message: { role: "system", toolsAdded: [tool("a")] } }], []],
  ])("%s -> $2", (_name, branch, names) => {
    expect(namesOf(branch)).toEqual(names);
  });

  test("searches and calls of the branch -> the server and the name there", () => {
    const result = (toolName: unknown, details: unknown, role = "toolResult") => ({
      type: "message",
      message: { role, toolName, details, content: [] },
    });
    const owner = { server: "s", tool: "my.tool" };
    const owners: [string, unknown, unknown][] = [
      ["searched", result("ToolSearch", { owners: { t: owner } }), owner],
      ["called", result("t", { ...owner, durationMs: 5 }), owner],
      ["called through the proxy", result("mcp", owner), undefined],
      ["of another tool", result("other", owner), undefined],
      ["not a result", result("t", owner, "user"), undefined],
      ["malformed", result("ToolSearch", { owners: { t: { server: 5, tool: "x" } } }), undefined],
      ["no object", result("ToolSearch", { owners: "t" }), undefined],
    ];
    for (const [name, entry, expected] of owners) {
      const found = declaredTools([system({ toolsAdded: [tool("t")] }), entry]).get("t")?.owner;
      expect(found, name).toEqual(expected);
    }
  });

  test("a tool declared twice -> its last declaration", () => {
    const branch = [system({ toolsAdded: [tool("a", "old")] }), system({ toolsAdded: [tool("a", "new")] })];
    expect(declaredTools(branch).get("a")?.description).toBe("new");
  });

  test("a transcript that somebody edited -> the entries that are whole", () => {
    const odd = [
      null,
      5,
      "x",
      { type: "message" },
      { type: "message", message: null },
      system({ toolsAdded: "x" }),
      system({
        toolsAdded: [null, { name: 5, parameters: {} }, { name: "p" }, { name: "q", parameters: [] }],
      }),
      system({ toolsRemoved: [null, {}, { name: 7 }] }),
      system({ toolsAdded: [{ name: "a", parameters: {} }] }),
    ];
    expect([...declaredTools(odd).values()]).toEqual([{ name: "a", description: "", parameters: {} }]);
  });
});

describe("serverByName", () => {
  it.each<[string, string[], string | undefined]>([
    ["git__log", ["hub", "git"], "git"],
    ["git__hub__log", ["git", "git__hub"], "git__hub"],
    ["git__hub__log", ["git__hub", "git"], "git__hub"],
    ["mcp__git__log", ["git"], "git"],
    ["git__log", ["git-mcp"], "git-mcp"],
    ["github__log", ["git"], undefined],
    ["log", ["git"], undefined],
    ["git__log", [], undefined],
  ])("%s among %j -> %s", (toolName, servers, owner) => {
    expect(
      serverByName(
        toolName,
        servers.map((name) => ({ name })),
      )?.name,
    ).toBe(owner);
  });
});
