/** Owns: which prompts of a catalog become commands, and under which names and texts. */
import { expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { promptCommands } from "../../../../../workers/cache/snapshot/prepare-tools.ts";
import type { CachedPrompt } from "../../../../../workers/shared/listed.ts";
import type { CatalogServer } from "../../../../../workers/shared/tasks.ts";

const server = (name: string, prompts?: CachedPrompt[]): CatalogServer => ({
  name,
  project: false,
  toolsKnown: true,
  tools: [],
  ...(prompts ? { prompts } : {}),
});
const commandsOf = (...servers: CatalogServer[]): string[] =>
  [...promptCommands(servers).values()].flat().map(({ command }) => command);

test("prompts of two servers -> by the server's position, with clean texts on one line", () => {
  const commands = promptCommands([
    server("none"),
    server("my-fs", [
      {
        name: "Review code!",
        title: "Review",
        description: "Reviews\n\u001b[2Jcode.",
        arguments: [{ name: "path", description: "Where\u202e", required: true }, { name: "style" }],
      },
      { name: "titled", title: "Only a title" },
    ]),
  ]);
  expect([...commands]).toEqual([
    [
      1,
      [
        {
          command: "mcp__my_fs__Review_code_",
          prompt: "Review code!",
          description: "Reviews code.",
          arguments: [{ name: "path", description: "Where", required: true }, { name: "style" }],
        },
        { command: "mcp__my_fs__titled", prompt: "titled", description: "Only a title" },
      ],
    ],
  ]);
});

test("names that are equal once they are written as commands, or too long -> each has a hash and 64 characters at most", () => {
  const names = commandsOf(server("s", [{ name: "a b" }, { name: "a_b" }, { name: "x".repeat(100) }]));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^mcp__s__[A-Za-z0-9_-]{1,56}$/);
});

it.each(["two words", "a=b", 'q"', "", "x".repeat(LIMITS.promptArgumentChars + 1), "\u001b[2J"])(
  "an argument %j, which nobody can type -> left out; if it is required, the prompt is",
  (name) => {
    const prompts = [
      { name: "free", arguments: [{ name }] },
      { name: "bound", arguments: [{ name, required: true }] },
    ];
    expect([...promptCommands([server("s", prompts)]).values()]).toEqual([
      [{ command: "mcp__s__free", prompt: "free" }],
    ]);
  },
);

test("more prompts than commands -> each server has its first ones", () => {
  const many = Array.from({ length: 200 }, (_, i) => ({ name: `p${i}` }));
  const names = commandsOf(server("many", many), server("few", [{ name: "one" }, { name: "two" }]));
  expect(names).toHaveLength(LIMITS.promptCommands);
  expect(names).toContain("mcp__few__two");
  expect(names).toContain(`mcp__many__p${LIMITS.promptCommands - 3}`);
});

test("a long description -> cut", () => {
  const [[command] = []] = [
    ...promptCommands([server("s", [{ name: "p", description: "x".repeat(5_000) }])]).values(),
  ];
  expect(command?.description).toHaveLength(LIMITS.promptDescriptionChars);
});
