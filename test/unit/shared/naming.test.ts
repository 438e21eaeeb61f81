/** Names of tools in Pi. */
import { describe, expect, it, test } from "vitest";
import {
  fittedName,
  localSpellingsOf,
  namePrefixes,
  nameTools,
  ownerOf,
  plainToolName,
  serverPrefix,
  shortHash,
  spellingsOf,
  type ToolPrefix,
} from "../../../src/shared/naming.ts";
import { createRandom } from "../random.ts";

interface Named {
  server: string;
  tool: string;
}

/** What every provider accepts: Gemini wants a letter or an underscore first. */
const VALID = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const HASHED = /_[0-9a-z]{6}$/;

const byKey = (tools: readonly Named[]): Map<string, string> => {
  const names = nameTools(tools).names;
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

describe("nameTools: names", () => {
  it.each([
    ["exactly 64 characters", 61, 64, false],
    ["65 characters", 62, 64, true],
    ["200 characters", 197, 64, true],
  ])("a name of %s -> at most 64, hashed only if it was cut", (_name, toolChars, length, hashed) => {
    const [name = ""] = nameTools([{ server: "s", tool: "t".repeat(toolChars) }]).names;
    expect(name).toHaveLength(length);
    expect(HASHED.test(name)).toBe(hashed);
  });

  test("two tools that want one name -> each gets its hash, neither keeps the plain name", () => {
    const names = nameTools([
      { server: "a-b", tool: "x" },
      { server: "a_b", tool: "x" },
      { server: "a_b", tool: "y" },
    ]).names;
    expect(new Set(names).size).toBe(3);
    expect(names[0]).toMatch(/^a_b__x_[0-9a-z]{6}$/);
    expect(names[1]).toMatch(/^a_b__x_[0-9a-z]{6}$/);
    expect(names[2]).toBe("a_b__y");
  });

  test("two long names with the same start -> two names", () => {
    const tool = "t".repeat(80);
    const names = nameTools([
      { server: "s", tool: `${tool}1` },
      { server: "s", tool: `${tool}2` },
    ]).names;
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

  test("a tool whose own name equals another tool's hashed name -> still two names", () => {
    const meeting = [
      { server: "s", tool: "a b" },
      { server: "s", tool: "a/b" },
    ];
    const [hashed = ""] = nameTools(meeting).names;
    const names = nameTools([...meeting, { server: "s", tool: hashed.slice("s__".length) }]).names;
    expect(new Set(names).size).toBe(3);
  });

  test("two long names with equal short hashes -> still two names", () => {
    const head = "t".repeat(70);
    // The first two of 355,580 numbered names whose hashes are equal.
    const pair = [`${head}1676`, `${head}355580`];
    expect(new Set(pair.map((tool) => shortHash(`s\u0000${tool}`))).size).toBe(1);
    const names = nameTools(pair.map((tool) => ({ server: "s", tool }))).names;
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
      expect([...names.values()].filter((name) => !VALID.test(name))).toEqual([]);
      expect([...byKey(tools.toReversed())].filter(([key, name]) => name !== names.get(key))).toEqual([]);
    }
  });

  test("no tools -> no names", () => {
    expect(nameTools([]).names).toEqual([]);
  });
});

it.each<[ToolPrefix, string, string, string]>([
  ["server", "github-mcp", "get-me", "github_mcp__get-me"],
  ["short", "github-mcp", "get-me", "github__get-me"],
  ["short", "mcp-github", "get-me", "github__get-me"],
  ["short", "mcp-server-mcp", "x", "server__x"],
  ["short", "github_MCP", "x", "github__x"],
  ["short", "mcp", "x", "mcp__x"],
  ["short", "mcp-", "x", "mcp___x"],
  ["short", "mcphub", "x", "mcphub__x"],
  ["none", "github", "get.me", "get_me"],
  ["mcp", "git-hub", "get-me", "mcp__git_hub__get-me"],
  ["server", "1password", "list", "_1password__list"],
  ["server", "-x", "list", "_x__list"],
  ["short", "mcp-1password", "list", "_1password__list"],
  ["mcp", "1password", "list", "mcp__1password__list"],
  ["none", "blender", "3d_render", "_3d_render"],
  ["none", "blender", "-x", "_-x"],
])("plainToolName: %s, %j %j -> %j", (prefix, server, tool, name) => {
  expect(plainToolName(server, tool, prefix)).toBe(name);
});

describe("nameTools", () => {
  const none = (server: string, tool: string) => ({ server, tool, prefix: "none" as const });

  test.each([
    "read",
    "bash",
    "edit",
    "write",
    "grep",
    "find",
    "ls",
    "powershell",
    "Read",
    "ToolSearch",
    "mcp",
  ])("%s without prefix -> the server's whole name, and the collision is reported", (tool) => {
    expect(nameTools([none("fs", tool)])).toEqual({
      names: [`fs__${tool}`],
      bare: [false],
      collisions: [{ server: "fs", tool, wanted: tool, name: `fs__${tool}`, holder: "Pi" }],
    });
  });

  test("two tools with one bare name -> the first gets it, the second gets its server's name, the collision names both", () => {
    expect(nameTools([none("a", "search"), none("b", "search"), none("b", "open")])).toEqual({
      names: ["search", "b__search", "open"],
      bare: [true, false, true],
      collisions: [{ server: "b", tool: "search", wanted: "search", name: "b__search", holder: "a" }],
    });
  });

  test("a short name that equals another tool's whole name -> the tool with the whole name gets it", () => {
    const { names, bare } = nameTools([
      { server: "git-mcp", tool: "log", prefix: "short" },
      { server: "git", tool: "log" },
      none("x", "git__log"),
    ]);
    expect(names).toEqual(["git_mcp__log", "git__log", "x__git__log"]);
    expect(bare).toEqual([false, false, false]);
  });

  test("two equal whole names -> both are hashed and reported", () => {
    const { collisions } = nameTools([
      { server: "a-b", tool: "x" },
      { server: "a_b", tool: "x" },
    ]);
    expect(collisions.map(({ server, wanted }) => [server, wanted])).toEqual([
      ["a-b", "a_b__x"],
      ["a_b", "a_b__x"],
    ]);
  });

  test("a bare name of 200 characters -> cut, hashed, no collision", () => {
    const { names, collisions } = nameTools([none("s", "t".repeat(200)), none("s", `${"t".repeat(200)}2`)]);
    for (const name of names) expect(name).toMatch(/^t{57}_[0-9a-z]{6}$/);
    expect(new Set(names).size).toBe(2);
    expect(collisions).toEqual([]);
  });

  test("500 random catalogs in mixed modes -> every name is valid and unique, and none is a name of Pi's own tools", () => {
    const random = createRandom(20_261_121);
    const modes = ["server", "short", "none", "mcp"] as const;
    const words = [
      "a",
      "b",
      "mcp",
      "a-mcp",
      "mcp-a",
      "read",
      "ls",
      "a__b",
      "mcp__a",
      "é",
      "1",
      "-1",
      "mcp-1",
      "_1",
    ];
    const word = (): string => words[random.below(words.length)] ?? "";
    for (let round = 0; round < 500; round++) {
      const unique = new Map<string, { server: string; tool: string; prefix: ToolPrefix }>();
      const modeOf = new Map<string, ToolPrefix>();
      for (let i = random.below(30); i >= 0; i--) {
        const [server, tool] = [word(), word()];
        const prefix = modeOf.get(server) ?? modes[random.below(modes.length)] ?? "server";
        modeOf.set(server, prefix);
        unique.set(`${server}\u0000${tool}`, { server, tool, prefix });
      }
      const { names } = nameTools([...unique.values()]);
      expect(new Set(names).size, JSON.stringify([...unique.values()])).toBe(unique.size);
      expect(names.filter((name) => !VALID.test(name) || ["read", "ls", "mcp"].includes(name))).toEqual([]);
    }
  });
});

describe("a name that would begin with a digit", () => {
  const LONG = "t".repeat(90);
  it.each<[string, string, string]>([
    ["1password", "list", "1password__list"],
    ["mcp-1password", "list", "1password__list"],
    ["blender", "3d_render", "3d_render"],
    ["1password", LONG, `1password__${LONG}`.slice(0, 56)],
  ])(
    "%s %.10s -> what it was before, %.12s, is a spelling too, and its own part as well",
    (server, tool, before) => {
      expect(spellingsOf(server, tool)).toContainEqual(expect.stringMatching(new RegExp(`^_${before}`)));
      expect(spellingsOf(server, tool)).toContainEqual(expect.stringMatching(new RegExp(`^${before}`)));
      expect(localSpellingsOf(server, tool)).toContain(fittedName({ server, tool, prefix: "none" }));
      for (const name of spellingsOf(server, tool)) {
        const prefix = namePrefixes(server).find((one) => name.startsWith(one)) ?? "";
        expect(localSpellingsOf(server, tool)).toContain(name.slice(prefix.length));
      }
    },
  );

  it.each(["1password__list", "_1password__list", "1password.list"])(
    "%s -> owned by 1password",
    (written) => {
      expect(ownerOf(written, ["github", "1password"])).toBe("1password");
    },
  );
});

test("fittedName: any tool -> its server's whole name, bounded", () => {
  expect(fittedName({ server: "my-fs", tool: "open" })).toBe("my_fs__open");
  expect(fittedName({ server: "s", tool: "t".repeat(90) })).toHaveLength(64);
});

test("several tools of one name at one server, which no server should have -> it ends, and each has a name of its own", () => {
  const same = { server: "s", tool: "t", prefix: "mcp" as const };
  for (const prefix of ["mcp", "server", "short", "none"] as const) {
    const { names } = nameTools(
      [same, same, same, { server: "s", tool: "other" }].map((tool) => ({ ...tool, prefix })),
    );
    expect(new Set(names).size).toBe(4);
  }
});
