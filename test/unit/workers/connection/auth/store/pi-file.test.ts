/** Owns: Pi's own sign-in is moved here under Pi's locks: never a copy, never lost, nothing else of Pi's file changed. */

import { spawn } from "node:child_process";
import { chmod, lstat, mkdir, readdir, readFile, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  findEntry,
  type PI_TIMES,
  type PiQuery,
  piKeys,
  refreshLockOf,
} from "../../../../../../workers/connection/auth/store/pi.ts";
import { nodeFiles } from "../../../../../../workers/shared/files/file-system.ts";
import { ensurePi } from "../../../../../support/pi-host.ts";
import { failingFiles } from "../../../cache/support.ts";
import { inPi, metadata, PI_KEY, piText } from "./pi-file-of-test.ts";
import {
  never,
  openStore,
  piFileOf,
  SERVER,
  signedIn,
  type TestStore,
  URL_OF_SERVER,
  write,
} from "./support.ts";

const OTHER = { "mcp__other|https://other.example/": { serverUrl: "https://other.example/", note: "ü" } };
const ALL = piText({ ...OTHER, [PI_KEY]: inPi() });

/** A live holder's lock is never taken, and nobody waits for it. */
const IMPATIENT: typeof PI_TIMES = {
  file: { staleMs: 3_600_000, waitMs: 40 },
  refresh: { staleMs: 3_600_000, waitMs: 40 },
};

async function withPi(
  text = ALL,
  system: Parameters<typeof openStore>[1] = {},
): Promise<TestStore & { pi: string }> {
  const at = await openStore({}, system);
  const pi = piFileOf(at.agentDir);
  await writeFile(pi, text, { mode: 0o600 });
  return { ...at, pi };
}

const tokenIn = async ({ store }: TestStore): Promise<string | undefined> =>
  (await store.read()).record?.access_token;

describe("findInPi", () => {
  test("an entry -> the sign-in, and nothing is changed or made", async () => {
    const { store, pi, agentDir } = await withPi();
    expect(await store.findInPi()).toMatchObject({ server: SERVER, access_token: "pi-access" });
    expect(await readFile(pi, "utf8")).toBe(ALL);
    expect(await readdir(agentDir)).toEqual(["mcp-auth.json"]);
  });

  test("a client in the configuration -> the sign-in is that client's", async () => {
    const { agentDir } = await withPi();
    const { store } = await openStore({ agentDir, client: async () => ({ id: "mine", hasSecret: true }) });
    expect((await store.findInPi())?.client).toMatchObject({ id: "mine", kind: "configured" });
  });

  test("a client that cannot be resolved -> nothing, with a note", async () => {
    const { agentDir } = await withPi();
    const { store, notes } = await openStore({
      agentDir,
      client: () => Promise.reject(new Error("no variable X")),
    });
    expect(await store.findInPi()).toBeUndefined();
    expect(notes).toEqual([`${piFileOf(agentDir)} is not used: no variable X.`]);
  });

  test("no file, no entry -> nothing is noted", async () => {
    const none = await openStore();
    const other = await withPi(piText(OTHER));
    expect([await none.store.findInPi(), await other.store.findInPi()]).toEqual([undefined, undefined]);
    expect([...none.notes, ...other.notes]).toEqual([]);
  });

  test.each<[string, (path: string) => Promise<unknown>, string]>([
    ["a folder", (path) => mkdir(path), "it is a folder, not a regular file"],
    [
      "more than 4 MiB",
      (path) => writeFile(path, Buffer.alloc(4 * 1024 * 1024 + 1)),
      "it is larger than 4 MiB",
    ],
  ])("%s -> nothing, with a note", async (_name, make, what) => {
    const { store, agentDir, notes } = await openStore();
    await make(piFileOf(agentDir));
    expect(await store.findInPi()).toBeUndefined();
    expect(notes).toEqual([`${piFileOf(agentDir)} is not used: ${what}.`]);
  });
});

