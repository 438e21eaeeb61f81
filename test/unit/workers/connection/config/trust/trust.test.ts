/**
 * Owns: the user's consents as one session knows them, on a real mcp-trust.json: what is remembered before anybody is
 * asked, how far an answer holds, and what follows if the file is full, broken or written by another session.
 */
import { chmod, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { SessionFacts } from "../../../../../../src/shared/protocol/session.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import type { PendingConsent } from "../../../../../../workers/connection/config/trust/decide.ts";
import { loadTrust } from "../../../../../../workers/connection/config/trust/file.ts";
import { keyOf } from "../../../../../../workers/connection/config/trust/records.ts";
import { type Consents, openConsents } from "../../../../../../workers/connection/config/trust/trust.ts";
import { resolveTarget } from "../../../../../../workers/connection/config/values/values.ts";
import { definition, PROJECT_FILE, PROJECT_PI, put, temporaryFolder } from "../support.ts";

const RAW = { command: "x" };
const onPi = (name: string): ServerDefinition => definition(name, RAW, PROJECT_PI);
const onFile = (name: string): ServerDefinition => definition(name, RAW, PROJECT_FILE);

interface At {
  agentDir: string;
  cwd: string;
}

async function place(): Promise<At> {
  const home = await temporaryFolder();
  const at = { agentDir: join(home, "agent"), cwd: join(home, "project") };
  await mkdir(at.agentDir);
  await mkdir(at.cwd);
  return at;
}

const openAt = (at: At, over: Partial<SessionFacts> = {}): Promise<Consents> =>
  openConsents(
    {
      ...at,
      projectTrusted: true,
      configPath: undefined,
      registered: [],
      canAsk: true,
      snapshotChecksum: undefined,
      ...over,
    },
    () => undefined,
  );

const names = (servers: readonly { definition: ServerDefinition }[]): string[] =>
  servers.map(({ definition: { name } }) => name);
const trustOf = async ({ agentDir }: At) => (await loadTrust(join(agentDir, "mcp-trust.json"))).consents;

/** As after the first plan of a session that began without the project's servers. */
async function started(at: At): Promise<Consents> {
  const consents = await openAt(at);
  consents.accept(await consents.decide([]));
  return consents;
}

describe("a file of the project that a server names", () => {
  const SCRIPT = {
    command: "node",
    args: ["--flag", "--import=./hook.mjs", "server.js", ".", "missing.js", "https://a.b"],
  };
  const at = async (raw: object = SCRIPT, source = PROJECT_FILE) => {
    const home = await place();
    await put(join(home.cwd, "server.js"), "1");
    await put(join(home.cwd, "hook.mjs"), "1");
    const server = definition("a", raw, source);
    const first = await openAt(home);
    const { pending } = await first.decide([server]);
    if (pending[0]) await first.answer(pending[0], "allowed");
    return {
      ...home,
      server,
      question: pending[0]?.question,
      again: async () => (await openAt(home)).decide([server]),
    };
  };

  test("the question names it; the same content -> runs; another content, also of a later file or behind a link -> asked again", async () => {
    const { cwd, again, question } = await at();
    expect(question).toContain("with ./hook.mjs and server.js as it is now, from ");
    const { allowed } = await again();
    expect(names(allowed.map((one) => ({ definition: one })))).toEqual(["a"]);
    for (const [path, content] of [
      ["server.js", "2"],
      ["hook.mjs", "2"],
      ["missing.js", "1"],
    ] as const) {
      const before = await readFile(join(cwd, path), "utf8").catch(() => undefined);
      await put(join(cwd, path), content);
      expect(names((await again()).pending)).toEqual(["a"]);
      if (before !== undefined) await put(join(cwd, path), before);
      else await rm(join(cwd, path));
      expect((await again()).pending).toEqual([]);
    }
    await put(join(cwd, "elsewhere.js"), "1");
    await rm(join(cwd, "server.js"));
    await symlink("elsewhere.js", join(cwd, "server.js"));
    expect(names((await again()).pending)).toEqual(["a"]);
  });

  test.each<[string, object, file: string, named: string]>([
    ["without its ending", { command: "node", args: ["./server"] }, "server.js", "./server.js"],
    ["as a module", { command: "python", args: ["-m", "tool"] }, "tool.py", "tool.py"],
    [
      "in a variable of a runtime",
      { command: "npx", args: ["-y", "good"], env: { NODE_OPTIONS: "--no-warnings --require=./hook.mjs" } },
      "hook.mjs",
      "./hook.mjs",
    ],
    [
      "in a variable that looks like one",
      { command: "x", env: { X_PLUGIN: "./hook.mjs" } },
      "hook.mjs",
      "./hook.mjs",
    ],
    ["in one word with its option", { command: "awk", args: ["-f./hook.mjs"] }, "hook.mjs", "./hook.mjs"],
    [
      "in a line of a shell",
      { command: "sh", args: ["-c", "cd . && exec './hook.mjs'"] },
      "hook.mjs",
      "./hook.mjs",
    ],
    ...[
      '"$PWD"/hook.mjs',
      "$PWD/hook.mjs",
      '"$(pwd)/hook.mjs"',
      "$(git rev-parse --show-toplevel)/hook.mjs",
    ].map((path): [string, object, string, string] => [
      `in a line of a shell, as ${path}`,
      { command: "sh", args: ["-c", `exec node ${path}`] },
      "hook.mjs",
      "./hook.mjs",
    ]),
    ...[
      'cd sub && node "inner.js"',
      "cd ./sub/; node ./inner.js",
      "cd sub/deeper && cd .. && node inner.js",
      'cd "$(pwd)/sub" && node inner.js',
      "(cd lib && make); cd sub && node inner.js",
      "make -C sub && node inner.js",
      "make -Csub && node inner.js",
      "cd -P -- sub && node inner.js",
    ].map((line): [string, object, string, string] => [
      `in the folder of a line of a shell: ${line}`,
      { command: "sh", args: ["-c", line] },
      "sub/inner.js",
      "sub/inner.js",
    ]),
    ...[
      ["--directory", "./sub", "run", "inner.py"],
      ["--directory=sub", "run", "inner.py"],
      ["--directory", "${PWD}/sub", "run", "inner.py"],
      ["--project", "sub", "run", "-m", "inner"],
    ].map((args): [string, object, string, string] => [
      `in the folder that a runner is told: ${args.join(" ")}`,
      { command: "uv", args },
      "sub/inner.py",
      "sub/inner.py",
    ]),
    ["in a program's text", { command: "node", args: ["-e", 'require("./hook")'] }, "hook.mjs", "./hook.mjs"],
    [
      "by a variable in a longer text",
      { command: "node", args: ["--import", "file://${PWD}/hook.mjs"] },
      "hook.mjs",
      "/hook.mjs",
    ],
    [
      "outside of the clone",
      { command: "node", args: ["../lib/tool.js"] },
      "../lib/tool.js",
      "../lib/tool.js",
    ],
    [
      "as its certificate authority",
      { url: "https://a.example/mcp", caFile: "./server.js" },
      "server.js",
      "./server.js",
    ],
  ])("%s -> the question names it, and another content asks again", async (_, raw, file, named) => {
    const home = await place();
    vi.stubEnv("PWD", home.cwd);
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const one of ["server.js", "hook.mjs", "tool.py", "../lib/tool.js", "sub/inner.js", "sub/inner.py"])
      await put(join(home.cwd, one), "1");
    const decide = async () => (await openAt(home)).decide([definition("a", raw, PROJECT_FILE)]);
    const [asked] = (await decide()).pending;
    expect(asked?.question).toContain(`${named} as it is now`);
    expect(asked?.question).not.toContain("you allowed");
    await (await openAt(home)).answer(asked as never, "allowed");
    expect((await decide()).pending).toEqual([]);
    await put(join(home.cwd, file), "2");
    const { pending } = await decide();
    expect(names(pending)).toEqual(["a"]);
    expect(pending[0]?.question).toContain(
      "which you allowed when its files were others or did not count, from ",
    );
  });

  test("what a server writes itself, named by a variable or within a longer text -> nothing is bound", async () => {
    const raw = {
      command: "npx",
      args: ["-y", "db", "sqlite:./data.db"],
      env: { MEMORY_FILE_PATH: "./memory.json", X_DB_PATH: "./data.duckdb", X_DIR: "." },
    };
    const home = await place();
    for (const one of ["data.db", "memory.json", "data.duckdb"]) await put(join(home.cwd, one), "1");
    const { pending } = await (await openAt(home)).decide([definition("a", raw, PROJECT_FILE)]);
    expect(pending[0]?.question).not.toContain("as it is now");
  });

  test.each<[string, (consents: Consents, asked: PendingConsent) => Promise<void>]>([
    ["a no", (consents, asked) => consents.answer(asked, "refused")],
    [
      "a no, and the wish to be asked again",
      async (consents, asked) => {
        await consents.answer(asked, "refused");
        consents.reopen();
      },
    ],
    [
      "a yes that is taken back",
      async (consents, asked) => {
        await consents.answer(asked, "allowed");
        consents.accept(await consents.decide([asked.definition]));
        await consents.takeBack(keyOf(asked));
      },
    ],
  ])(
    "agreed to, then %s to another content, then the content of before -> it does not run",
    async (_what, then) => {
      const { server, cwd, agentDir } = await at();
      const session = await openAt({ cwd, agentDir });
      const step = async (content: string) => {
        await put(join(cwd, "server.js"), content);
        const decision = await session.decide([server]);
        session.accept(decision);
        return decision;
      };
      expect((await step("1")).allowed).toHaveLength(1);
      const [asked] = (await step("2")).pending;
      await then(session, asked ?? expect.unreachable("no question"));
      expect((await step("1")).allowed).toEqual([]);
    },
  );

  test("in the folder of the entry, and a larger one than is read -> asked again when it changes", async () => {
    const { cwd, again } = await at({ command: "./run.sh", cwd: "sub" });
    await put(join(cwd, "sub", "run.sh"), "x".repeat(LIMITS.scriptBytes + 1));
    const [asked] = (await again()).pending;
    expect(asked?.question).toContain("with ./run.sh as it is now");
    await (await openAt({ cwd, agentDir: join(cwd, "..", "agent") })).answer(asked as never, "allowed");
    expect((await again()).pending).toEqual([]);
    await put(join(cwd, "sub", "run.sh"), "y".repeat(LIMITS.scriptBytes + 2));
    expect(names((await again()).pending)).toEqual(["a"]);
  });

  test("a server is not started with another content than the one agreed to, also without a new decision", async () => {
    const { cwd, again } = await at();
    const [server] = (await again()).allowed;
    const options = { cwd, home: join(cwd, ".."), env: {}, signal: new AbortController().signal };
    const start = () =>
      resolveTarget(server as ServerDefinition, {
        ...options,
        onSpawn: () => undefined,
        onExit: () => undefined,
      });
    expect(await start()).toMatchObject({ command: "node" });
    await put(join(cwd, "server.js"), "2");
    await expect(start()).rejects.toMatchObject({
      code: "server_not_trusted",
      message: "a is not started: a file that its entry names is not what was agreed to.",
    });
  });

  test("a trusted .pi/mcp.json, the user's own server, and a file outside of the project -> nothing is bound", async () => {
    const pi = await at(SCRIPT, PROJECT_PI);
    expect(pi.question).toBeUndefined();
    await put(join(pi.cwd, "server.js"), "2");
    expect((await pi.again()).pending).toEqual([]);
    const outside = await at({ command: process.execPath, args: ["/etc/hostname", "../other"] });
    expect(outside.question).not.toContain("as it is now");
  });

  const WORDS = "the servers have more than 5000 words that may be files";
  const FOLDERS = "it goes to more than 100 folders, so a yes could not be bound to its files";
  test.each([
    ["words", WORDS, Array.from({ length: LIMITS.scriptWords + 1 }, () => "x")],
    ["words in folders", WORDS, Array.from({ length: 49 }, (_, at) => `cd ./d${at} && x y`)],
    ["folders", FOLDERS, Array.from({ length: 60 }, (_, at) => `cd d${at}`)],
    ["folders, each within the one before", FOLDERS, ["cd a ".repeat(100_000)]],
  ])("more %s than are looked at -> refused, with the reason", async (_what, reason, args) => {
    const home = await place();
    const { refused } = await (await openAt(home)).decide([
      definition("a", { command: "node", args }, PROJECT_FILE),
    ]);
    expect(refused[0]?.reason).toBe(reason);
  });
});

