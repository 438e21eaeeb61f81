/** Owns: names of commands where a server has a prompt and skills, or several skills, of one name. */
import { expect, test } from "vitest";
import { nameTools } from "../../../../../src/shared/naming.ts";
import { promptCommands } from "../../../../../workers/cache/snapshot/prepare-tools.ts";

const skill = (tool: string) => ({ name: "refunds", skillTool: tool });
const commandsOf = (...prompts: object[]) => {
  const server = { name: "docs", prompts } as unknown as Parameters<typeof promptCommands>[0][number];
  return (promptCommands([server]).get(0) ?? []).map(({ command, skillTool }) => [command, skillTool]);
};

test("a prompt and two skills of one name -> a command each, which does not depend on the order of the skills", () => {
  const [first, second] = [skill("skill_refunds_aaa"), skill("skill_refunds_bbb")];
  const expected = [
    ["mcp__docs__refunds", undefined],
    ["mcp__docs__skill_refunds_aaa", "skill_refunds_aaa"],
    ["mcp__docs__skill_refunds_bbb", "skill_refunds_bbb"],
  ];
  expect(commandsOf({ name: "refunds" }, first, second)).toEqual(expected);
  expect(commandsOf({ name: "refunds" }, second, first).sort()).toEqual(expected);
  expect(commandsOf(first)).toEqual([["mcp__docs__refunds", "skill_refunds_aaa"]]);
});

test("tools that have all in common -> a name each, and an end", () => {
  const { names } = nameTools(Array.from({ length: 5 }, () => ({ server: "docs", tool: "same" })));
  expect(new Set(names).size).toBe(5);
});
