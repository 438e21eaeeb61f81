/**
 * Skills that a server lists, or that a cache file holds, checked and bounded (the extension io.modelcontextprotocol/skills,
 * SEP-2640, specification/stable/skills.mdx: "Skill Entries", "Resources", "Limits"). A server is untrusted: an entry that
 * names no skill is left out; one that breaks a rule is kept with its fault, by which a person learns why it cannot be used.
 */
import { createHash } from "node:crypto";
import type { LoadedSkill } from "../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { asList, isObject } from "../../src/shared/protocol/values.ts";
import { grouped } from "../../src/shared/text/amounts.ts";
import { cut } from "../../src/shared/text/unprintable.ts";
import { canonical, isWithin } from "./json.ts";

export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";

/**
 * What a server declares of its skills ("Capability Negotiation"); undefined: it serves none. `directories`: it also lists its
 * folders.
 */
export function declaredSkills({
  extensions,
}: Record<string, unknown>): { directories: boolean } | undefined {
  const declared = isObject(extensions) ? extensions[SKILLS_EXTENSION] : undefined;
  return isObject(declared) ? { directories: declared.directoryRead === true } : undefined;
}

/** One file of a skill. `digest`: `sha256:` and 64 lower-case hexadecimal digits. `size`: in bytes. */
export interface SkillFile {
  uri: string;
  digest: string;
  size: number;
}

export interface CachedSkill {
  /** Of its SKILL.md. With the user's name of the server it is the skill's identity. */
  uri: string;
  /** A label: two skills may have the same. */
  name: string;
  description: string;
  /** As the server says that SKILL.md has it. */
  frontmatter: Record<string, unknown>;
  /** `dynamic`: the server makes the files anew each time, so nothing about them can be checked. */
  resources: SkillFile[] | "dynamic";
  /** Why the skill cannot be used, worded to follow a colon. Absent: the entry is sound. */
  fault?: string;
}

