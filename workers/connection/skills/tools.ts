/**
 * Skills of a server as tools: one for each skill, which answers its SKILL.md or another of its files, and one that takes the
 * address of a skill that the server does not list. To the rules, the catalog and the search they are tools like any other.
 * Must not: talk to servers. Pure.
 */
import { SKILL_BY_ADDRESS, shortHash } from "../../../src/shared/naming.ts";
import type { ShownSkill } from "../../../src/shared/protocol/calls.ts";
import { counted, formatBytes } from "../../../src/shared/text/amounts.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CachedTool } from "../../shared/listed.ts";
import { bytesOf, type CachedSkill, pathIn, rootOf } from "../../shared/skills.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";

/** What a tool for skills loads: this skill, or, without one, the skill whose address the call names. */
export interface SkillTool {
  tool: CachedTool;
  skill: CachedSkill | undefined;
}

const NAME_CHARS = 200;
const DESCRIPTION_CHARS = 500;

const FILE = {
  file: {
    type: "string",
    description: "Path of another file of the skill. Without it: the skill's instructions.",
  },
  line: { type: "integer", minimum: 1, description: "First line of the file to show." },
};

const inputSchema = (properties: object, required: readonly string[] = []): Record<string, unknown> => ({
  type: "object",
  properties: { ...properties, ...FILE },
  ...(required.length > 0 ? { required } : {}),
  additionalProperties: false,
});

/** For example `3 files, 12.1 KB`. Of a skill that is at fault the files are not kept. */
export function sizeText(skill: CachedSkill): string {
  if (skill.fault !== undefined) return "not known";
  const bytes = bytesOf(skill);
  if (bytes === undefined) return "its files change each time";
  return `${counted(skill.resources.length, "file")}, ${formatBytes(bytes)}`;
}

/** The tool that takes an address. Its description is short, since it is rarely what is meant. */
const byAddress: CachedTool = {
  name: SKILL_BY_ADDRESS,
  title: "Skill by its address",
  description: "Loads a skill of this server by its address, also one that the server does not list.",
  inputSchema: inputSchema(
    { uri: { type: "string", description: "Address of its SKILL.md, such as skill://name/SKILL.md." } },
    ["uri"],
  ),
  annotations: { readOnlyHint: true },
};

const toolFor = (skill: CachedSkill, name: string): CachedTool => ({
  name,
  title: skill.name,
  description: `Skill ${skill.name}: ${skill.description}`,
  inputSchema: inputSchema({}),
  annotations: { readOnlyHint: true },
});

const made = new WeakMap<
  readonly CachedSkill[],
  { taken: readonly CachedTool[]; tools: Map<string, SkillTool> }
>();

interface OfServer {
  definition: Pick<ServerDefinition, "skillPolicy">;
  skills: readonly CachedSkill[] | undefined;
}

/**
 * By tool name, none if the server's skills are not wanted. `taken`: tools of the server, whose names stay theirs. Skills of one
 * name get a hash of their address behind it, so that no name depends on the order of the list. Answers the same objects for
 * the same lists, because tools are compared by identity.
 */
export function skillTools(
  { definition, skills }: OfServer,
  taken: readonly CachedTool[],
): ReadonlyMap<string, SkillTool> {
  if (!skills || definition.skillPolicy.use === false) return NONE;
  const before = made.get(skills);
  if (before?.taken === taken) return before.tools;
  const usable = skills.filter(
    ({ fault, resources }) =>
      fault === undefined && (resources !== "dynamic" || definition.skillPolicy.dynamic),
  );
  const wanted = (skill: CachedSkill): string => `skill_${skill.name.replaceAll("-", "_")}`;
  const uses = new Map<string, number>(
    [...taken.map(({ name }) => name), SKILL_BY_ADDRESS].map((name) => [name, 1]),
  );
  for (const skill of usable) uses.set(wanted(skill), (uses.get(wanted(skill)) ?? 0) + 1);
  const tools = new Map<string, SkillTool>();
  /** With a hash it may be the whole name of another tool or skill, which keeps it. */
  const withHash = (own: string, uri: string): string => {
    for (let salt = 0; ; salt++) {
      const name = `${own}_${shortHash(salt === 0 ? uri : `${uri} ${salt}`)}`;
      if (!uses.has(name) && !tools.has(name)) return name;
    }
  };
  for (const skill of usable) {
    const own = wanted(skill);
    const name = uses.get(own) === 1 ? own : withHash(own, skill.uri);
    tools.set(name, { skill, tool: toolFor(skill, name) });
  }
  if (!taken.some(({ name }) => name === SKILL_BY_ADDRESS))
    tools.set(SKILL_BY_ADDRESS, { skill: undefined, tool: byAddress });
  made.set(skills, { taken, tools });
  return tools;
}

const NONE: ReadonlyMap<string, SkillTool> = new Map();

interface Folder {
  /** With a slash behind it. */
  root: string;
  skill: CachedSkill;
}

const outermost = new WeakMap<readonly CachedSkill[], readonly Folder[]>();

/** The folders of the skills that lie in no other one, in the order of their addresses. */
function foldersOf(skills: readonly CachedSkill[]): readonly Folder[] {
  const before = outermost.get(skills);
  if (before) return before;
  const all = skills.map((skill) => ({ root: `${rootOf(skill)}/`, skill }));
  const folders: Folder[] = [];
  for (const folder of all.sort((a, b) => (a.root < b.root ? -1 : 1))) {
    const outer = folders.at(-1);
    if (!outer || !folder.root.startsWith(outer.root)) folders.push(folder);
  }
  outermost.set(skills, folders);
  return folders;
}

/**
 * The skill to which a resource of the server belongs: such a resource is read as a part of the skill alone. None if the
 * server's skills are not wanted: then their files are resources like any other.
 */
export function skillWith({ definition, skills }: OfServer, uri: string): CachedSkill | undefined {
  if (!skills || definition.skillPolicy.use === false) return undefined;
  const folders = foldersOf(skills);
  // The last folder that is not behind the address is the only one that can begin it, since none lies in another.
  let [from, to] = [0, folders.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((folders[middle] as Folder).root <= uri) from = middle + 1;
    else to = middle;
  }
  const skill = folders[from - 1]?.skill;
  return skill && pathIn(skill, uri) !== undefined ? skill : undefined;
}

/** As a person reads them, also those that cannot be loaded. */
export function shownSkills(server: OfServer & { tools: readonly CachedTool[] | undefined }): ShownSkill[] {
  const tools = new Map(
    [...skillTools(server, server.tools ?? [])].map(([name, { skill }]) => [skill?.uri, name] as const),
  );
  return (server.skills ?? []).map((skill) => {
    const tool = tools.get(skill.uri);
    const problem =
      skill.fault ??
      (skill.resources === "dynamic" ? "its files change each time, so nobody can check them" : undefined);
    return {
      uri: skill.uri,
      name: oneLine(skill.name, NAME_CHARS),
      description: oneLine(skill.description, DESCRIPTION_CHARS),
      size: sizeText(skill),
      ...(tool === undefined
        ? { problem: oneLine(problem ?? "its skills are switched off", DESCRIPTION_CHARS) }
        : { tool }),
    };
  });
}
