import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { contentOf, type EnvSeen } from "../../../../../../workers/connection/config/env-files/env-files.ts";
import { decideTrust, type TrustFacts } from "../../../../../../workers/connection/config/trust/decide.ts";
import {
  type Consent,
  consentHash,
  type Decision,
  merge,
  placeOf,
  subjectOf,
} from "../../../../../../workers/connection/config/trust/records.ts";
import { definition, PROJECT_FILE, PROJECT_PI } from "../support.ts";

const HERE = "/work/app";
const THERE = "/work/renamed";
const RAW = { command: "x", args: ["y"] };
const ON_PI = definition("a", RAW, PROJECT_PI);
const ON_FILE = definition("a", RAW, PROJECT_FILE);
const WITH_ENV = definition("a", { ...RAW, envFile: ".env" }, PROJECT_PI);

const seen = (entries: Record<string, string>, changedAtMs = 0): EnvSeen => ({
  content: contentOf(entries),
  changedAtMs,
});

interface At {
  folder?: string;
  env?: EnvSeen;
  decidedAt?: number;
}

const record = (
  of: ServerDefinition,
  decision: Decision,
  { folder = HERE, env, decidedAt = 1 }: At = {},
): Consent => ({
  hash: consentHash(of, placeOf(folder), { seen: env }),
  subject: subjectOf(of),
  place: placeOf(folder),
  decision,
  server: of.name,
  file: of.file,
  decidedAt,
});

/** `run`, `ask`, or why it never runs. */
function verdict(
  of: ServerDefinition,
  known: readonly Consent[],
  { folder = HERE, env, ...over }: At & Partial<TrustFacts> = {},
): string {
  const envFiles = env && new Map([[of, env]]);
  const facts: TrustFacts = { projectTrusted: true, canAsk: true, folder, envFiles, ...over };
  const { allowed, pending, refused } = decideTrust([of], known, facts);
  if (allowed.length > 0) return "run";
  return pending.length > 0 ? "ask" : (refused[0]?.reason ?? "lost");
}

const REFUSED = "it was refused before; /mcp trust asks again";

describe("a decision, and the folder where it was made", () => {
  test.each<[string, ServerDefinition, Consent[], string, string]>([
    ["put off, then renamed", ON_PI, [record(ON_PI, "awaiting")], THERE, "ask"],
    ["refused, then renamed", ON_PI, [record(ON_PI, "refused")], THERE, REFUSED],
    ["refused, then in another project's .mcp.json", ON_FILE, [record(ON_PI, "refused")], THERE, REFUSED],
    ["allowed, then renamed, .mcp.json", ON_FILE, [record(ON_FILE, "allowed")], THERE, "ask"],
    ["allowed, the same folder", ON_FILE, [record(ON_FILE, "allowed")], HERE, "run"],
    [
      "put off here, allowed there",
      ON_PI,
      [record(ON_PI, "awaiting"), record(ON_PI, "allowed", { folder: THERE })],
      HERE,
      "ask",
    ],
    [
      "refused elsewhere, allowed here",
      ON_PI,
      [record(ON_PI, "refused", { folder: THERE }), record(ON_PI, "allowed")],
      HERE,
      "run",
    ],
    [
      "put off elsewhere and refused in a third folder",
      ON_PI,
      [record(ON_PI, "awaiting", { folder: THERE }), record(ON_PI, "refused", { folder: "/third" })],
      HERE,
      REFUSED,
    ],
  ])("%s -> %#", (_, of, known, folder, expected) => {
    expect(verdict(of, known, { folder })).toBe(expected);
  });

  test("the case of a Windows drive letter does not matter; the case of the rest of a path does", () => {
    expect(placeOf("c:\\work\\app")).toBe(placeOf("C:\\work\\app"));
    expect(placeOf("C:\\work\\app")).not.toBe(placeOf("D:\\work\\app"));
    expect(placeOf("/work/app")).not.toBe(placeOf("/work/App"));
    const known = [record(ON_FILE, "allowed", { folder: "C:\\p" })];
    expect(verdict(ON_FILE, known, { folder: "c:\\p" })).toBe("run");
  });
});