describe("a server of .pi/mcp.json that a model wrote", () => {
  test("is in the file before anybody is asked; a folder that is renamed does not lose it", async () => {
    const at = await place();
    const decided = await (await started(at)).decide([onPi("evil")]);
    expect(names(decided.pending)).toEqual(["evil"]);
    expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "awaiting" }]);

    const moved = { ...at, cwd: `${at.cwd}-renamed` };
    await rename(at.cwd, moved.cwd);
    const again = await (await openAt(moved)).decide([onPi("evil")]);
    expect(names(again.pending)).toEqual(["evil"]);
    expect(await trustOf(at)).toHaveLength(2);
  });

  test("nobody can be asked -> remembered all the same", async () => {
    const at = await place();
    const consents = await openAt(at, { canAsk: false });
    consents.accept(await consents.decide([]));
    expect(names((await consents.decide([onPi("evil")])).refused)).toEqual(["evil"]);
    expect(await trustOf(at)).toMatchObject([{ server: "evil", decision: "awaiting" }]);
  });

  test("more of them than the file has room for -> reported once, and from then on everything is asked for", async () => {
    const at = await place();
    const consents = await started(at);
    const many = Array.from({ length: 501 }, (_, i) => onPi(`s${i}`));
    await consents.decide(many);
    expect(consents.problems).toMatchObject([
      { severity: "warning", message: "what was refused or put off before is no longer known" },
    ]);
    await consents.decide(many);
    expect(consents.problems).toHaveLength(1);
    const elsewhere = await openAt({ ...at, cwd: await temporaryFolder() });
    expect(names((await elsewhere.decide([onPi("unheard")])).pending)).toEqual(["unheard"]);
    expect(elsewhere.problems).toEqual([]);
  });
});

