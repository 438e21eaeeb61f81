import { execFile } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { applyOverride } from "../../../../../../workers/connection/config/entry/override.ts";
import { contentOf, type EnvSeen } from "../../../../../../workers/connection/config/env-files/env-files.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import {
  awaitingConsents,
  decideTrust,
  type TrustFacts,
} from "../../../../../../workers/connection/config/trust/decide.ts";
import { loadTrust, remember } from "../../../../../../workers/connection/config/trust/file.ts";
import {
  type Consent,
  consentHash,
  type Decision,
  EVERY_SUBJECT,
  everythingAwaits,
  merge,
  placeOf,
  subjectOf,
} from "../../../../../../workers/connection/config/trust/records.ts";
import { oneFile } from "../../../../../support/one-file.ts";
import { definition, PROJECT_FILE, PROJECT_PI, temporaryFolder, USER } from "../support.ts";

const CWD = "/work/app";
const PLACE = placeOf(CWD);
const MOVED = "/work/renamed";
const TRUSTED: TrustFacts = { projectTrusted: true, canAsk: true, folder: CWD };
const RAW = { command: "x", args: ["y"], env: { A: "${T}" } };

const consent = (
  of: ServerDefinition,
  decision: Consent["decision"] = "allowed",
  { folder = CWD, seen }: { folder?: string; seen?: EnvSeen } = {},
): Consent => ({
  hash: consentHash(of, placeOf(folder), { seen }),
  subject: subjectOf(of),
  place: placeOf(folder),
  decision,
  server: of.name,
  file: of.file,
  decidedAt: 1,
});

/** Too many servers were asked for. */
const ALL_AWAIT = everythingAwaits(1);

const HASH = "0".repeat(64);

const names = (definitions: { name: string }[]): string[] => definitions.map(({ name }) => name);
const summary = (decision: ReturnType<typeof decideTrust>) => ({
  allowed: names(decision.allowed),
  pending: names(decision.pending.map((pending) => pending.definition)),
  refused: names(decision.refused.map((refused) => refused.definition)),
});

const IN = {
  user: definition("a", RAW),
  import: definition("a", RAW, { file: "/home/me/.cursor/mcp.json", origin: "import" }),
  extension: definition("a", RAW, { file: "/ext", origin: "extension" }),
  file: definition("a", RAW, PROJECT_FILE),
  pi: definition("a", RAW, PROJECT_PI),
  switchedOn: {
    ...applyOverride(definition("a", { ...RAW, enabled: false }), { enabled: true }, PROJECT_PI),
    // What runs otherwise is not in question here.
    replaced: undefined,
  },
};