describe("a decision, and what the envFile held", () => {
  const evil = seen({ TOKEN: "1", NODE_OPTIONS: "--require=./evil.cjs" });
  const good = seen({ TOKEN: "1", NODE_OPTIONS: "--no-warnings" });
  const allowed = [record(WITH_ENV, "allowed", { env: good })];

  test.each<[string, EnvSeen, string]>([
    ["the same", good, "run"],
    [
      "another value of a name that is known for data",
      seen({ TOKEN: "2", NODE_OPTIONS: "--no-warnings" }),
      "run",
    ],
    ["another value of a name that decides what runs", evil, "ask"],
    ["another name", seen({ TOKEN: "1", B: "1", NODE_OPTIONS: "--no-warnings" }), "ask"],
    ["a name less", seen({ NODE_OPTIONS: "--no-warnings" }), "ask"],
    ["a file that cannot be read", { reason: "there is no such file" }, "ask"],
  ])("allowed, now %s", (_, env, expected) => {
    expect(verdict(WITH_ENV, allowed, { env })).toBe(expected);
  });

  test("another value of a name that is in no table -> asked again", () => {
    const [before, now] = ["a", "b"].map((API_URL) => seen({ API_URL }));
    const known = [record(WITH_ENV, "allowed", { env: before as EnvSeen })];
    expect(verdict(WITH_ENV, known, { env: now as EnvSeen })).toBe("ask");
  });

  test("a refusal holds whatever the file holds now", () => {
    expect(verdict(WITH_ENV, [record(WITH_ENV, "refused", { env: evil })], { env: good })).toBe(REFUSED);
  });

  test("put off, then the file changes -> still asked for, although the project counts as trusted", () => {
    expect(verdict(WITH_ENV, [record(WITH_ENV, "awaiting", { env: evil })], { env: good })).toBe("ask");
  });

  test("a file that is newer than the session -> nobody who trusted the project has seen it", () => {
    expect(verdict(WITH_ENV, [], { env: seen({}, 999), startedAtMs: 1_000 })).toBe("run");
    expect(verdict(WITH_ENV, [], { env: seen({}, 1_001), startedAtMs: 1_000 })).toBe("ask");
  });

  test("an allowed server carries the content that was agreed to; another content has another accepted hash", () => {
    const facts = { projectTrusted: true, canAsk: true, folder: HERE };
    const at = (env: EnvSeen) =>
      decideTrust([WITH_ENV], [], { ...facts, envFiles: new Map([[WITH_ENV, env]]) });
    expect(at(good).allowed[0]?.agreedEnvFile).toMatch(/^[0-9a-f]{64}$/);
    expect(at(good).allowed[0]?.agreedEnvFile).not.toBe(at(evil).allowed[0]?.agreedEnvFile);
    const { accepted } = at(good);
    expect(verdict(WITH_ENV, [], { env: evil, accepted })).toBe("ask");
  });
});

describe("the room of the file", () => {
  const numbered = (count: number, decision: Decision): Consent[] =>
    Array.from({ length: count }, (_, i) => record(definition(`s${i}`, RAW, PROJECT_PI), decision));
  const counts = (consents: readonly Consent[]): Record<string, number> =>
    Object.fromEntries(
      [...Map.groupBy(consents, ({ decision }) => decision)].map(([key, all]) => [key, all.length]),
    );

  test("any number of servers put off -> no refusal and no permission is dropped", () => {
    const refused = record(definition("no", RAW, PROJECT_PI), "refused");
    const all = merge([refused, ...numbered(900, "allowed")], numbered(1_500, "awaiting").slice(900));
    expect(counts(all)).toEqual({ refused: 1, allowed: 900, awaiting: 1 });
    expect(verdict(definition("no", RAW, PROJECT_PI), all)).toBe(REFUSED);
    expect(verdict(definition("unheard", RAW, PROJECT_PI), all)).toBe("ask");
  });

  test("more refusals than there is room for -> the oldest are asked for again, none runs", () => {
    const all = merge([], numbered(1_001, "refused"));
    expect(counts(all)).toEqual({ refused: 1_000, awaiting: 1 });
    expect(verdict(definition("s0", RAW, PROJECT_PI), all)).toBe("ask");
    expect(verdict(definition("s1", RAW, PROJECT_PI), all)).toBe(REFUSED);
  });

  test("names and paths of any length -> kept short, and their decisions still count", () => {
    const long = definition("n".repeat(LIMITS.serverNameChars), RAW, {
      ...PROJECT_PI,
      file: `/${"f".repeat(10_000)}`,
    });
    const all = merge([], [record(long, "refused")]);
    expect(JSON.stringify(all).length).toBeLessThan(1_000);
    expect(verdict(long, all)).toBe(REFUSED);
  });
});