describe("an answer", () => {
  test("holds for every path to the folder", async () => {
    const at = await place();
    const consents = await openAt(at);
    const [asked] = (await consents.decide([onFile("docs")])).pending;
    if (!asked) throw new Error("not asked");
    await consents.answer(asked, "allowed");
    const linked = `${at.cwd}-link`;
    await symlink(at.cwd, linked);
    const again = await (await openAt({ ...at, cwd: linked })).decide([onFile("docs")]);
    expect(names(again.allowed.map((one) => ({ definition: one })))).toEqual(["docs"]);
  });

  test("refused, asked again and put off -> it is still refused at the next start", async () => {
    const at = await place();
    const consents = await openAt(at);
    const [asked] = (await consents.decide([onFile("docs")])).pending;
    if (!asked) throw new Error("not asked");
    await consents.answer(asked, "refused");
    expect(names((await consents.decide([onFile("docs")])).refused)).toEqual(["docs"]);
    consents.reopen();
    expect(names((await consents.decide([onFile("docs")])).pending)).toEqual(["docs"]);
    await consents.answer(asked, "refused");
    expect(names((await consents.decide([onFile("docs")])).refused)).toEqual(["docs"]);
    expect(names((await (await openAt(at)).decide([onFile("docs")])).refused)).toEqual(["docs"]);
  });

  test("of another session of the same folder counts as soon as something is remembered", async () => {
    const at = await place();
    const [one, two] = [await started(at), await started(at)];
    const [asked] = (await one.decide([onPi("docs")])).pending;
    if (!asked) throw new Error("not asked");
    await one.answer(asked, "refused");
    expect(names((await two.decide([onPi("docs")])).refused)).toEqual(["docs"]);
  });

  test("that cannot be written holds for this session, and says so", async () => {
    const at = await place();
    await mkdir(join(at.agentDir, "mcp-trust.json"));
    const consents = await openAt(at);
    const [asked] = (await consents.decide([onFile("docs")])).pending;
    if (!asked) throw new Error("not asked");
    await expect(consents.answer(asked, "allowed")).rejects.toMatchObject({ code: "bad_config" });
    expect(names((await consents.decide([onFile("docs")])).pending)).toEqual([]);
  });
});