describe("decideTrust", () => {
  const run = { allowed: ["a"], pending: [], refused: [] };
  const ask = { allowed: [], pending: ["a"], refused: [] };
  const never = { allowed: [], pending: [], refused: ["a"] };
  const live = new Set<string>();

  test.each<[string, ServerDefinition, Consent[], Partial<TrustFacts>, object]>([
    ["a user's server", IN.user, [], {}, run],
    ["a user's server in an untrusted project", IN.user, [], { projectTrusted: false, canAsk: false }, run],
    ["an imported server", IN.import, [], {}, run],
    ["an extension's server", IN.extension, [], {}, run],
    ["a user's server, changed live", IN.user, [], { accepted: live }, run],
    [".pi/mcp.json in a trusted project", IN.pi, [], {}, run],
    [".pi/mcp.json in an untrusted project", IN.pi, [], { projectTrusted: false }, never],
    [".pi/mcp.json, changed live", IN.pi, [], { accepted: live }, ask],
    [".pi/mcp.json, changed live, nobody to ask", IN.pi, [], { accepted: live, canAsk: false }, never],
    [".pi/mcp.json, changed live, consented", IN.pi, [consent(IN.pi)], { accepted: live }, run],
    [
      ".pi/mcp.json, accepted before",
      IN.pi,
      [],
      { accepted: decideTrust([IN.pi], [], TRUSTED).accepted },
      run,
    ],
    [".pi/mcp.json, refused", IN.pi, [consent(IN.pi, "refused")], {}, never],
    [".pi/mcp.json, awaiting since before", IN.pi, [consent(IN.pi, "awaiting")], {}, ask],
    [
      ".pi/mcp.json, awaiting since before, nobody to ask",
      IN.pi,
      [consent(IN.pi, "awaiting")],
      { canAsk: false },
      never,
    ],
    [".pi/mcp.json, everything awaiting", IN.pi, [ALL_AWAIT], {}, ask],
    [".pi/mcp.json, everything awaiting, this one consented", IN.pi, [ALL_AWAIT, consent(IN.pi)], {}, run],
    [".mcp.json, everything awaiting", IN.file, [ALL_AWAIT], {}, ask],
    [".mcp.json", IN.file, [], {}, ask],
    [".mcp.json, nobody to ask", IN.file, [], { canAsk: false }, never],
    [".mcp.json, consented", IN.file, [consent(IN.file)], {}, run],
    [".mcp.json, consented, nobody to ask", IN.file, [consent(IN.file)], { canAsk: false }, run],
    [
      ".mcp.json, consented, untrusted project",
      IN.file,
      [consent(IN.file)],
      { projectTrusted: false },
      never,
    ],
    [".mcp.json, refused", IN.file, [consent(IN.file, "refused")], {}, never],
    [".pi/mcp.json switches on what the user switches off", IN.switchedOn, [], {}, ask],
    [
      ".pi/mcp.json switches on what the user switches off, nobody to ask",
      IN.switchedOn,
      [],
      { canAsk: false },
      never,
    ],
    [
      ".pi/mcp.json switches on what the user switches off, consented",
      IN.switchedOn,
      [consent(IN.switchedOn)],
      {},
      run,
    ],
    [
      "a project's server with the entry of the user's, which was switched on",
      IN.file,
      [consent(IN.switchedOn)],
      {},
      ask,
    ],
    [
      "the user's, switched on, with the entry of a project's server that was consented to",
      IN.switchedOn,
      [consent(IN.file)],
      {},
      ask,
    ],
    [".mcp.json, switched off", definition("a", { ...RAW, enabled: false }, PROJECT_FILE), [], {}, run],
  ])("%s -> %o", (_, server, consents, over, expected) => {
    expect(summary(decideTrust([server], consents, { ...TRUSTED, ...over }))).toEqual(expected);
  });

  test.each([
    [{ command: "z" }],
    [{ args: ["y", "z"] }],
    [{ env: { A: "${T}", LD_PRELOAD: "z" } }],
    [{ env: { A: "z" } }],
    [{ cwd: "z" }],
  ])("a consent does not cover %o", (change) => {
    const changed = definition("a", { ...RAW, ...change }, PROJECT_FILE);
    expect(summary(decideTrust([changed], [consent(IN.file)], TRUSTED))).toEqual(ask);
  });

  test.each([
    [{ url: "https://z.y" }],
    [{ headers: { A: "z" } }],
    [{ bearerTokenEnv: "Z" }],
    [{ type: "sse" }],
  ])("a remote server's consent does not cover %o", (change) => {
    const raw = { url: "https://x.y", headers: { A: "b" } };
    const given = consent(definition("a", raw, PROJECT_FILE));
    const changed = definition("a", { ...raw, ...change }, PROJECT_FILE);
    expect(summary(decideTrust([changed], [given], TRUSTED))).toEqual(ask);
  });

  test("a consent covers other rules and another order of keys, but no other name or project", () => {
    const other = definition(
      "a",
      { lifecycle: "eager", env: { A: "${T}" }, args: ["y"], command: "x" },
      PROJECT_FILE,
    );
    expect(summary(decideTrust([other], [consent(IN.file)], TRUSTED))).toEqual(run);
    const elsewhere = { ...TRUSTED, folder: "/other" };
    expect(summary(decideTrust([IN.file], [consent(IN.file)], elsewhere))).toEqual(ask);
    const renamed = definition("b", RAW, PROJECT_FILE);
    expect(summary(decideTrust([renamed], [consent(IN.file)], TRUSTED)).pending).toEqual(["b"]);
  });

  test("accepted at the start -> stays accepted; disabled at the start -> asked for when it is enabled", () => {
    const off = definition("b", { ...RAW, enabled: false }, PROJECT_PI);
    const { accepted } = decideTrust([IN.pi, off], [], TRUSTED);
    const on = definition("b", RAW, PROJECT_PI);
    const later = decideTrust([IN.pi, on], [], { ...TRUSTED, accepted });
    expect(summary(later)).toEqual({ allowed: ["a"], pending: ["b"], refused: [] });
  });

  test("a question too long to read -> never asked, with a remedy; if allowed before, the server keeps running", () => {
    const longest = "x".repeat(LIMITS.consentChars - "a: x , from /work/app/.mcp.json".length);
    const asked = definition("a", { command: "x", args: [longest] }, PROJECT_FILE);
    const long = definition("a", { command: "x", args: [`${longest}x`] }, PROJECT_FILE);
    expect(summary(decideTrust([asked], [], TRUSTED))).toEqual(ask);
    expect(decideTrust([long], [], TRUSTED).refused).toMatchObject([
      {
        reason:
          "all that it would do takes at least 8001 characters to tell, and more than 8000 are not asked for; " +
          "make its entry in /work/app/.mcp.json, or its envFile, shorter",
      },
    ]);
    expect(summary(decideTrust([long], [consent(long)], TRUSTED))).toEqual(run);
    const megabyte = definition("a", { command: "x", args: ["y".repeat(1_000_000)] }, PROJECT_FILE);
    expect(decideTrust([megabyte], [], TRUSTED).refused[0]?.reason).toContain(
      "takes at least 1000002 characters",
    );
    const live = { ...TRUSTED, accepted: new Set<string>() };
    const onPi = definition("a", { command: "x", args: [`${longest}x`] }, PROJECT_PI);
    expect(awaitingConsents(decideTrust([onPi], [], live), [], 7)).toHaveLength(1);
  });

  test("the user's server runs in place of a project's server that may not run", () => {
    const text = JSON.stringify({ mcpServers: { a: RAW } });
    const other = JSON.stringify({ mcpServers: { a: { command: "mine" } } });
    const { servers } = mergeLayers({
      registered: [],
      hosts: [],
      files: [parseConfigText(other, USER), parseConfigText(text, PROJECT_FILE)],
    });
    const decision = decideTrust(servers, [], TRUSTED);
    expect(decision.allowed).toMatchObject([{ name: "a", target: { command: "mine" } }]);
    expect(decision.pending).toMatchObject([{ definition: { file: PROJECT_FILE.file } }]);
    expect(decideTrust(servers, [consent(IN.file)], TRUSTED).allowed).toMatchObject([
      { target: { command: "x" } },
    ]);
  });
});