const ENTRY_FILE = "/SKILL.md";
const URI_CHARS = 2_000;
const DESCRIPTION_CHARS = 2_000;
/** The faults that this file finds; `#`: a number. */
const FAULTS = {
  name: "its name is not one that a skill can have",
  address: "its address does not end with its name",
  files: "it does not say which files it has",
  manyFiles: "it has # files, at most # are possible",
  fileAddress: "one of its files has no usable address",
  outside: "one of its files lies outside of its folder",
  twice: "it lists a file twice",
  digest: "one of its files has no SHA-256 digest",
  size: "one of its files has no size",
  entryFile: "it does not list its own SKILL.md",
  manyBytes: "its files have # bytes, at most # are possible",
  frontmatter: "its frontmatter is too long",
  description: "it has no description",
};
const withNumbers = (fault: string, ...numbers: number[]): string =>
  fault.replace(/#/g, () => grouped(numbers.shift() ?? 0));
const OURS = new Set(Object.values(FAULTS));
const FAULT_CHARS = 200;
const isOurs = (fault: string): boolean =>
  fault.length <= FAULT_CHARS &&
  !fault.includes("#") &&
  (OURS.has(fault) || OURS.has(fault.replace(/\d[\d,]*/g, "#")));
const FRONTMATTER = { depth: 16, nodes: 2_000, chars: 64 * 1024 };
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** Agent Skills, "name field": 1 to 64 of a-z, 0-9 and single hyphens within. */
const NAME = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** The folder of a skill: its address without `/SKILL.md`. */
export const rootOf = ({ uri }: Pick<CachedSkill, "uri">): string => uri.slice(0, -ENTRY_FILE.length);

/** The path of a file from its skill's folder on; undefined for an address outside of it. */
export function pathIn(skill: Pick<CachedSkill, "uri">, uri: string): string | undefined {
  const root = `${rootOf(skill)}/`;
  return uri.startsWith(root) && uri.length > root.length ? uri.slice(root.length) : undefined;
}

/** A path that a server could read as another one: empty parts, `.` and `..`, also as escapes, and a backslash. */
const isOdd = (path: string): boolean =>
  path.includes("\\") ||
  /[?#]|%(?:2f|5c)/i.test(path) ||
  path.split("/").some((part) => /^(?:\.|%2e){0,2}$/i.test(part));

function faultOf(entry: Pick<CachedSkill, "uri" | "name">, resources: unknown): string | undefined {
  const last = rootOf(entry).split("/").at(-1);
  if (!NAME.test(entry.name)) return FAULTS.name;
  if (last !== entry.name) return FAULTS.address;
  if (resources === "dynamic") return undefined;
  if (!Array.isArray(resources)) return FAULTS.files;
  if (resources.length > LIMITS.skillFiles)
    return withNumbers(FAULTS.manyFiles, resources.length, LIMITS.skillFiles);
  const seen = new Set<unknown>();
  let bytes = 0;
  for (const file of resources) {
    if (!isObject(file) || typeof file.uri !== "string" || file.uri.length > URI_CHARS)
      return FAULTS.fileAddress;
    const path = pathIn(entry, file.uri);
    if (path === undefined || isOdd(path)) return FAULTS.outside;
    if (seen.has(file.uri)) return FAULTS.twice;
    seen.add(file.uri);
    if (typeof file.digest !== "string" || !DIGEST.test(file.digest)) return FAULTS.digest;
    if (!Number.isSafeInteger(file.size) || (file.size as number) < 0) return FAULTS.size;
    bytes += file.size as number;
  }
  if (!seen.has(entry.uri)) return FAULTS.entryFile;
  if (bytes > LIMITS.skillBytes) return withNumbers(FAULTS.manyBytes, bytes, LIMITS.skillBytes);
  return undefined;
}

/** Undefined for a value that names no skill. */
export function normalizeSkill(raw: unknown): CachedSkill | undefined {
  if (!isObject(raw) || typeof raw.uri !== "string" || raw.uri.length > URI_CHARS) return undefined;
  const { uri, frontmatter, resources } = raw;
  if (!uri.endsWith(ENTRY_FILE) || !isObject(frontmatter)) return undefined;
  const { name, description } = frontmatter;
  if (typeof name !== "string" || name === "") return undefined;
  const isWhole = isWithin(frontmatter, FRONTMATTER);
  const says = typeof description === "string" ? description : "";
  // An entry that was checked before keeps its fault, since its files are gone. A server's own words are no fault of ours.
  const told = typeof raw.fault === "string" && isOurs(raw.fault) ? raw.fault : undefined;
  const fault =
    told ??
    (!isWhole
      ? FAULTS.frontmatter
      : says.trim() === ""
        ? FAULTS.description
        : faultOf({ uri, name }, resources));
  const files =
    fault === undefined && Array.isArray(resources)
      ? (resources as SkillFile[]).map((file) => ({ uri: file.uri, digest: file.digest, size: file.size }))
      : [];
  const label = cut(name, LIMITS.skillNameChars);
  return {
    uri,
    name: label,
    description: cut(says, DESCRIPTION_CHARS),
    frontmatter: isWhole ? frontmatter : { name: label },
    resources: fault === undefined && resources === "dynamic" ? "dynamic" : files,
    ...(fault === undefined ? {} : { fault }),
  };
}

/** Of several entries with one address the first counts. */
export function eachOnce(skills: readonly CachedSkill[]): CachedSkill[] {
  const found = new Map<string, CachedSkill>();
  for (const skill of skills) if (!found.has(skill.uri)) found.set(skill.uri, skill);
  return [...found.values()];
}

export const normalizeSkills = (raw: unknown): CachedSkill[] =>
  eachOnce(asList(raw).flatMap((item) => normalizeSkill(item) ?? []));

/**
 * What a yes to a skill is bound to ("Content-bound approval"): SHA-256 in hexadecimal over the address and digest of each
 * file. Empty for a skill whose content cannot be bound.
 */
export function contentOf({ resources }: Pick<CachedSkill, "resources">): string {
  if (resources === "dynamic") return "";
  const pairs = resources
    .map(({ uri, digest }) => [uri, digest])
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  return createHash("sha256").update(canonical(pairs)).digest("hex");
}

/** As an answer to the model, a question and a kept yes name it. */
export const loadedSkill = (server: string, skill: CachedSkill): LoadedSkill => ({
  server,
  uri: skill.uri,
  name: skill.name,
  content: contentOf(skill),
});

/** Bytes of all files; undefined if nobody knows. */
export const bytesOf = ({ resources }: Pick<CachedSkill, "resources">): number | undefined =>
  resources === "dynamic" ? undefined : resources.reduce((sum, { size }) => sum + size, 0);
