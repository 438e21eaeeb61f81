/** Owns: which skills of a server become tools, and under which names. */
import { describe, expect, test } from "vitest";
import { SKILL_BY_ADDRESS, shortHash } from "../../../../../src/shared/naming.ts";
import { DEFAULT_SETTINGS } from "../../../../../workers/connection/config/entry/settings.ts";
import type { SkillPolicy } from "../../../../../workers/connection/config/entry/skill-policy.ts";
import { sizeText, skillTools, skillWith } from "../../../../../workers/connection/skills/tools.ts";
import { allTools, exposedTools, resourceReader } from "../../../../../workers/connection/tools/listed.ts";
import { type CachedSkill, normalizeSkill, pathIn } from "../../../../../workers/shared/skills.ts";
import { definitionOf } from "../servers/support.ts";

const digest = `sha256:${"a".repeat(64)}`;

function skill(path: string, over: object = {}): CachedSkill {
  const uri = `skill://${path}/SKILL.md`;
  const made = normalizeSkill({
    uri,
    frontmatter: { name: path.split("/").at(-1), description: `Does ${path}.` },
    resources: [{ uri, digest, size: 10 }],
    ...over,
  });
  if (!made) throw new Error("no skill");
  return made;
}

const ASK: SkillPolicy = { use: "ask", dynamic: false };
const namesOf = (skills: CachedSkill[], taken: string[] = [], policy = ASK): Record<string, string> =>
  Object.fromEntries(
    [
      ...skillTools(
        { definition: { skillPolicy: policy }, skills },
        taken.map((name) => ({ name })),
      ),
    ]
      .filter(([name]) => name !== SKILL_BY_ADDRESS)
      .map(([name, { skill: one }]) => [name, one?.uri ?? ""]),
  );
const hashed = (name: string, path: string): string => `${name}_${shortHash(`skill://${path}/SKILL.md`)}`;

test("one tool for each skill, and one for addresses", () => {
  const skills = [skill("pdf-files"), skill("acme/refunds")];
  const tools = skillTools({ definition: { skillPolicy: ASK }, skills }, []);
  expect([...tools.keys()]).toEqual(["skill_pdf_files", "skill_refunds", SKILL_BY_ADDRESS]);
  expect(tools.get("skill_pdf_files")).toMatchObject({
    skill: { uri: "skill://pdf-files/SKILL.md" },
    tool: {
      title: "pdf-files",
      description: "Skill pdf-files: Does pdf-files.",
      annotations: { readOnlyHint: true },
    },
  });
  expect(tools.get(SKILL_BY_ADDRESS)?.tool.inputSchema).toMatchObject({ required: ["uri"] });
});

test("the same lists -> the same objects, since tools are compared by identity", () => {
  const [skills, taken] = [[skill("a")], [{ name: "t" }]];
  const made = () => skillTools({ definition: { skillPolicy: ASK }, skills }, taken);
  expect(made()).toBe(made());
});

describe("skills that are not offered", () => {
  const broken = skill("broken", { resources: [] });
  const changing = skill("changing", { resources: "dynamic" });

  test("a fault, and files that nobody can check", () => {
    expect(namesOf([broken, changing, skill("a")])).toEqual({ skill_a: "skill://a/SKILL.md" });
  });

  test("the latter if the user allows them", () => {
    expect(Object.keys(namesOf([broken, changing], [], { use: "ask", dynamic: true }))).toEqual([
      "skill_changing",
    ]);
  });

  test("all if skills are switched off; none known -> no tool for addresses either", () => {
    expect(
      skillTools({ definition: { skillPolicy: { use: false, dynamic: false } }, skills: [skill("a")] }, [])
        .size,
    ).toBe(0);
    expect(skillTools({ definition: { skillPolicy: ASK }, skills: undefined }, []).size).toBe(0);
    expect([...skillTools({ definition: { skillPolicy: ASK }, skills: [] }, []).keys()]).toEqual([
      SKILL_BY_ADDRESS,
    ]);
  });
});