describe("awaitingConsents", () => {
  const live = { ...TRUSTED, accepted: new Set<string>() };
  const awaited = (of: ServerDefinition, known: Consent[], facts: TrustFacts): string[] =>
    awaitingConsents(decideTrust([of], known, facts), known, 7).map(({ hash }) => hash);
  const it = [consentHash(IN.pi, PLACE)];

  test.each<[string, ServerDefinition, Consent[], TrustFacts, string[]]>([
    [".pi/mcp.json, changed live", IN.pi, [], live, it],
    [".pi/mcp.json, changed live, nobody to ask", IN.pi, [], { ...live, canAsk: false }, it],
    [".pi/mcp.json at the start", IN.pi, [], TRUSTED, []],
    [".pi/mcp.json, remembered already", IN.pi, [consent(IN.pi, "awaiting")], live, []],
    [".pi/mcp.json, refused before", IN.pi, [consent(IN.pi, "refused")], live, []],
    [".pi/mcp.json, everything awaiting already", IN.pi, [ALL_AWAIT], live, it],
    [
      ".pi/mcp.json, awaiting in another folder",
      IN.pi,
      [consent(IN.pi, "awaiting", { folder: MOVED })],
      live,
      it,
    ],
    [".mcp.json, which is asked for in any case", IN.file, [], live, []],
  ])("%s -> %#", (_, of, known, facts, expected) => {
    expect(awaited(of, known, facts)).toEqual(expected);
  });

  test("names the servers that await an answer, and since when", () => {
    const decision = decideTrust([IN.pi], [], live);
    expect(awaitingConsents(decision, [], 7)).toEqual([{ ...consent(IN.pi, "awaiting"), decidedAt: 7 }]);
  });
});

const WRITER = join(import.meta.dirname, "../../../../../fixtures/cache/adds-consents.ts");

