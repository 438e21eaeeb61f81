/** Owns: when a skill that a person's command loads is written into the transcript: at once, and beside its text. */
import { expect, test } from "vitest";
import type { LoadedSkill } from "../../../src/shared/protocol/calls.ts";
import { createLoadedSkills } from "../../../src/skills/skills.ts";
import { makeCatalog } from "../make-catalog.ts";

const SKILL: LoadedSkill = { server: "docs", uri: "skill://pdf/SKILL.md", name: "pdf", content: "a" };
const START = '[This is the skill pdf of "docs".\n]';

function setup() {
  const entries: unknown[] = [];
  const catalog = makeCatalog([]);
  const skills = createLoadedSkills({
    pi: { appendEntry: (_type, data) => void entries.push(data), getAllTools: () => [] },
    catalog: () => catalog,
    agentDir: "/agent",
    ownTool: () => undefined,
    judge: async () => undefined,
    inTurn: (task) => task(),
    log: () => undefined,
  });
  return { skills, entries };
}

test.each([
  ["as blocks", [{ type: "text", text: `${START}\nand more` }]],
  ["as a text", `${START}\nand more`],
])("a message with the text that was to come, %s -> one more entry, once", (_how, content) => {
  const { skills, entries } = setup();
  skills.sending(SKILL, START);
  expect(entries).toEqual([SKILL]);
  skills.messageEnded({ role: "user", content: [{ type: "text", text: "another" }] });
  skills.messageEnded({ role: "toolResult", content });
  expect(entries).toEqual([SKILL]);
  skills.messageEnded({ role: "user", content });
  skills.messageEnded({ role: "user", content });
  expect(entries).toEqual([SKILL, SKILL]);
});
