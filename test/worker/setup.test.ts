/** Owns: the requests that set servers up, on the packed worker with real files and real servers. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import type { FoundImports, FoundServer, ServerEntry } from "../../src/shared/protocol/person.ts";
import { onCleanup } from "../support/cleanup.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { removeFolder } from "../support/temp-folder.ts";
import {
  createPlace,
  fixture,
  forRows,
  type Place,
  type Started,
  start,
  startHttp,
  until,
} from "./support.ts";

const asEntry = (entry: object): ServerEntry => entry as ServerEntry;
/** A fixture that is found if it is left running. */
const marked = (at: Place, name: string, env: Record<string, string> = {}): ServerEntry =>
  asEntry(fixture(name, { ...env, PMT_PLACE: at.agentDir }));

const userFile = ({ agentDir }: Place): string => join(agentDir, "mcp.json");
const projectFile = ({ cwd }: Place): string => join(cwd, ".pi", "mcp.json");

/** A place whose home folder is empty, so that no program of this machine is found. */
async function emptyHome(): Promise<Place & { home: string }> {
  const place = await createPlace();
  const home = dirname(place.agentDir);
  vi.stubEnv("HOME", home);
  vi.stubEnv("CLAUDE_CONFIG_DIR", home);
  vi.stubEnv("CODEX_HOME", join(home, "codex"));
  vi.stubEnv("XDG_CONFIG_HOME", join(home, "config"));
  return { ...place, home };
}

async function put(file: string, value: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof value === "string" ? value : JSON.stringify(value));
}

async function failure(promise: Promise<unknown>): Promise<ThreadsError> {
  const error = await promise.catch((thrown: unknown) => thrown);
  if (error instanceof ThreadsError) return error;
  throw new Error(`no error: ${JSON.stringify(error)}`);
}

const pidsOf = ({ events }: Started): number[] =>
  events.flatMap((event) => (event.type === "spawned" ? [event.pid] : []));

beforeEach(() => onCleanup(() => void vi.unstubAllEnvs()));

describe("preview", () => {
  test("what would run, the file, the mistakes, and the server that has the name", async () => {
    const at = await start({ taken: fixture("echoes.mjs") });
    const ask = (entry: object, name = "new", project = false) =>
      at.runtime.ask("previewServer", { name, entry: asEntry(entry), project });
    const token = "sk-abcdefghij0123456789";
    expect(await ask({ command: "npx", args: ["-y", "x y", "--token", token], env: { KEY: token } })).toEqual(
      {
        file: userFile(at),
        mistakes: [],
        transport: "stdio",
        line: 'npx -y "x y" --token "[redacted]" (env KEY)',
        ...(process.platform === "win32" ? {} : { lacksRoom: true }),
      },
    );
    const remote = { url: `https://a.example/mcp?key=${token}`, headers: { "X-Key": token } };
    const { line } = await ask(remote, "taken", true);
    expect(line).toContain("https://a.example/mcp?");
    expect(line).toContain("headers X-Key");
    expect(line).not.toContain(token);
    expect(await ask(remote, "taken", true)).toMatchObject({
      transport: "http",
      file: projectFile(at),
      exists: { file: userFile(at), by: "user" },
    });
    const wrong = await ask({ command: "x", comand: "y", args: "z" });
    expect(wrong.mistakes.map(({ severity, key }) => [severity, key])).toEqual([
      ["error", "args"],
      ["warning", "comand"],
    ]);
    expect(wrong).not.toHaveProperty("line");
    expect((await ask({ command: "x" }, "__proto__")).mistakes[0]?.message).toContain("no");
    expect(await ask({ command: "x".repeat(9_000) })).not.toHaveProperty("line");
    await put(projectFile(at), "{");
    expect((await ask({ command: "x" })).file).toBe(userFile(at));
    const { code, message } = await failure(ask({ command: "x" }, "new", true));
    expect(code).toBe("bad_config");
    expect(message).toMatch(/mcp\.json:1:2 cannot be changed: not valid JSON/);
    // The user's file that is broken counts as its strictest, also for what the project's file gets.
    await put(projectFile(at), "{}");
    await put(userFile(at), "{");
    expect((await failure(ask({ command: "x" }, "new", true))).message).toContain(`${userFile(at)}:1:2`);
  });
});