describe("takeFromPi", () => {
  test("an entry -> here, gone there; the rest of Pi's file, its mode and its locks as they were", async () => {
    const at = await withPi();
    await chmod(at.pi, 0o640);
    expect(await at.store.takeFromPi(never())).toMatchObject({ access_token: "pi-access" });
    expect(await tokenIn(at)).toBe("pi-access");
    expect(await readFile(at.pi, "utf8")).toBe(piText(OTHER));
    expect((await lstat(at.pi)).mode & 0o777).toBe(0o640);
    expect((await readdir(at.agentDir)).sort()).toEqual(["mcp-auth.json", "mcp-oauth"]);
    expect(await readdir(at.place.folder)).toHaveLength(1);
  });

  test("the last entry -> an empty object stays", async () => {
    const at = await withPi(piText({ [PI_KEY]: inPi() }));
    await at.store.takeFromPi(never());
    expect(await readFile(at.pi, "utf8")).toBe("{}\n");
  });

  test("gone meanwhile, or never there -> nothing, and nothing is made", async () => {
    const at = await withPi(piText(OTHER));
    expect(await at.store.takeFromPi(never())).toBeUndefined();
    expect(await readdir(at.place.root).catch(() => [])).toEqual([]);
  });

  test("two stores at once -> one gets it", async () => {
    const at = await withPi();
    const stores = [at.store, (await openStore({ agentDir: at.agentDir })).store];
    const got = await Promise.all(stores.map((store) => store.takeFromPi(never())));
    expect(got.filter((record) => record !== undefined)).toHaveLength(1);
  });

  test("Pi's file is a link, as in a folder of dotfiles -> the file behind it is changed, the link stays", async () => {
    const at = await openStore();
    const real = join(at.agentDir, "dotfiles.json");
    await writeFile(real, ALL);
    await symlink(real, piFileOf(at.agentDir));
    expect(await at.store.takeFromPi(never())).toMatchObject({ access_token: "pi-access" });
    expect(await readFile(real, "utf8")).toBe(piText(OTHER));
    expect((await lstat(piFileOf(at.agentDir))).isSymbolicLink()).toBe(true);
  });
});

describe("takeFromPi: what fails leaves the sign-in with Pi, and no copy here", () => {
  test("our folder takes nothing -> store-unwritable", async () => {
    const at = await withPi(ALL, { files: failingFiles("create", "EROFS", /mcp-oauth/) });
    await expect(at.store.takeFromPi(never())).rejects.toMatchObject({
      kind: "store-unwritable",
      facts: { path: at.place.file },
    });
    expect([await readFile(at.pi, "utf8"), await at.store.read()]).toEqual([ALL, {}]);
  });

  test("Pi's file cannot be replaced -> store-unwritable, and what was here before is here again", async () => {
    const files = failingFiles("rename", "EACCES", /mcp-auth\.json$/);
    const at = await withPi(ALL, { files });
    await expect(at.store.takeFromPi(never())).rejects.toMatchObject({
      kind: "store-unwritable",
      facts: { path: at.pi },
    });
    expect([await readFile(at.pi, "utf8"), await at.store.read()]).toEqual([ALL, {}]);
    await write(at.store, signedIn());
    await expect(at.store.takeFromPi(never())).rejects.toThrow();
    expect(await at.store.read()).toEqual({ record: signedIn() });
  });

  test("Pi takes its lock over in the middle -> store-unwritable, Pi's file as Pi wrote it", async () => {
    let isDone = false;
    const files = {
      ...nodeFiles,
      // Pi counts our lock as left by a dead process right before its file is replaced.
      create: async (path: string, mode: number) => {
        if (/mcp-auth\.json\./.test(path)) {
          isDone = true;
          const past = new Date(0);
          await utimes(`${at.pi}.lock`, past, past);
        }
        return nodeFiles.create(path, mode);
      },
    };
    const at = await withPi(ALL, { files });
    await expect(at.store.takeFromPi(never())).rejects.toMatchObject({ kind: "store-unwritable" });
    expect([isDone, await readFile(at.pi, "utf8"), await at.store.read()]).toEqual([true, ALL, {}]);
  });

  test.each([
    ["the file", "mcp-auth.json.lock"],
    ["this sign-in", refreshLockOf(PI_KEY)],
  ])("Pi holds the lock of %s -> lock-busy", async (_name, lock) => {
    const at = await withPi(ALL, { piTimes: IMPATIENT });
    await mkdir(join(at.agentDir, lock));
    await expect(at.store.takeFromPi(never())).rejects.toMatchObject({
      kind: "lock-busy",
      facts: { path: join(at.agentDir, lock) },
    });
    expect([await readFile(at.pi, "utf8"), await at.store.read()]).toEqual([ALL, {}]);
    expect((await readdir(at.agentDir)).filter((name) => name.endsWith(".lock"))).toEqual([lock]);
  });

  test("cancelled while Pi holds the lock -> cancelled", async () => {
    const patient = { staleMs: 3_600_000, waitMs: 60_000 };
    const at = await withPi(ALL, { piTimes: { file: patient, refresh: patient } });
    await mkdir(join(at.agentDir, "mcp-auth.json.lock"));
    const controller = new AbortController();
    const taking = at.store.takeFromPi(controller.signal);
    // Holding the other lock shows that it waits for this one.
    await expect.poll(() => readdir(at.agentDir)).toContain(refreshLockOf(PI_KEY));
    controller.abort();
    await expect(taking).rejects.toMatchObject({ kind: "cancelled" });
    expect(await readdir(at.agentDir)).not.toContain(refreshLockOf(PI_KEY));
  });

  test("a lock of a Pi that was killed -> taken over after Pi's own time", async () => {
    const at = await withPi();
    for (const lock of ["mcp-auth.json.lock", refreshLockOf(PI_KEY)]) {
      await mkdir(join(at.agentDir, lock));
      const past = new Date(Date.now() - 21_000);
      await utimes(join(at.agentDir, lock), past, past);
    }
    expect(await at.store.takeFromPi(never())).toMatchObject({ access_token: "pi-access" });
  });
});