describe("an answer that could not be written", () => {
  const servers = [onFile("a"), onFile("b")];
  const decideOn = async (consents: Consents) => {
    const decision = await consents.decide(servers);
    consents.accept(decision);
    const { allowed, pending, refused } = decision;
    return { allowed: allowed.map(({ name }) => name), pending: names(pending), refused: names(refused) };
  };
  const answerOf = async (consents: Consents, name: string, decision: "allowed" | "refused") => {
    const asked = (await consents.decide(servers)).pending.find((one) => one.definition.name === name);
    if (!asked) throw new Error(`${name} is not asked about`);
    await consents.answer(asked, decision);
  };
  const takeBack = async (consents: Consents, name: string) =>
    consents.takeBack(consents.decisions.find(({ server }) => server === name)?.id ?? "");
  /** While `answer` runs, a folder is in the file's place. */
  const unwritten = async ({ agentDir }: At, answer: () => Promise<void>) => {
    const file = join(agentDir, "mcp-trust.json");
    const had = await rename(file, `${file}.away`).then(
      () => true,
      () => false,
    );
    await mkdir(file);
    await expect(answer()).rejects.toMatchObject({ code: "bad_config" });
    await rm(file, { recursive: true });
    if (had) await rename(`${file}.away`, file);
  };
  const written = async (at: At) =>
    (await trustOf(at)).map(({ server, decision }) => `${server} ${decision}`).sort();

  test("a permission that was taken back -> it stays so after the next answer, which writes it as well", async () => {
    const at = await place();
    const consents = await openAt(at);
    await answerOf(consents, "a", "allowed");
    await unwritten(at, () => takeBack(consents, "a"));
    expect(await decideOn(consents)).toEqual({ allowed: [], pending: ["a", "b"], refused: [] });
    await answerOf(consents, "b", "allowed");
    expect(await decideOn(consents)).toEqual({ allowed: ["b"], pending: ["a"], refused: [] });
    expect(await written(at)).toEqual(["a awaiting", "b allowed"]);
    expect(await decideOn(await openAt(at))).toEqual({ allowed: ["b"], pending: ["a"], refused: [] });
    await answerOf(consents, "a", "allowed");
    expect(await decideOn(consents)).toEqual({ allowed: ["a", "b"], pending: [], refused: [] });
    expect(await written(at)).toEqual(["a allowed", "b allowed"]);
  });

  test("two in a row, the second one a refusal -> both stay so after the next answer, which writes them as well", async () => {
    const at = await place();
    const consents = await openAt(at);
    await answerOf(consents, "a", "allowed");
    await unwritten(at, () => takeBack(consents, "a"));
    await unwritten(at, () => answerOf(consents, "b", "refused"));
    expect(await decideOn(consents)).toEqual({ allowed: [], pending: ["a"], refused: ["b"] });
    await consents.allowAsUser(onFile("c"));
    expect(await decideOn(consents)).toEqual({ allowed: [], pending: ["a"], refused: ["b"] });
    expect(await written(at)).toEqual(["a awaiting", "b refused", "c allowed"]);
  });

  test("a yes -> it holds for this session only, as was said, and gives way to a later no of another session", async () => {
    const at = await place();
    const [consents, other] = [await openAt(at), await openAt(at)];
    const decisions = () => consents.decisions.map(({ server, decision }) => `${server} ${decision}`).sort();
    await unwritten(at, () => answerOf(consents, "a", "allowed"));
    await answerOf(consents, "b", "refused");
    expect(decisions()).toEqual(["a allowed", "b refused"]);
    expect(await written(at)).toEqual(["b refused"]);
    await answerOf(other, "a", "refused");
    await consents.allowAsUser(onFile("c"));
    expect(decisions()).toEqual(["a refused", "b refused", "c allowed"]);
    expect(await decideOn(consents)).toEqual({ allowed: [], pending: [], refused: ["a", "b"] });
  });

  test("a yes that is taken back -> the question is open, and the file has that", async () => {
    const at = await place();
    const consents = await openAt(at);
    await unwritten(at, () => answerOf(consents, "a", "allowed"));
    await takeBack(consents, "a");
    await answerOf(consents, "b", "allowed");
    expect(await decideOn(consents)).toEqual({ allowed: ["b"], pending: ["a"], refused: [] });
    expect(await written(at)).toEqual(["a awaiting", "b allowed"]);
  });
});