describe("trial", () => {
  /** One worker for the trials, which leave nothing behind; all but the one that its end ends. */
  const shared = forRows(() => start({}));

  test.each(["echoes.mjs", "ignores-end.mjs"])(
    "%s -> its tools are counted, and its process is gone",
    async (name) => {
      const at = await shared();
      const [before, entry] = [pidsOf(at).length, marked(at, name)];
      const tried = await at.runtime.ask("tryServer", { name: "new", entry, project: false });
      expect(tried).toMatchObject({ outcome: "connected", transport: "stdio", tools: expect.any(Array) });
      expect(await processesWithMarker(at.agentDir)).toEqual([]);
      expect(pidsOf(at)).toHaveLength(before + 1);
      expect((await at.runtime.ask("status", {})).servers).toEqual([]);
      expect(await readFile(userFile(at), "utf8")).not.toContain("new");
    },
  );

  test("the settings count for a server that is not written yet: it has their sandbox, or does not run", async () => {
    const at = await start({}, { settings: { sandbox: { write: ["/is-not-there"] } } });
    const proposal = { name: "new", entry: marked(at, "echoes.mjs"), project: false };
    expect((await at.runtime.ask("previewServer", proposal)).line).toContain(
      "in a sandbox that may write /is-not-there",
    );
    const tried = await at.runtime.ask("tryServer", proposal);
    expect(tried).toMatchObject({ outcome: "failed", error: { code: "spawn_failed" } });
    expect(pidsOf(at)).toEqual([]);
  });

  test.each<[string, string]>([
    ["exits.mjs", "no licence found"],
    ["garbage.mjs", ""],
    ["exits-at-list.mjs", ""],
  ])("%s -> the error, and nothing runs", async (name, words) => {
    const at = await shared();
    const tried = await at.runtime.ask("tryServer", { name: "new", entry: marked(at, name), project: false });
    if (tried.outcome !== "failed") throw new Error(`it has ${tried.outcome}`);
    expect(`${tried.error.message} ${JSON.stringify(tried.error.data)}`).toContain(words);
    expect(await processesWithMarker(at.agentDir)).toEqual([]);
  });

  test("a server that hangs -> one trial at a time, cancelled at once, its process is gone", async () => {
    const at = await shared();
    const proposal = { name: "new", entry: marked(at, "hangs.mjs"), project: false };
    const cancel = new AbortController();
    const before = at.events.length;
    const trial = failure(at.runtime.ask("tryServer", proposal, cancel.signal));
    await at.event("spawned", () => true, before);
    expect((await failure(at.runtime.ask("tryServer", proposal))).message).toBe(
      "Another server is being tried.",
    );
    cancel.abort();
    expect((await trial).code).toBe("cancelled");
    // The next trial waits for the end of the cancelled one.
    const next = { ...proposal, entry: marked(at, "echoes.mjs") };
    expect((await at.runtime.ask("tryServer", next)).outcome).toBe("connected");
    await waitGone(pidsOf(at));
  });

  test("the end of the session ends the trial and its process", async () => {
    const at = await start({});
    const trial = at.runtime
      .ask("tryServer", { name: "new", entry: marked(at, "hangs.mjs"), project: false })
      .catch((error: unknown) => error);
    await at.event("spawned");
    await at.runtime.stop();
    expect(await trial).toBeInstanceOf(ThreadsError);
    expect(await processesWithMarker(at.agentDir)).toEqual([]);
  });

  test("a server that answers 401 -> a sign-in or a key is needed; one that refuses our header has failed", async () => {
    const answering = (metadata: (origin: string) => object | undefined) =>
      startHttp((request, response) => {
        const body = request.url?.includes("authorization-server")
          ? metadata(`http://${request.headers.host}`)
          : undefined;
        if (body) response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
        else response.writeHead(401, { "www-authenticate": "Bearer" }).end("Missing API key");
      });
    const url = await answering((issuer) => ({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
    }));
    const keyed = await answering(() => undefined);
    const at = await shared();
    const tryUrl = (entry: object) =>
      at.runtime.ask("tryServer", {
        name: "new",
        entry: asEntry({ url: `${url}/mcp`, ...entry }),
        project: false,
      });
    expect(await tryUrl({})).toMatchObject({ outcome: "needs-sign-in" });
    expect(await tryUrl({ url: `${keyed}/mcp` })).toMatchObject({
      outcome: "failed",
      error: {
        message: expect.stringContaining("answered 401: Missing API key"),
        data: { reason: "key-wanted" },
      },
    });
    const refused = await tryUrl({ headers: { Authorization: "Bearer sk-not-the-right-key" } });
    expect(refused).toMatchObject({ outcome: "failed", error: { code: "needs_auth" } });
    expect(JSON.stringify(refused)).not.toContain("sk-not-the-right-key");
  });

  test("an entry with a mistake, or a program that does not exist", async () => {
    const at = await shared();
    const tryEntry = (entry: object) =>
      at.runtime.ask("tryServer", { name: "new", entry: asEntry(entry), project: false });
    expect(await failure(tryEntry({ command: 7 }))).toMatchObject({ code: "bad_config" });
    expect(await tryEntry({ command: "no-such-program-here" })).toMatchObject({
      outcome: "failed",
      error: { code: "spawn_failed", remedy: expect.any(String) },
    });
  });
});

