/** Owns: the words and choices of the question whether a skill may be loaded. */
import { expect, test } from "vitest";
import type { SkillQuestion } from "../../../../src/shared/protocol/calls.ts";
import { askAboutSkill } from "../../../../src/ui/skills/questions.ts";
import { createRecordingContext } from "../../recording-context.ts";

const QUESTION: SkillQuestion = {
  server: "docs",
  uri: "skill://pdf/SKILL.md",
  name: "pdf",
  content: "a".repeat(64),
  description: "Reads PDF files",
  files: "SKILL.md  12 bytes",
  canAlways: true,
};
const LOAD = ["No", "Load it for this session", "Load it always, until it changes"];

test.each([
  ["all of it is shown", {}, LOAD],
  ["nobody can check it", { canAlways: false }, LOAD.slice(0, 2)],
  ["it has many files", { files: "a.md  1 bytes\n".repeat(100) }, [...LOAD, "Show all of it"]],
])("%s -> the choices, of which the first loads nothing", async (_what, more, choices) => {
  const { ctx, dialogs } = createRecordingContext({ hasUI: true, mode: "rpc", select: () => "No" });
  expect(await askAboutSkill(ctx, { ...QUESTION, ...more }, new AbortController().signal)).toBe("no");
  expect(dialogs[0]?.options).toEqual(choices);
  expect(dialogs[0]?.title).toMatch(/^Load the skill pdf of the MCP server docs\?.*\n│ Reads PDF files\n/);
});
