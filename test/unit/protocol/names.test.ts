/** Owns: how MCP tools are named in Pi. */
import { describe, expect, it, test } from "vitest";
import { assignToolNames, plainToolName, serverPrefix, shortHash } from "../../../src/protocol/names.ts";
import { createRandom } from "../random.ts";

interface Named {
  server: string;
  tool: string;
}

const VALID = /^[A-Za-z0-9_-]{1,64}$/;
const HASHED = /_[0-9a-z]{6}$/;

const byKey = (tools: readonly Named[]): Map<string, string> => {
  const names = assignToolNames(tools);
  return new Map(tools.map(({ server, tool }, i) => [`${server}\u0000${tool}`, names[i] ?? ""]));
};

it.each([
  ["github", "github"],
  ["my-server", "my_server"],
  ["My.Server 2", "My_Server_2"],
  ["ünï", "_n_"],
  ["a/b:c", "a_b_c"],
  ["😀", "__"],
])("serverPrefix: %j -> %j", (server, prefix) => {
  expect(serverPrefix(server)).toBe(prefix);
});

it.each([
  ["github", "create_issue", "github__create_issue"],
  ["my-server", "read-file", "my_server__read-file"],
  ["fs", "read.file/now", "fs__read_file_now"],
  ["fs", "読む", "fs____"],
])("plainToolName: %j %j -> %j", (server, tool, name) => {
  expect(plainToolName(server, tool)).toBe(name);
});

test("shortHash: any text -> six characters of [0-9a-z], the same each time", () => {
  for (const text of ["", "a", "b", "a\u0000b", "漢字", "x".repeat(1_000)]) {
    expect(shortHash(text)).toMatch(/^[0-9a-z]{6}$/);
    expect(shortHash(text)).toBe(shortHash(text));
  }
  expect(shortHash("a")).not.toBe(shortHash("b"));
});

describe("assignToolNames", () => {
  it.each([
    ["exactly 64 characters", 61, 64, false],
    ["65 characters", 62, 64, true],
    ["200 characters", 197, 64, true],
  ])("a name of %s -> at most 64, hashed only if it was cut", (_name, toolChars, length, hashed) => {
    const [name = ""] = assignToolNames([{ server: "s", tool: "t".repeat(toolChars) }]);
    expect(name).toHaveLength(length);
    expect(HASHED.test(name)).toBe(hashed);
  });

  test("two tools that meet in one name -> each gets its hash, neither keeps the plain one", () => {
    const names = assignToolNames([
      { server: "a-b", tool: "x" },
      { server: "a_b", tool: "x" },
      { server: "a_b", tool: "y" },
    ]);
    expect(new Set(names).size).toBe(3);
    expect(names[0]).toMatch(/^a_b__x_[0-9a-z]{6}$/);
    expect(names[1]).toMatch(/^a_b__x_[0-9a-z]{6}$/);
    expect(names[2]).toBe("a_b__y");
  });

  test("two long names with one head -> two names", () => {
    const tool = "t".repeat(80);
    const names = assignToolNames([
      { server: "s", tool: `${tool}1` },
      { server: "s", tool: `${tool}2` },
    ]);
    expect(new Set(names).size).toBe(2);
  });

  test("any order of the tools -> each tool has the same name", () => {
    const tools = [
      { server: "a-b", tool: "x" },
      { server: "a_b", tool: "x" },
      { server: "a.b", tool: "x" },
      { server: "s", tool: "t".repeat(90) },
      { server: "s", tool: "alone" },
    ];
    const expected = byKey(tools);
    expect(byKey(tools.toReversed())).toEqual(new Map([...expected].reverse()));
    for (let shift = 1; shift < tools.length; shift++) {
      const turned = [...tools.slice(shift), ...tools.slice(0, shift)];
      for (const [key, name] of byKey(turned)) expect(name).toBe(expected.get(key));
    }
  });

  test("a tool whose own name is another's hashed name -> still two names", () => {
    const meeting = [
      { server: "s", tool: "a b" },
      { server: "s", tool: "a/b" },
    ];
    const [hashed = ""] = assignToolNames(meeting);
    const names = assignToolNames([...meeting, { server: "s", tool: hashed.slice("s__".length) }]);
    expect(new Set(names).size).toBe(3);
  });

  test("two long names whose short hashes meet -> still two names", () => {
    const head = "t".repeat(70);
    const seen = new Map<string, string>();
    let pair: [string, string] | undefined;
    for (let i = 0; !pair; i++) {
      const tool = `${head}${i}`;
      const hash = shortHash(`s\u0000${tool}`);
      const other = seen.get(hash);
      if (other !== undefined) pair = [other, tool];
      seen.set(hash, tool);
    }
    const names = assignToolNames(pair.map((tool) => ({ server: "s", tool })));
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(VALID);
  });

  test("500 random catalogs -> every name valid, unique, and independent of the order", () => {
    const random = createRandom(20_251_125);
    const alphabet = ["a", "b", "A", "-", "_", ".", " ", "/", "é", "漢", "😀", "0"];
    const text = (most: number): string =>
      Array.from({ length: 1 + random.below(most) }, () => alphabet[random.below(alphabet.length)]).join("");
    for (let round = 0; round < 500; round++) {
      const unique = new Map<string, Named>();
      const count = 1 + random.below(40);
      for (let i = 0; i < count; i++) {
        const named = { server: text(4), tool: text(random.below(4) === 0 ? 80 : 3) };
        unique.set(`${named.server}\u0000${named.tool}`, named);
      }
      const tools = [...unique.values()];
      const names = byKey(tools);
      expect(new Set(names.values()).size, JSON.stringify(tools)).toBe(tools.length);
      for (const name of names.values()) expect(name).toMatch(VALID);
      for (const [key, name] of byKey(tools.toReversed())) expect(name).toBe(names.get(key));
    }
  });

  test("no tools -> no names", () => {
    expect(assignToolNames([])).toEqual([]);
  });
});