describe("add and remove", () => {
  const shared = forRows(() => start({}));
  /** A session of all tests that begin without a server: what the one before has left is removed. */
  async function empty(): Promise<Started> {
    const at = await shared();
    await put(userFile(at), {});
    for (const left of [projectFile(at), join(at.agentDir, "mcp-keys")]) await removeFolder(left);
    await until(async () => (await at.runtime.ask("status", {})).servers.length === 0 || undefined);
    return at;
  }

  test("the user's file: comments stay, the server runs, and its name is taken", async () => {
    const at = await empty();
    await put(userFile(at), '{\n  // mine\n  "mcpServers": {}\n}\n');
    const entry = marked(at, "echoes.mjs");
    const added = await at.runtime.ask("addServer", { name: "new", entry, project: false });
    expect(added).toEqual({ file: userFile(at) });
    expect(await readFile(userFile(at), "utf8")).toContain("// mine");
    expect((await at.settled("new")).state).toBe("connected");
    const again = await failure(at.runtime.ask("addServer", { name: "new", entry, project: false }));
    expect(again).toMatchObject({ code: "bad_config", message: expect.stringContaining("already") });
    const other = { name: "new", entry: { ...entry, description: "other" }, project: false };
    await at.runtime.ask("addServer", { ...other, replace: true });
    const { servers } = await at.runtime.ask("status", {});
    expect(servers).toMatchObject([{ name: "new", description: "other" }]);
    expect(await at.runtime.ask("removeServer", { server: "new" })).toEqual({ file: userFile(at) });
    expect(await readFile(userFile(at), "utf8")).toBe('{\n  // mine\n  "mcpServers": {\n  }\n}\n');
    expect((await at.runtime.ask("status", {})).servers).toEqual([]);
    expect((await failure(at.runtime.ask("removeServer", { server: "new" }))).code).toBe("unknown_server");
  });

  test("a typed value: a file for the user alone, whose command the server's variable is made of", async () => {
    const at = await empty();
    const value = "s3cret \u00e9' $(no)";
    const keep = (server: string) => at.runtime.ask("keepValue", { server, name: "../KEY", value });
    const { file, written } = await keep("it's/../../one");
    expect(dirname(file)).toBe(join(at.agentDir, "mcp-keys"));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(file))).mode & 0o777).toBe(0o700);
    const again = await keep("it's/../../one");
    expect(again.file).not.toBe(file);
    const outside = join(at.agentDir, "mcp.json");
    await at.runtime.ask("dropValues", { files: [again.file, outside] });
    expect(await readdir(dirname(file))).toEqual([basename(file)]);
    await stat(outside);
    const entry = asEntry({ ...fixture("shows.mjs"), env: { KEY: written } });
    await at.runtime.ask("addServer", { name: "one", entry, project: false });
    expect(await readFile(userFile(at), "utf8")).not.toContain("s3cret");
    expect((await at.settled("one")).state).toBe("connected");
    const long = at.runtime.ask("keepValue", { server: "a", name: "b", value: "x".repeat(20_000) });
    expect((await failure(long)).code).toBe("bad_config");
  });

  test("a server is removed, or replaced -> the values that were typed for it go, but none that another entry names", async () => {
    const at = await empty();
    const keys = join(at.agentDir, "mcp-keys");
    const typed = async (name: string, replace = false, also: Record<string, string> = {}) => {
      const { file, written } = await at.runtime.ask("keepValue", {
        server: name,
        name: "KEY",
        value: "s3cret",
      });
      const entry = asEntry({ ...fixture("echoes.mjs"), env: { KEY: written, ...also } });
      await at.runtime.ask("addServer", { name, entry, project: false, replace });
      return { name: basename(file), written };
    };
    const first = await typed("one");
    const second = await typed("one", true);
    expect(await readdir(keys)).toEqual([second.name]);
    const other = await typed("two", false, { SAME: second.written });
    expect(await at.runtime.ask("removeServer", { server: "one" })).toEqual({ file: userFile(at) });
    expect((await readdir(keys)).sort()).toEqual([second.name, other.name].sort());
    expect(await at.runtime.ask("removeServer", { server: "two" })).toEqual({
      file: userFile(at),
      values: 2,
    });
    expect(await readdir(keys)).toEqual([]);
    expect(first.name).not.toBe(second.name);
    // Of a copied agent folder, or one that cannot be removed: nobody says that it is gone.
    const third = await typed("three");
    await rm(join(keys, third.name));
    expect(await at.runtime.ask("removeServer", { server: "three" })).toEqual({ file: userFile(at) });
  });

  test("a value that a project's file named -> it stays, and the answer says where: another branch may name it", {
    tags: "thorough",
  }, async () => {
    const at = await empty();
    const params = { server: "one", name: "KEY", value: "s3cret" };
    const { file, written } = await at.runtime.ask("keepValue", params);
    const entry = asEntry({ ...fixture("echoes.mjs"), env: { KEY: written } });
    await at.runtime.ask("addServer", { name: "one", entry, project: true });
    await at.settled("one");
    expect(await at.runtime.ask("removeServer", { server: "one" })).toEqual({
      file: projectFile(at),
      kept: [file],
    });
    await stat(file);
    // Whatever the user's own files name as well.
    await at.runtime.ask("addServer", { name: "one", entry, project: true });
    await at.runtime.ask("addServer", { name: "two", entry, project: false });
    expect(await at.runtime.ask("removeServer", { server: "two" })).toEqual({ file: userFile(at) });
    expect(await at.runtime.ask("removeServer", { server: "one" })).toMatchObject({ kept: [file] });
    await stat(file);
  });

  test("a value that an entry names, although its adding failed afterwards -> it stays", {
    tags: "thorough",
  }, async () => {
    const at = await empty();
    const params = { server: "one", name: "KEY", value: "s3cret" };
    const { file, written } = await at.runtime.ask("keepValue", params);
    const entry = asEntry({ ...fixture("echoes.mjs"), env: { KEY: written } });
    await at.runtime.ask("addServer", { name: "one", entry, project: false });
    await at.runtime.ask("dropValues", { files: [file] });
    await stat(file);
    // The command that reads the value has ended.
    expect((await at.settled("one")).state).toBe("connected");
  });

  test("the project's file: private, and runs without another question", async () => {
    const at = await start({ own: marked(await createPlace(), "echoes.mjs") as never });
    const entry = marked(at, "echoes.mjs");
    expect(await at.runtime.ask("addServer", { name: "new", entry, project: true })).toEqual({
      file: projectFile(at),
    });
    expect((await stat(projectFile(at))).mode & 0o777).toBe(0o600);
    expect((await at.runtime.ask("status", {})).questions).toEqual([]);
    expect((await at.settled("new")).state).toBe("connected");
    // The project's server hides the user's own one, which counts again afterwards.
    await at.runtime.ask("addServer", { name: "own", entry, project: true, replace: true });
    expect(await at.runtime.ask("removeServer", { server: "own", file: projectFile(at) })).toEqual({
      file: projectFile(at),
      still: { file: userFile(at), by: "user" },
    });
  });

  test("what hides it is told; what it overrides goes with it", { tags: "thorough" }, async () => {
    const place = await createPlace();
    await put(projectFile(place), { mcpServers: { a: fixture("echoes.mjs"), o: { enabled: false } } });
    const at = await start({ o: fixture("echoes.mjs") }, { place });
    const entry = marked(at, "echoes.mjs");
    const added = await at.runtime.ask("addServer", { name: "a", entry, project: false, replace: true });
    expect(added.but).toBe(`The server a of ${projectFile(at)} counts in its place.`);
    expect(await at.runtime.ask("removeServer", { server: "o" })).toEqual({
      file: userFile(at),
      also: [projectFile(at)],
    });
    expect(await readFile(projectFile(at), "utf8")).not.toContain('"o"');
    expect((await at.runtime.ask("status", {})).problems).toEqual([]);
  });

  test("a server in the place of an imported one -> the user's rules for that name stay", {
    tags: "thorough",
  }, async () => {
    const place = await emptyHome();
    await put(join(place.home, ".claude.json"), { mcpServers: { a: { command: "other" } } });
    const at = await start({}, { place });
    const rules = { approve: "always", excludeTools: ["drop_*"] };
    await put(userFile(at), { imports: ["claude-code"], mcpServers: { a: rules } });
    await at.event("planned", ({ servers }) => servers.some(({ name }) => name === "a"));
    const entry = marked(at, "echoes.mjs");
    await at.runtime.ask("addServer", { name: "a", entry, project: false, replace: true });
    const { mcpServers } = JSON.parse(await readFile(userFile(at), "utf8"));
    expect(mcpServers.a).toEqual({ ...rules, ...entry });
    expect(await at.runtime.ask("serverDetails", { server: "a" })).toMatchObject({ approve: "always" });
  });

  test("an entry with a mistake can be removed; a server that is not ours cannot", async () => {
    const place = await emptyHome();
    await put(join(place.home, ".claude.json"), { mcpServers: { theirs: { command: "x" } } });
    const registered = [{ name: "ext", config: { command: "y" }, extensionPath: "/ext.ts" }];
    const at = await start({}, { place, facts: { registered } });
    await put(userFile(at), { imports: ["claude-code"], mcpServers: { wrong: { command: 7 } } });
    await at.event("planned", ({ servers }) => servers.some(({ name }) => name === "theirs"));
    expect(await at.runtime.ask("removeServer", { server: "wrong" })).toEqual({ file: userFile(at) });
    for (const [server, words] of [
      ["theirs", "file of another program"],
      ["ext", "extension /ext.ts"],
    ] as const) {
      const error = await failure(at.runtime.ask("removeServer", { server }));
      expect(error.message).toContain(words);
      expect(error.remedy).toContain(`/mcp disable ${server}`);
    }
  });

  test("an edit that waits keeps waiting while a server is added", { tags: "thorough" }, async () => {
    const place = await createPlace();
    const at = await start({ a: fixture("echoes.mjs") }, { place });
    const settings = { hotReload: "ask" };
    await put(userFile(at), { mcpServers: { a: fixture("echoes.mjs") }, settings });
    await at.event("planned", () => true, at.events.length);
    await put(userFile(at), {
      mcpServers: { a: fixture("echoes.mjs"), waits: { command: "never" } },
      settings,
    });
    await at.event("held");
    await at.runtime.ask("addServer", { name: "new", entry: marked(at, "echoes.mjs"), project: false });
    const { servers } = await at.runtime.ask("status", {});
    expect(servers.map(({ name }) => name).sort()).toEqual(["a", "new"]);
    expect(await readFile(userFile(at), "utf8")).toContain("waits");
  });
});