describe("mcp-trust.json", () => {
  const one = consent(IN.file);
  const file = async (): Promise<string> => join(await temporaryFolder(), "deep", "mcp-trust.json");
  const consentsIn = async (path: string): Promise<Consent[]> => (await loadTrust(path)).consents;
  const numbered = (count: number, decision: Consent["decision"]): Consent[] =>
    Array.from({ length: count }, (_, i) => consent(definition(`s${i}`, RAW, PROJECT_PI), decision));

  test("remembers, replaces by hash, and is private", async () => {
    const path = await file();
    expect(await loadTrust(path)).toEqual({ consents: [] });
    await remember(path, [one]);
    const other = consent(definition("b", RAW, PROJECT_FILE));
    await remember(path, [{ ...one, decision: "refused" }, other]);
    expect(await loadTrust(path)).toEqual({ consents: [{ ...one, decision: "refused" }, other] });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ version: 3 });
  });

  test("a record that awaits an answer never replaces an answer; an answer replaces it", async () => {
    const path = await file();
    await remember(path, [consent(IN.pi, "awaiting")]);
    expect(await consentsIn(path)).toEqual([consent(IN.pi, "awaiting")]);
    await remember(path, [one]);
    expect(await remember(path, [consent(IN.pi, "awaiting")])).toEqual([one]);
    await remember(path, [consent(IN.pi, "refused")]);
    expect(await remember(path, [consent(IN.pi, "awaiting")])).toEqual([consent(IN.pi, "refused")]);
  });

  test("decisions made at the same time in one process are all kept", async () => {
    const path = await file();
    await Promise.all(numbered(20, "allowed").map((entry) => remember(path, [entry])));
    expect(await consentsIn(path)).toHaveLength(20);
  });

  test("decisions made at the same time by four processes are all kept", async () => {
    const path = await file();
    const program = oneFile("adds-consents", WRITER).file;
    const add = (prefix: string) => promisify(execFile)(process.execPath, [program, path, prefix, "8"]);
    await Promise.all(["a", "b", "c", "d"].map(add));
    expect(await consentsIn(path)).toHaveLength(32);
    expect(await readdir(join(path, ".."))).toEqual(["mcp-trust.json"]);
  });

  test("many consents -> the oldest are dropped; many refusals -> nothing may run without a consent", async () => {
    const path = await file();
    await remember(path, [one, ...numbered(1_000, "allowed")]);
    expect(await consentsIn(path)).toHaveLength(1_000);
    expect(await consentsIn(path)).not.toContainEqual(one);

    await remember(path, numbered(1_001, "awaiting"));
    expect((await consentsIn(path)).filter(({ decision }) => decision === "awaiting")).toHaveLength(1);
    const many = await file();
    await remember(many, [...numbered(501, "awaiting"), consent(IN.pi)]);
    const folded = await consentsIn(many);
    expect(folded.map(({ server }) => server).sort()).toEqual(["*", "a"]);
    const forgotten = definition("s0", RAW, PROJECT_PI);
    expect(summary(decideTrust([IN.pi, forgotten], folded, TRUSTED))).toMatchObject({
      allowed: ["a"],
      pending: ["s0"],
    });
    const moved = { ...TRUSTED, folder: MOVED };
    expect(summary(decideTrust([forgotten], folded, moved)).pending).toEqual(["s0"]);
    await remember(many, [consent(forgotten)]);
    expect(summary(decideTrust([forgotten], await consentsIn(many), TRUSTED)).allowed).toEqual(["s0"]);
  });

  test.each([
    ["", /not complete JSON/],
    ["{", /not complete JSON/],
    ["[]", /not a list of answers/],
    ['{"version":4,"consents":[]}', /not a list of answers/],
    [
      `{"version":3,"consents":[{"hash":"${HASH}","subject":"${HASH}","decision":"allowed","server":"s","file":"f","decidedAt":1}]}`,
      /not a list/,
    ],
    [
      `{"version":1,"consents":[{"hash":"${HASH}","decision":"allowed","server":"s","file":"f","decidedAt":1}]}`,
      /not a list of answers/,
    ],
  ])("%s holds no consents, says so, and is kept aside; then everything awaits", async (text, why) => {
    const folder = await temporaryFolder();
    const path = join(folder, "mcp-trust.json");
    await writeFile(path, text);
    const { consents, problem } = await loadTrust(path);
    expect(consents).toEqual([]);
    expect(problem).toMatchObject({ file: path, message: expect.stringMatching(why) });
    expect(await readFile(path, "utf8")).toBe(text);
    const awaits = expect.objectContaining({ subject: EVERY_SUBJECT, decision: "awaiting" });
    await remember(path, [one]);
    const { consents: kept } = await loadTrust(path);
    expect(kept).toEqual([awaits, one]);
    const other = definition("other", RAW, PROJECT_PI);
    expect(summary(decideTrust([other], kept, TRUSTED))).toMatchObject({ pending: ["other"] });
    const [aside = "", ...others] = (await readdir(folder)).filter((name) => name !== "mcp-trust.json");
    expect(others).toEqual([]);
    expect(aside).toMatch(/^mcp-trust\.json\.corrupt-/);
    expect(await readFile(join(folder, aside), "utf8")).toBe(text);
  });

  test("a file that cannot be read holds no consents and says so", async () => {
    const path = await temporaryFolder();
    const { consents, problem } = await loadTrust(path);
    expect(consents).toEqual([]);
    expect(problem?.message).toContain("it cannot be read (EISDIR");
    await expect(remember(path, [one])).rejects.toThrow("EISDIR");
  });
});