describe("a file of consents that cannot be used", () => {
  test.each([
    ["half of it", '{"version":3,"consents":[{'],
    ["an earlier version, whose hashes are others", '{"version":2,"consents":[]}'],
    ["a later version", '{"version":9,"consents":[]}'],
    ["far too large", `{"version":3,"consents":[],"x":"${"x".repeat(9 * 1024 * 1024)}"}`],
  ])(
    "%s -> nothing of a project starts unasked, neither now nor, once it is written anew, in other folders",
    async (_, text) => {
      const at = await place();
      const file = join(at.agentDir, "mcp-trust.json");
      await writeFile(file, text);
      const consents = await openAt(at);
      const [asked] = (await consents.decide([onPi("a")])).pending;
      if (!asked) throw new Error("not asked");
      await consents.answer(asked, "allowed");
      const elsewhere = await openAt({ ...at, cwd: await temporaryFolder() });
      expect(names((await elsewhere.decide([onPi("b")])).pending)).toEqual(["b"]);
      const again = await (await openAt(at)).decide([onPi("a")]);
      expect(names(again.pending)).toEqual([]);
      expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ version: 3 });
    },
  );

  test("without the right to read it -> nothing of a project starts unasked", async (context) => {
    if (process.getuid?.() === 0) context.skip();
    const at = await place();
    const file = join(at.agentDir, "mcp-trust.json");
    await put(file, { version: 3, consents: [] });
    await chmod(file, 0o000);
    expect(names((await (await openAt(at)).decide([onPi("a")])).pending)).toEqual(["a"]);
  });
});

test("the envFile of a server that started with the project changes during a decision -> one look decides", async () => {
  const at = await place();
  await put(join(at.cwd, ".env"), "A_KEY=1");
  const server = definition("a", { ...RAW, envFile: ".env" }, PROJECT_PI);
  const consents = await openAt(at);
  const first = await consents.decide([server]);
  consents.accept(first);
  expect(consents.envFiles).toEqual([join(at.cwd, ".env")]);
  await put(join(at.cwd, ".env"), "A_KEY=1\nNODE_OPTIONS=--require=./evil.cjs");
  const [one, two] = await Promise.all([consents.decide([server]), consents.decide([{ ...server }])]);
  expect([...names(one.pending), ...names(two.pending)]).toEqual(["a", "a"]);
  expect(one.pending[0]?.question).toContain("which sets NODE_OPTIONS=--require=./evil.cjs, A_KEY)");
  await put(join(at.cwd, ".env"), "A_KEY=2");
  const back = await consents.decide([server]);
  expect(names(back.pending)).toEqual([]);
  expect(back.allowed[0]?.agreedEnvFile).toBe(first.allowed[0]?.agreedEnvFile);
});