describe("the real Pi's own store", () => {
  /** Runs `program` with Pi's store of this sign-in as `server`. `next`: the next value that it prints. */
  async function startPi(agentDir: string, program: string) {
    const chunks = join((await ensurePi()).packageDir, "dist", "bundle", "chunks");
    const [chunk = ""] = await filesWith(chunks, /export\{[^}]*\bMcpOAuthCredentialStore\b/);
    const code = `
      const { McpOAuthCredentialStore } = await import(${JSON.stringify(join(chunks, chunk))});
      const server = new McpOAuthCredentialStore().forServer("${SERVER}", "${URL_OF_SERVER}");
      const print = (value) => process.stdout.write(JSON.stringify(value ?? null) + "\\n");
      const line = () => new Promise((resolve) => process.stdin.once("data", resolve));
      ${program}
      process.stdin.destroy();`;
    const env = { PATH: process.env.PATH ?? "", HOME: agentDir, PI_CODING_AGENT_DIR: agentDir };
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      env,
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async (): Promise<unknown> => JSON.parse((await lines.next()).value ?? '"it has ended"');
    return { child, next };
  }

  async function filesWith(folder: string, pattern: RegExp): Promise<string[]> {
    const names = await readdir(folder);
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
    return names.filter((_, i) => pattern.test(texts[i] ?? ""));
  }

  test("Pi saves a sign-in -> it is taken; Pi then has none, and what else it had", async () => {
    const at = await openStore();
    const pi = await startPi(
      at.agentDir,
      `await server.save(${JSON.stringify(inPi())});
       await new McpOAuthCredentialStore().forServer("other", "https://other.example/").save({ serverUrl: "x" });
       print("saved"); await line();
       print(await server.load());
       print(new McpOAuthCredentialStore().remove("other", "https://other.example/"));`,
    );
    expect(await pi.next()).toBe("saved");
    expect(await at.store.takeFromPi(never())).toMatchObject({ refresh_token: "pi-refresh" });
    pi.child.stdin.write("go on\n");
    expect([await pi.next(), await pi.next()]).toEqual([null, true]);
  });

  test("Pi renews the tokens -> the taker waits for the new ones, and Pi cannot put them back", async () => {
    const at = await withPi(piText({ [PI_KEY]: inPi() }));
    const pi = await startPi(
      at.agentDir,
      `await server.withRefreshLock(async () => {
         print("renews"); await line();
         const state = await server.load();
         await server.save({ ...state, tokens: { ...state.tokens, refresh_token: "rotated" } });
       });
       print("done");`,
    );
    expect(await pi.next()).toBe("renews");
    const impatient = await openStore({ agentDir: at.agentDir }, { piTimes: IMPATIENT });
    await expect(impatient.store.takeFromPi(never())).rejects.toMatchObject({ kind: "lock-busy" });
    const taking = at.store.takeFromPi(never());
    pi.child.stdin.write("go on\n");
    expect(await pi.next()).toBe("done");
    expect(await taking).toMatchObject({ refresh_token: "rotated" });
    expect(await readFile(at.pi, "utf8")).toBe("{}\n");
  });
});

