/** Owns: which tools a branch has declared, read from a transcript as Pi stores it. */
import { describe, expect, it, test } from "vitest";
import { declaredTools } from "../../../src/tools/branch-tools.ts";

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

  test("a tool declared twice -> as it was last", () => {
    const branch = [system({ toolsAdded: [tool("a", "old")] }), system({ toolsAdded: [tool("a", "new")] })];
    expect(declaredTools(branch).get("a")?.description).toBe("new");
  });

  test("a transcript that somebody edited -> what is whole in it", () => {
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