describe("names that collide", () => {
  test("skills of one name get a hash of their address each, in any order", () => {
    const [billing, support] = [skill("acme/billing/refunds"), skill("acme/support/refunds")];
    const names = {
      [hashed("skill_refunds", "acme/billing/refunds")]: billing.uri,
      [hashed("skill_refunds", "acme/support/refunds")]: support.uri,
    };
    expect(namesOf([billing, support])).toEqual(names);
    expect(namesOf([support, billing])).toEqual(names);
  });

  test("a broken skill of the same name takes nothing from the sound one", () => {
    expect(Object.keys(namesOf([skill("x/a", { resources: [] }), skill("y/a")]))).toEqual(["skill_a"]);
  });

  test("a tool of the server keeps its name", () => {
    expect(namesOf([skill("a")], ["skill_a"])).toEqual({ [hashed("skill_a", "a")]: "skill://a/SKILL.md" });
    expect(Object.keys(namesOf([skill("by-address")]))).toEqual([hashed(SKILL_BY_ADDRESS, "by-address")]);
    const tools = skillTools({ definition: { skillPolicy: ASK }, skills: [] }, [{ name: SKILL_BY_ADDRESS }]);
    expect(tools.size).toBe(0);
  });

  test("a skill or a tool whose own name is the name with the hash -> every skill is still there", () => {
    const [one, two] = [skill("x/a"), skill("y/a")];
    const hash = shortHash(one.uri);
    const third = skill(`a-${hash}`);
    const names = namesOf([one, two, third], [hashed("skill_a", "y/a")]);
    expect(Object.values(names).sort()).toEqual([one.uri, two.uri, third.uri].sort());
    expect(names[`skill_a_${hash}`]).toBe(third.uri);
    expect(names[hashed("skill_a", "y/a")]).toBeUndefined();
  });
});

test("what files a skill has, in words", () => {
  expect(sizeText(skill("a"))).toBe("1 file, 10 B");
  expect(sizeText(skill("a", { resources: "dynamic" }))).toBe("its files change each time");
});

describe("a resource", () => {
  const ofServer = (skills: CachedSkill[] | undefined, use: false | "ask" = "ask") => ({
    definition: { skillPolicy: { use, dynamic: false } },
    skills,
  });

  test("it belongs to the skill in whose folder it lies", () => {
    const server = ofServer([skill("acme/a"), skill("acme/a/b")]);
    expect(skillWith(server, "skill://acme/a/x.md")?.name).toBe("a");
    for (const uri of ["skill://acme/a", "skill://acme/ax.md", "x"])
      expect(skillWith(server, uri)).toBeUndefined();
    expect(skillWith(ofServer(undefined), "skill://acme/a/x.md")).toBeUndefined();
  });

  test("skills that are switched off -> a resource like any other", () => {
    expect(skillWith(ofServer([skill("acme/a")], false), "skill://acme/a/x.md")).toBeUndefined();
  });

  test("folders that begin alike, lie in each other and stand in any order -> the same as a look at each", () => {
    const paths = ["b", "a-b", "a", "a/b", "a.b", "ab", "a/b/c", "c/d", "\u{10000}", "\uffff", "a!", "b/a"];
    for (const order of [paths, paths.toReversed()]) {
      const skills = order.map((path) => ({ ...skill("x"), uri: `skill://${path}/SKILL.md` }));
      for (const path of [...paths, "", "c", "zz", "a/c"])
        for (const end of ["", "/", "/x", "/b/x", "/SKILL.md", "x"]) {
          const uri = `skill://${path}${end}`;
          const isInOne = skills.some((one) => pathIn(one, uri) !== undefined);
          expect(skillWith(ofServer(skills), uri) !== undefined, uri).toBe(isInOne);
        }
    }
  });
});

describe("among the other tools of the server", () => {
  const resources = {
    resources: [
      { name: "a", uri: "skill://a/SKILL.md" },
      { name: "note", uri: "x://note" },
    ],
    templates: [],
  };
  const server = (entry: object) => ({
    name: "s",
    definition: definitionOf("s", entry),
    tools: [{ name: "t" }],
    resources,
    skills: [skill("a")],
    excludes: () => false,
    redact: (text: string) => text,
  });

  test("its files are no tools of their own; they are, if skills are switched off", () => {
    const names = (entry: object) => allTools(server(entry)).map(({ name }) => name);
    expect(names({})).toEqual(["t", "get_note", "skill_a", SKILL_BY_ADDRESS]);
    expect(names({ skills: false })).toEqual(["t", "get_a", "get_note"]);
  });

  test("each says what kind it is, and rules hide skills as they hide tools", () => {
    const kinds = (entry: object) =>
      exposedTools(server(entry) as never, DEFAULT_SETTINGS).map(({ name, kind }) => [name, kind]);
    expect(kinds({})).toEqual([
      ["t", undefined],
      ["get_note", "resource"],
      ["skill_a", "skill"],
      [SKILL_BY_ADDRESS, "skill"],
    ]);
    expect(kinds({ excludeTools: ["skill_*"] }).map(([name]) => name)).toEqual(["t", "get_note"]);
  });

  test("no sentence tells the model to read a file of a skill as a resource", () => {
    const one = server({});
    const read = resourceReader(one as never, { servers: [one] as never, settings: DEFAULT_SETTINGS });
    expect(read("x://note")).toMatch(/Read it with the tool/);
    expect(read("skill://a/SKILL.md")).toBeUndefined();
  });
});