const NOW = 1_700_000_000_000;
const QUERY: PiQuery = { server: SERVER, url: URL_OF_SERVER, nowMs: NOW };

const find = (state: unknown, query: Partial<PiQuery> = {}): SignInRecord | undefined =>
  findEntry(JSON.stringify({ [PI_KEY]: state }), { ...QUERY, ...query })?.record;

/** The entry with other discovered metadata of the authorization server. */
const discovered = (over: object, state: object = {}) =>
  inPi({
    discovery: { ...inPi().discovery, authorizationServerMetadata: { ...metadata, ...over } },
    ...state,
  });

test("an entry as Pi writes it -> the whole sign-in", () => {
  expect(find(inPi())).toEqual({
    version: 1,
    server: SERVER,
    url: URL_OF_SERVER,
    issuer: "https://auth.linear.example",
    resource: URL_OF_SERVER,
    tokenEndpoint: "https://auth.linear.example/token",
    revocationEndpoint: "https://auth.linear.example/revoke",
    client: {
      id: "registered",
      method: "none",
      kind: "dynamic",
      redirectUris: ["http://127.0.0.1:4711/callback"],
      registeredAt: 1_700_000_000_000,
    },
    access_token: "pi-access",
    token_type: "Bearer",
    refresh_token: "pi-refresh",
    expiresAt: 1_800_000_000_000,
    scope: "read",
  });
});

describe("the key", () => {
  test("a dash in the name, a url that is not normalized -> as Pi writes them", () => {
    expect(piKeys({ server: "my-server", url: "HTTPS://A.example:443/x/../mcp" })).toEqual([
      "mcp__my_server|https://a.example/mcp",
      "https://a.example/mcp",
    ]);
  });

  test("no url -> no key", () => {
    expect(piKeys({ server: "a", url: "nowhere" })).toEqual([]);
    expect(findEntry("{}", { ...QUERY, url: "nowhere" })).toBeUndefined();
  });

  test("the older key, by the url alone -> found, and removed; with both, the newer one", () => {
    const old = inPi({ tokens: { ...inPi().tokens, access_token: "old" } });
    const alone = findEntry(JSON.stringify({ [URL_OF_SERVER]: old }), QUERY);
    expect([alone?.record.access_token, alone?.rest]).toEqual(["old", "{}\n"]);
    const both = findEntry(JSON.stringify({ [URL_OF_SERVER]: old, [PI_KEY]: inPi() }), QUERY);
    expect(both?.record.access_token).toBe("pi-access");
    expect(Object.keys(JSON.parse(both?.rest ?? ""))).toEqual([URL_OF_SERVER]);
  });

  test("the lock of a refresh -> named by the key's SHA-256", () => {
    expect(refreshLockOf("mcp__a|https://a/")).toMatch(/^mcp-auth-refresh-[0-9a-f]{16}\.lock$/);
  });
});

test("what stays -> byte for byte what Pi wrote, without the entry", () => {
  const others = { before: { a: [1, null, "ü"] }, "mcp__x|https://x/": inPi() };
  const text = (states: object): string => `${JSON.stringify(states, null, 2)}\n`;
  const all = text({ before: others.before, [PI_KEY]: inPi(), "mcp__x|https://x/": inPi() });
  expect(findEntry(all, QUERY)?.rest).toBe(text(others));
});