describe("imports", () => {
  const SECRET = "sk-very-secret-0123456789";
  const shared = forRows(() => withHosts());
  async function withHosts() {
    const place = await emptyHome();
    await put(
      join(place.home, ".claude.json"),
      JSON.stringify({
        mcpServers: {
          docs: {
            type: "http",
            url: "https://docs.example/mcp",
            headers: { Authorization: `Bearer ${SECRET}` },
          },
          mine: { command: "other" },
          tool: { command: "run", args: ["--api-key", SECRET], env: { T: "$" + "{T}" } },
        },
      }),
    );
    await put(join(place.cwd, ".cursor", "mcp.json"), {
      mcpServers: { clone: { command: "sh", args: ["-c", `token=${SECRET}`] }, mine: { command: "mine" } },
    });
    await put(join(place.home, "codex", "config.toml"), "[mcp_servers.bad\n");
    const at = await start({}, { place });
    await put(
      userFile(at),
      '{\n  // mine\n  "mcpServers": { "mine": { "command": "mine", "enabled": false } }\n}\n',
    );
    await at.event("planned", ({ servers }) => servers.some(({ name }) => name === "mine"));
    return { ...place, at };
  }
  const serversOf = ({ hosts }: FoundImports, host: string): FoundServer[] =>
    hosts.find((one) => one.host === host)?.files.flatMap(({ servers }) => servers) ?? [];
  const idOf = (found: FoundImports, host: string, name: string): string =>
    serversOf(found, host).find((server) => server.name === name)?.id ?? "";

  test("each file, what would run, whether it is new, and no secret of the user's own files", async () => {
    const { at, home, cwd } = await shared();
    const found = await at.runtime.ask("findImports", {});
    expect(found.file).toBe(userFile(at));
    expect(
      found.hosts.map(({ title, imported, files }) => [title, imported, files.map(({ file }) => file)]),
    ).toEqual([
      ["Cursor", false, [join(cwd, ".cursor", "mcp.json")]],
      ["Claude Code", false, [join(home, ".claude.json")]],
      ["Codex", false, [join(home, "codex", "config.toml")]],
    ]);
    expect(found.hosts.flatMap(({ files }) => files.map(({ ofProject }) => ofProject))).toEqual([
      true,
      false,
      false,
    ]);
    expect(found.problems).toMatchObject([{ file: join(home, "codex", "config.toml"), line: 1 }]);
    const claude = serversOf(found, "claude-code");
    expect(claude.map(({ name, standing, line }) => [name, standing, line])).toEqual([
      ["docs", "new", "https://docs.example/mcp (headers Authorization (32 characters))"],
      ["mine", "other", "other"],
      ["tool", "new", expect.stringMatching(/^run --api-key "\[redacted\]" \(env T \(from \$T\)\)$/)],
    ]);
    // Nothing that a clone would run is hidden behind a mask.
    expect(serversOf(found, "cursor").map(({ name, standing, line }) => [name, standing, line])).toEqual([
      ["clone", "new", `sh -c token=${SECRET}`],
      ["mine", "same", "mine"],
    ]);
    expect(JSON.stringify(claude)).not.toContain(SECRET);
  });

  // It looks at the same files, and then changes them.
  test("copies what was chosen, in our keys; what changed since, or has a name that is taken, is left", async () => {
    const { at, home } = await shared();
    const found = await at.runtime.ask("findImports", {});
    const ids = ["docs", "mine", "tool"].map((name) => idOf(found, "claude-code", name));
    const own = JSON.parse(await readFile(join(home, ".claude.json"), "utf8"));
    own.mcpServers.tool.args = ["--other"];
    await put(join(home, ".claude.json"), own);
    const taken = await at.runtime.ask("takeImports", {
      how: "copy",
      ids: [...ids, idOf(found, "cursor", "clone")],
    });
    expect(taken).toEqual({
      file: userFile(at),
      taken: ["docs", "clone"],
      left: [
        { name: "1 of the chosen", reason: "its file has changed since it was shown" },
        { name: "mine", reason: "the file has an entry of this name already" },
      ],
    });
    const text = await readFile(userFile(at), "utf8");
    expect(text).toContain("// mine");
    const { mcpServers } = JSON.parse(text.replace("// mine", ""));
    expect(mcpServers.docs).toEqual({
      type: "http",
      url: "https://docs.example/mcp",
      headers: { Authorization: `Bearer ${SECRET}` },
    });
    expect(Object.keys(mcpServers)).toEqual(["mine", "docs", "clone"]);
    expect(await at.log()).not.toContain(SECRET);
  });

  test.skipIf(process.platform === "win32")(
    "copies with a sandbox: those of a registry get one, unless they or the settings say something",
    async () => {
      const at = await emptyHome();
      const mcpServers = {
        fetched: { command: "npx", args: ["-y", "a"] },
        tool: { command: "/usr/bin/uv", args: ["tool", "run", "b"] },
        own: { command: "./server", args: [] },
        docs: { url: "https://docs.example/mcp" },
      };
      await put(join(at.home, ".claude.json"), { mcpServers });
      const { runtime } = await start({}, { place: at });
      const found = await runtime.ask("findImports", {});
      const servers = found.hosts.flatMap(({ files }) => files.flatMap((file) => file.servers));
      expect(servers.filter(({ lacksRoom }) => lacksRoom).map(({ name }) => name)).toEqual([
        "fetched",
        "tool",
      ]);
      const ids = servers.flatMap(({ id }) => id ?? []);
      await runtime.ask("takeImports", { how: "copy", ids, sandbox: true });
      const written = JSON.parse(await readFile(userFile(at), "utf8")).mcpServers;
      expect(Object.values<{ sandbox?: boolean }>(written).map(({ sandbox }) => sandbox)).toEqual([
        true,
        true,
        undefined,
        undefined,
      ]);
    },
  );

  test("copies the names that Codex passes on where the settings keep the environment back, and nowhere else", {
    tags: "thorough",
  }, async () => {
    const at = await emptyHome();
    await put(join(at.home, "codex", "config.toml"), '[mcp_servers.s]\ncommand = "x"\nenv_vars = ["A"]');
    for (const [inheritEnv, expected] of [
      [false, ["A"]],
      [true, undefined],
    ] as const) {
      const { runtime } = await start({}, { place: at, settings: { inheritEnv } });
      const found = await runtime.ask("findImports", {});
      await runtime.ask("takeImports", { how: "copy", ids: [idOf(found, "codex", "s")] });
      const { mcpServers } = JSON.parse(await readFile(userFile(at), "utf8"));
      expect(mcpServers.s).toEqual({ command: "x", ...(expected && { inheritEnv: expected }) });
    }
  });

  test("names programs in imports; a project's servers of theirs still need a yes", async () => {
    const { at } = await withHosts();
    const wish = { how: "imports" as const, hosts: ["cursor", "claude-code", "nonsense", "__proto__"] };
    expect(await at.runtime.ask("takeImports", wish)).toEqual({
      file: userFile(at),
      taken: ["cursor", "claude-code"],
      left: [
        { name: "nonsense", reason: "no such program is known" },
        { name: "__proto__", reason: "no such program is known" },
      ],
    });
    expect(await readFile(userFile(at), "utf8")).toContain('"imports": ["cursor", "claude-code"]');
    const { servers, questions } = await at.runtime.ask("status", {});
    expect(servers.map(({ name }) => name)).toContain("docs");
    expect(questions.map(({ server }) => server)).toEqual(["clone"]);
    const found = await at.runtime.ask("findImports", {});
    expect(found.hosts.map(({ imported }) => imported)).toEqual([true, true, false]);
    expect(serversOf(found, "claude-code").map(({ standing }) => standing)).toEqual([
      "same",
      "other",
      "same",
    ]);
    const again = await at.runtime.ask("takeImports", { how: "imports", hosts: ["cursor"] });
    expect(again.left).toEqual([{ name: "cursor", reason: "it is imported already" }]);
  });

  test("an untrusted project's files are neither looked for nor written", async () => {
    const place = await emptyHome();
    await put(join(place.cwd, ".vscode", "mcp.json"), { servers: { clone: { command: "x" } } });
    const at = await start({}, { place, facts: { projectTrusted: false } });
    expect((await at.runtime.ask("findImports", {})).hosts).toEqual([]);
    const proposal = { name: "new", entry: marked(at, "echoes.mjs"), project: true };
    expect((await failure(at.runtime.ask("addServer", proposal))).message).toContain("not trusted");
    expect(await readdir(at.cwd)).toEqual([".vscode"]);
  });
});

