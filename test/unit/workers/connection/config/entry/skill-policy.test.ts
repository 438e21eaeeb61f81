/** Owns: what the key `skills` says in each of its forms, and which of two is the stricter one. */
import { describe, expect, test } from "vitest";
import {
  ASK_FOR_SKILLS,
  type SkillPolicy,
  skillPolicy,
  skillsShape,
  stricterSkills,
} from "../../../../../../workers/connection/config/entry/skill-policy.ts";

const policy = (use: SkillPolicy["use"], dynamic = false): SkillPolicy => ({ use, dynamic });

test.each<[Parameters<typeof skillPolicy>[0], SkillPolicy]>([
  [undefined, ASK_FOR_SKILLS],
  [false, policy(false)],
  ["ask", policy("ask")],
  ["allow", policy("allow")],
  [{}, policy("ask")],
  [{ dynamic: true }, policy("ask", true)],
  [{ use: "allow", dynamic: true }, policy("allow", true)],
])("%j -> %j", (written, meant) => {
  expect(skillPolicy(written, ASK_FOR_SKILLS)).toEqual(meant);
});

test("what is not written comes from the setting", () => {
  expect(skillPolicy("ask", policy("allow", true))).toEqual(policy("ask", true));
  expect(skillPolicy({ dynamic: false }, policy("allow", true))).toEqual(policy("allow", false));
  expect(skillPolicy({ use: "ask" }, policy(false))).toEqual(policy("ask"));
  expect(skillPolicy(false, policy("allow", true))).toEqual(policy(false));
});

test.each([true, "never", "Allow", 1, null, [], { use: false }, { use: "always" }, { dynamic: "yes" }])(
  "%j -> no value of the key",
  (written) => {
    expect(skillsShape().safeParse(written).success).toBe(false);
  },
);

describe("the stricter of two", () => {
  test.each<[SkillPolicy, SkillPolicy, SkillPolicy, boolean]>([
    [policy("ask"), policy("allow"), policy("ask"), true],
    [policy("allow"), policy("ask"), policy("ask"), false],
    [policy(false), policy("ask"), policy(false), true],
    [policy("allow"), policy(false), policy(false), false],
    [policy("ask"), policy("ask", true), policy("ask"), true],
    [policy("ask", true), policy("ask"), policy("ask"), false],
    [policy("allow"), policy("ask", true), policy("ask"), true],
    [policy("ask"), policy("ask"), policy("ask"), false],
  ])("%j and wanted %j -> %j, asks for more: %j", (own, wanted, stricter, isLooser) => {
    expect(stricterSkills(own, wanted)).toEqual({ policy: stricter, isLooser });
  });
});
