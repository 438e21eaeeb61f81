import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ServerDefinition } from "../../../../workers/connection/config/definition.ts";
import { mergeLayers } from "../../../../workers/connection/config/merge.ts";
import { parseConfigText } from "../../../../workers/connection/config/read.ts";
import {
  type Consent,
  consentHash,
  decideTrust,
  describeTarget,
  type TrustFacts,
} from "../../../../workers/connection/config/trust.ts";
import { loadConsents, remember } from "../../../../workers/connection/config/trust-file.ts";
import { definition, PROJECT_FILE, PROJECT_PI, temporaryFolder, USER } from "./support.ts";

const CWD = "/work/app";
const TRUSTED: TrustFacts = { projectTrusted: true, canAsk: true, cwd: CWD };
const RAW = { command: "x", args: ["y"], env: { A: "${T}" } };

const consent = (of: ServerDefinition, decision: Consent["decision"] = "allowed"): Consent => ({
  hash: consentHash(of, CWD),
  decision,
  server: of.name,
  file: of.file,
  decidedAt: 1,
});

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
    [".pi/mcp.json, accepted before", IN.pi, [], { accepted: new Set([consentHash(IN.pi, CWD)]) }, run],
    [".pi/mcp.json, refused", IN.pi, [consent(IN.pi, "refused")], {}, never],
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
    expect(summary(decideTrust([IN.file], [consent(IN.file)], { ...TRUSTED, cwd: "/other" }))).toEqual(ask);
    const renamed = definition("b", RAW, PROJECT_FILE);
    expect(summary(decideTrust([renamed], [consent(IN.file)], TRUSTED)).pending).toEqual(["b"]);
  });

  test("what was accepted at the start stays so; what was switched off then is asked when it is switched on", () => {
    const off = definition("b", { ...RAW, enabled: false }, PROJECT_PI);
    const { accepted } = decideTrust([IN.pi, off], [], TRUSTED);
    const on = definition("b", RAW, PROJECT_PI);
    const later = decideTrust([IN.pi, on], [], { ...TRUSTED, accepted });
    expect(summary(later)).toEqual({ allowed: ["a"], pending: ["b"], refused: [] });
  });

  test("the user's server runs in place of a project's that may not", () => {
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

test.each([
  [{ command: "npx", args: ["-y", "@a/b@1.0", "a b", "$(evil)"] }, 'npx -y @a/b@1.0 "a b" "$(evil)"'],
  [{ command: "x", env: { TOKEN: "s3cret", B: "!run me" }, cwd: "/w" }, "x (in /w; env TOKEN, B=!run me)"],
  [
    { url: "https://x.y/mcp", headers: { A: "s3cret" }, bearerTokenEnv: "T" },
    "https://x.y/mcp (headers A; token T)",
  ],
])("the question about %o tells all that runs and no secret", (raw, text) => {
  expect(describeTarget(definition("a", raw))).toBe(text);
});

describe("mcp-trust.json", () => {
  const one = consent(IN.file);
  const file = async (): Promise<string> => join(await temporaryFolder(), "deep", "mcp-trust.json");

  test("remembers, replaces by hash, and is private", async () => {
    const path = await file();
    expect(await loadConsents(path)).toEqual([]);
    await remember(path, [one]);
    await remember(path, [{ ...one, decision: "refused" }, consent(IN.pi)]);
    expect(await loadConsents(path)).toEqual([{ ...one, decision: "refused" }, consent(IN.pi)].slice(0, 2));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ version: 1 });
  });

  test("decisions made at the same time are all kept", async () => {
    const path = await file();
    const many = Array.from({ length: 20 }, (_, i) => consent(definition(`s${i}`, RAW, PROJECT_FILE)));
    await Promise.all(many.map((entry) => remember(path, [entry])));
    expect(await loadConsents(path)).toHaveLength(20);
  });

  test.each(["", "{", "[]", '{"version":2,"consents":[]}', '{"version":1,"consents":[{"hash":"x"}]}'])(
    "%s holds no consents and is kept aside",
    async (text) => {
      const path = join(await temporaryFolder(), "mcp-trust.json");
      await writeFile(path, text);
      expect(await loadConsents(path)).toEqual([]);
      await remember(path, [one]);
      expect(await loadConsents(path)).toEqual([one]);
      expect(await readFile(`${path}.corrupt`, "utf8")).toBe(text);
      expect((await readdir(join(path, ".."))).sort()).toEqual(["mcp-trust.json", "mcp-trust.json.corrupt"]);
    },
  );

  test("a file that cannot be read holds no consents", async () => {
    const path = await temporaryFolder();
    expect(await loadConsents(path)).toEqual([]);
    await chmod(path, 0o700);
  });
});