describe("what cannot be used -> nothing", () => {
  test.each<[string, unknown]>([
    ["no object", "text"],
    ["another server's url in the entry", inPi({ serverUrl: "https://evil.example/mcp" })],
    ["no tokens, only a registration", inPi({ tokens: undefined })],
    ["expired without a refresh token", inPi({ tokens: { access_token: "a" }, tokensExpireAt: NOW - 1 })],
    ["no discovery, so that nobody knows the issuer", inPi({ discovery: undefined })],
    ["an issuer that differs", discovered({ issuer: "https://other.example" })],
    ["no client, and no client document", inPi({ clientInformation: undefined })],
    ["a token that is none", inPi({ tokens: { access_token: "a b", refresh_token: 5 } })],
  ])("%s", (_name, state) => {
    expect(find(state)).toBeUndefined();
  });

  test.each([
    ["no JSON", "{"],
    ["empty", ""],
    ["a list", "[]"],
    ["no entry", "{}"],
  ])("%s", (_name, text) => {
    expect(findEntry(text, QUERY)).toBeUndefined();
  });
});

describe("what can be used", () => {
  test.each<[string, unknown, object]>([
    [
      "an issuer with a slash more",
      discovered({ issuer: "https://auth.linear.example/" }),
      { issuer: "https://auth.linear.example/" },
    ],
    [
      "no metadata of the authorization server -> Pi's guess of the endpoint",
      inPi({ discovery: { authorizationServerUrl: "https://auth.linear.example/x" } }),
      { issuer: "https://auth.linear.example/x", tokenEndpoint: "https://auth.linear.example/token" },
    ],
    [
      "an access token without an end",
      inPi({ tokens: { access_token: "a", token_type: "bearer" }, tokensExpireAt: undefined }),
      { access_token: "a", token_type: "bearer" },
    ],
    [
      "expired with a refresh token",
      inPi({ tokensExpireAt: NOW - 1 }),
      { refresh_token: "pi-refresh", expiresAt: NOW - 1 },
    ],
  ])("%s", (_name, state, expected) => {
    expect(find(state)).toMatchObject(expected);
  });
});

describe("the client", () => {
  const secret = { client_id: "s", client_secret: "pw", client_secret_expires_at: 1_900_000_000 };
  const rows: [string, object, object, object][] = [
    [
      "a secret, no methods known -> Basic",
      {},
      { clientInformation: secret },
      { method: "client_secret_basic" },
    ],
    [
      "a secret, POST offered -> POST",
      { token_endpoint_auth_methods_supported: ["client_secret_post"] },
      { clientInformation: secret },
      { method: "client_secret_post" },
    ],
    [
      "the registered method -> that one",
      { token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"] },
      { clientInformation: { ...secret, token_endpoint_auth_method: "client_secret_post" } },
      { method: "client_secret_post" },
    ],
    [
      "a secret that expires -> when",
      {},
      { clientInformation: secret },
      { id: "s", secret: "pw", secretExpiresAt: 1_900_000_000_000 },
    ],
    [
      "none registered, documents taken, iss promised -> Pi's one document",
      { client_id_metadata_document_supported: true, authorization_response_iss_parameter_supported: true },
      { clientInformation: undefined },
      { id: "https://pi.dev/oauth/client.json", method: "none", kind: "metadata-document" },
    ],
  ];
  test.each(rows)("%s", (_name, over, state, client) => {
    const supported = { token_endpoint_auth_methods_supported: ["none"], ...over };
    const offered = "client_id_metadata_document_supported" in over ? supported : over;
    const { token_endpoint_auth_methods_supported: _none, ...bare } = metadata;
    const discovery = { ...inPi().discovery, authorizationServerMetadata: { ...bare, ...offered } };
    expect(find(inPi({ discovery, ...state }))?.client).toMatchObject(client);
  });

  test("none registered, documents taken, no iss -> Pi's document for this server", () => {
    const state = discovered(
      { client_id_metadata_document_supported: true },
      { clientInformation: undefined },
    );
    expect(find(state)?.client.id).toMatch(/^https:\/\/pi\.dev\/oauth\/[\w-]{12}\/client\.json$/);
  });

  test("one in the configuration -> that one, without a secret in the record", () => {
    const configured = (hasSecret: boolean) => find(inPi(), { client: { id: "mine", hasSecret } })?.client;
    expect(configured(false)).toEqual({ id: "mine", method: "none", kind: "configured" });
    expect(
      find(discovered({ token_endpoint_auth_methods_supported: ["client_secret_post"] }), {
        client: { id: "mine", hasSecret: true },
      })?.client,
    ).toEqual({ id: "mine", method: "client_secret_post", kind: "configured" });
  });
});