describe("the hint of the first start", () => {
  const FACTS = { hints: true };
  const hintsOf = ({ events }: Started): string[] =>
    events.flatMap((event) => (event.type === "notice" ? [event.text] : []));

  test("no server anywhere -> told once for each agent folder, with what other programs have", async () => {
    const place = await emptyHome();
    await put(join(place.home, ".claude.json"), { mcpServers: { a: { command: "x" }, b: { command: "y" } } });
    await put(join(place.cwd, ".cursor", "mcp.json"), { mcpServers: { c: { command: "z" } } });
    const first = await start({}, { place, facts: FACTS });
    expect((await first.event("notice")).text).toBe(
      "No MCP server is configured yet. /mcp add adds one, /mcp import takes over what other programs have: 3 servers of Cursor and Claude Code.",
    );
    expect((await stat(join(place.agentDir, "mcp-hint.json"))).mode & 0o777).toBe(0o600);
    await first.runtime.stop();
    const second = await start({}, { place, facts: FACTS });
    await second.runtime.ask("findImports", {});
    await second.runtime.stop();
    expect(hintsOf(second)).toEqual([]);
  });

  test.each<[string, Record<string, object>, object]>([
    ["a server is configured", { a: fixture("echoes.mjs") }, FACTS],
    ["nobody sees it", {}, {}],
  ])("%s -> nothing is told, and nothing is written", async (_what, servers, facts) => {
    const place = await emptyHome();
    const at = await start(servers as never, { place, facts });
    await at.runtime.ask("findImports", {});
    await at.runtime.stop();
    expect(hintsOf(at)).toEqual([]);
    expect(await readdir(place.agentDir)).not.toContain("mcp-hint.json");
  });
});