const HERE = "/work/app";
const THERE = "/work/renamed";
const PLAIN = { command: "x", args: ["y"] };
const ON_PI = definition("a", PLAIN, PROJECT_PI);
const ON_FILE = definition("a", PLAIN, PROJECT_FILE);
const WITH_ENV = definition("a", { ...PLAIN, envFile: ".env" }, PROJECT_PI);

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

// If these change, so must the version in trust/file.ts: a refused entry would run as one of which nothing is known.
test("what is remembered of a server -> the hashes that the version of the file stands for", () => {
  const server = definition(
    "a",
    { ...RAW, envFile: ".env", roots: true, toolExposure: { "delete_*": "hidden" }, approve: "always" },
    PROJECT_FILE,
  );
  const remote = definition(
    "b",
    { url: "https://b.example/mcp", headers: { A: "${T}" }, oauth: { clientId: "c", scope: "s" } },
    PROJECT_FILE,
  );
  expect([server, remote].flatMap((of) => [subjectOf(of), consentHash(of, PLACE)])).toEqual([
    "4fa5348333a5fc9f876b21776946271346220f54ceba35bc0ee3e3fddee84e55",
    "50442d6830bf8a096844cf6e00cfaf5ba3583a5bc0c56fd4e5b0998db99eee7e",
    "384ee3d88935b9f675c263db12d33de9dd766fc9899908fd521bac55c0995571",
    "a282246035f96b715d1e42b27d8f5c558ce0a17cbd34b7701d26ac28d5e63136",
  ]);
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

const REFUSED = "it was refused; /mcp trust asks again";

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
    Array.from({ length: count }, (_, i) => record(definition(`s${i}`, PLAIN, PROJECT_PI), decision));
  const counts = (consents: readonly Consent[]): Record<string, number> =>
    Object.fromEntries(
      [...Map.groupBy(consents, ({ decision }) => decision)].map(([key, all]) => [key, all.length]),
    );

  test("any number of servers put off -> no refusal and no permission is dropped", () => {
    const refused = record(definition("no", PLAIN, PROJECT_PI), "refused");
    const all = merge([refused, ...numbered(900, "allowed")], numbered(1_500, "awaiting").slice(900));
    expect(counts(all)).toEqual({ refused: 1, allowed: 900, awaiting: 1 });
    expect(verdict(definition("no", PLAIN, PROJECT_PI), all)).toBe(REFUSED);
    expect(verdict(definition("unheard", PLAIN, PROJECT_PI), all)).toBe("ask");
  });

  test("more refusals than there is room for -> the oldest are asked for again, none runs", () => {
    const all = merge([], numbered(1_001, "refused"));
    expect(counts(all)).toEqual({ refused: 1_000, awaiting: 1 });
    expect(verdict(definition("s0", PLAIN, PROJECT_PI), all)).toBe("ask");
    expect(verdict(definition("s1", PLAIN, PROJECT_PI), all)).toBe(REFUSED);
  });

  test("names and paths of any length -> kept short, and their decisions still count", () => {
    const long = definition("n".repeat(LIMITS.serverNameChars), PLAIN, {
      ...PROJECT_PI,
      file: `/${"f".repeat(10_000)}`,
    });
    const all = merge([], [record(long, "refused")]);
    expect(JSON.stringify(all).length).toBeLessThan(1_000);
    expect(verdict(long, all)).toBe(REFUSED);
  });
});
