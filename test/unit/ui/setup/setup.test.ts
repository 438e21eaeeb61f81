/** Owns: what `/mcp add`, `/mcp import` and `/mcp remove` ask a person, ask the worker, and say. */
import { describe, expect, test, vi } from "vitest";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { FoundImports, ServerPreview, TriedServer } from "../../../../src/shared/protocol/person.ts";
import { pagesOf } from "../../../../src/ui/dialog.ts";
import { askedKey } from "../../../../src/ui/setup/key.ts";
import { addServer, importServers, removeServer } from "../../../../src/ui/setup/setup.ts";
import { exitCodeOf } from "../../exit-code.ts";
import {
  createRecordingContext,
  type RecordingContext,
  type RecordingOptions,
} from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { type Answers, fakeHost } from "../fake-host.ts";

/** What the person does in each dialog: the start of the choice, the typed text, or undefined to close it. */
type Script = (string | undefined)[];

const MINE = "/agent/mcp.json";
const PROJECT = "/project/.pi/mcp.json";
const preview = (more: Partial<ServerPreview> = {}): ServerPreview => ({
  file: MINE,
  mistakes: [],
  line: "npx -y fs",
  transport: "stdio",
  ...more,
});
const CONNECTED: TriedServer = {
  outcome: "connected",
  toolCount: 12,
  tools: ["read", "write"],
  transport: "stdio",
  protocol: "2025-11-25",
  tookMs: 842,
};
const FAILED: TriedServer = {
  outcome: "failed",
  error: { code: "spawn_failed", message: "fs: npx was not found.", remedy: "Install Node." },
  tookMs: 3,
};

const ANSWERS: Answers = {
  previewServer: ({ project }: { project: boolean }) => preview(project ? { file: PROJECT } : {}),
  tryServer: () => CONNECTED,
  addServer: ({ project }: { project: boolean }) => ({ file: project ? PROJECT : MINE }),
  removeServer: () => ({ file: MINE }),
};

interface Ran extends RecordingContext {
  asked: [method: string, params: unknown][];
}

async function run(
  word: "add" | "import" | "remove",
  rest: string,
  { script = [], answers = {}, ...options }: RecordingOptions & { script?: Script; answers?: Answers } = {},
): Promise<Ran> {
  const left = [...script];
  const recording = createRecordingContext({
    select: (title, choices) => {
      // A dialog for a wait answers only when the script has something for it.
      if (title.startsWith("Testing") && left[0] !== "Cancel") return new Promise<undefined>(() => undefined);
      const wanted = left.shift();
      if (wanted === undefined) return undefined;
      const choice = choices.find((one) => one.startsWith(wanted));
      if (choice === undefined)
        throw new Error(`no choice ${wanted} among ${choices.join(" | ")} of ${title}`);
      return choice;
    },
    input: () => left.shift(),
    editor: () => left.shift(),
    ...options,
  });
  const { host, asked } = fakeHost({ ...ANSWERS, ...answers });
  if (word === "import") await importServers(recording.ctx, host.ask);
  else await (word === "add" ? addServer : removeServer)(rest, recording.ctx, host.ask);
  expect(left).toEqual([]);
  return { ...recording, asked };
}

const methods = ({ asked }: Ran): string[] => asked.map(([method]) => method);
const said = ({ notices }: Ran): string => notices.map(([text]) => text).join("\n---\n");
const ENTRY = { command: "npx", args: ["-y", "fs"] };

const WANTS_KEY: TriedServer = {
  outcome: "failed",
  error: {
    code: "needs_auth",
    message: "acme: https://a.test/mcp answered 401: Missing API key.",
    remedy: "It wants a key.",
    data: { reason: "key-wanted" },
  },
  tookMs: 3,
};
const ACME = "acme https://a.test/mcp";
/** The dialogs up to the question where the key is. */
const ADDED = ["Test it", "Add it, and say where its key is", "For you"] as const;
const keyed: Answers = {
  tryServer: () => WANTS_KEY,
  setKey: () => ({ file: MINE }),
  keepValue: () => ({ file: "/agent/mcp-keys/k", written: "!cat '/agent/mcp-keys/k'" }),
  reconnect: () => undefined,
  status: () => makeReport({ servers: [makeStatus("acme", { state: "connected", toolCount: 3 })] }),
};
const keyOf = ({ asked }: Ran): unknown => asked.find(([method]) => method === "setKey")?.[1];

test.each([
  [true, "It has no sign-in.\nacme is connected and works without another key.\nWhere", "Not now"],
  [false, "It has no sign-in.\nWhere", "In an environment variable"],
])(
  "a key is asked for, the server works: %j -> what is said, and what comes first",
  async (works, lead, first) => {
    const { ctx, dialogs, notices } = createRecordingContext({ select: (_title, choices) => choices[0] });
    const { host, asked } = fakeHost(keyed);
    await askedKey({ server: "acme", why: "It has no sign-in.", works }, ctx, host.ask);
    expect(dialogs[0]?.title.startsWith(lead)).toBe(true);
    expect(dialogs[0]?.options?.[0]).toBe(first);
    expect([asked, notices]).toEqual([[], [["acme gets no key; no file has changed.", "info"]]]);
  },
);

describe("a server that wants a key", () => {
  test.each<[string, Script, unknown]>([
    [
      "a variable, as a token",
      ["In an env", "ACME_KEY_OF_TEST", "As Auth"],
      { from: { variable: "ACME_KEY_OF_TEST" } },
    ],
    [
      "a variable, in a header",
      ["In an env", "\u0024{ACME_KEY_OF_TEST}", "In another", "not a header", "X-API-Key"],
      { header: "X-API-Key", from: { variable: "ACME_KEY_OF_TEST" } },
    ],
    [
      "a name, after a key in its place",
      ["In an env", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ACME_KEY_OF_TEST", "As Auth"],
      { from: { variable: "ACME_KEY_OF_TEST" } },
    ],
    ["a command", ["A command", "", "!pass show acme", "As Auth"], { from: { command: "pass show acme" } }],
    [
      "a key that is typed",
      ["I type it", "", "k-456", "As Auth"],
      { from: { command: "cat '/agent/mcp-keys/k'" } },
    ],
    [
      "a key that is typed, in a header",
      ["I type it", "k-456", "In another", "X-API-Key"],
      { header: "X-API-Key", from: { command: "cat '/agent/mcp-keys/k'" } },
    ],
    ["no key after all", ["I type it", undefined], undefined],
    ["Escape behind a key that is typed", ["I type it", "k-456", undefined], undefined],
    ["not now", ["Not now"], undefined],
    ["no variable after all", ["In an env", undefined], undefined],
    ["a variable that is not set, and no", ["In an env", "ACME_NOT_SET", undefined], undefined],
    ["Escape at the last question", ["A command", "pass", undefined], undefined],
  ])("it is asked where the key is: %s", async (_name, script, key) => {
    vi.stubEnv("ACME_KEY_OF_TEST", "k-123");
    const ran = await run("add", ACME, { script: [...ADDED, ...script], answers: keyed });
    vi.unstubAllEnvs();
    expect(keyOf(ran)).toEqual(key && { server: "acme", ...(key as object) });
    expect(said(ran)).toContain(key ? "acme: connected, 3 tools." : "acme gets no key; no file has changed.");
    expect(JSON.stringify([ran.asked, ran.notices, ran.dialogs])).not.toContain("k-123");
  });

  test("a variable that is set later -> written, and nothing is connected before", async () => {
    const script = [...ADDED, "In an env", "ACME_NOT_SET", "Write it", "As Auth"];
    const ran = await run("add", ACME, { script, answers: keyed });
    expect(methods(ran)).not.toContain("reconnect");
    expect(said(ran)).toContain("Set the variable, and start Pi again.");
  });

  test("the key itself in the place of its name -> refused, and repeated nowhere", async () => {
    const script = [...ADDED, "In an env", "sk-live-0123456789", undefined];
    const ran = await run("add", ACME, { script, answers: keyed });
    expect(keyOf(ran)).toBeUndefined();
    expect(JSON.stringify([ran.asked, ran.notices, ran.dialogs])).not.toContain("sk-live");
  });

  test("its own words come before the choice, and it can be left out", async () => {
    const ran = await run("add", ACME, { script: ["Test it", "Do not add it"], answers: keyed });
    expect(ran.dialogs.at(-1)?.title).toBe(
      "acme answers and wants a key: https://a.test/mcp answered 401: Missing API key. Once it is added: /mcp auth acme",
    );
    expect(methods(ran)).not.toContain("addServer");
  });
});

describe("/mcp add with words", () => {
  test("shows what would run, tests it, asks for the file and writes it", async () => {
    const ran = await run("add", "fs npx -y fs", { script: ["Test it", "For you: /agent/mcp.json"] });
    expect(ran.asked).toEqual([
      ["previewServer", { name: "fs", entry: ENTRY, project: false }],
      ["tryServer", expect.objectContaining({ name: "fs", entry: ENTRY })],
      ["previewServer", { name: "fs", entry: ENTRY, project: true }],
      ["addServer", { name: "fs", entry: ENTRY, project: false }],
    ]);
    expect(ran.dialogs[0]?.title).toBe("Add fs?\nIt would run: npx -y fs");
    expect(ran.dialogs.at(-1)?.title).toContain("12 tools: read, write and 10 more");
    expect(ran.notices).toEqual([
      [
        "fs is added to /agent/mcp.json.\nfs answers over stdio after 842 ms, with 12 tools: read, write and 10 more.",
        "info",
      ],
    ]);
  });

  test("the project's file, by a choice or by --project", async () => {
    const chosen = await run("add", "fs npx -y fs", { script: ["Test it", "For this project"] });
    expect(chosen.asked.at(-1)).toEqual(["addServer", { name: "fs", entry: ENTRY, project: true }]);
    const written = await run("add", "--project fs npx -y fs", { script: ["Test it"] });
    expect(written.asked.at(-1)).toEqual(["addServer", { name: "fs", entry: ENTRY, project: true }]);
    const untrusted = await run("add", "fs npx -y fs", { script: ["Test it"], trusted: false });
    expect(untrusted.asked.at(-1)).toEqual(["addServer", { name: "fs", entry: ENTRY, project: false }]);
    const previewServer = async ({ project }: { project: boolean }) => {
      if (project) throw new ThreadsError("bad_config", `${PROJECT}:1:2 cannot be changed: not valid JSON.`);
      return preview();
    };
    const broken = await run("add", "fs npx -y fs", {
      script: ["Test it", "For you"],
      answers: { previewServer },
    });
    expect(broken.dialogs.at(-1)?.options).toEqual([`For you: ${MINE}`, "Cancel"]);
    expect(broken.asked.at(-1)).toEqual(["addServer", { name: "fs", entry: ENTRY, project: false }]);
  });

  test("a sandbox is offered, off at first, for a server of a registry; what would run is shown anew", async () => {
    const answers: Answers = {
      previewServer: ({ entry }: { entry: { sandbox?: unknown } }) =>
        preview(entry.sandbox ? { line: "npx -y fs, in a sandbox" } : { lacksRoom: true }),
    };
    const plain = await run("add", "fs npx -y fs", { script: ["Test it", "For you"], answers });
    expect(plain.dialogs[0]?.options?.[2]).toBe(
      "[ ] In a sandbox, which hides your keys and sign-ins from it",
    );
    expect(plain.asked.at(-1)).toEqual(["addServer", { name: "fs", entry: ENTRY, project: false }]);
    const script = ["[ ] In a sandbox", "[x] In", "[ ] In", "Test it", "For you"];
    const ran = await run("add", "fs npx -y fs", { script, answers });
    expect(ran.dialogs[1]?.title).toBe("Add fs?\nIt would run: npx -y fs, in a sandbox");
    expect(ran.dialogs[2]?.title).toBe("Add fs?\nIt would run: npx -y fs");
    const entry = { ...ENTRY, sandbox: true };
    expect(ran.asked.filter(([method]) => method === "tryServer")).toEqual([
      ["tryServer", expect.objectContaining({ entry })],
    ]);
    expect(ran.asked.at(-1)).toEqual(["addServer", { name: "fs", entry, project: false }]);
    const known = await run("add", "filesystem", {
      script: [
        "[ ] In a sandbox, which hides your keys and sign-ins from it; it works in one",
        "Add it without",
        "For you",
      ],
      answers,
    });
    expect(known.asked.at(-1)?.[1]).toMatchObject({ entry: { sandbox: { write: ["."] } } });
    const none = await run("add", "fs npx -y fs", { script: ["Cancel"] });
    expect(none.dialogs[0]?.options).toHaveLength(3);
    const ever = await run("add", "fs npx -y fs", { select: (_title, choices) => choices[2], answers });
    expect(methods(ever)).not.toContain("addServer");
  });

  test("a failed test -> the error with its remedy, and nothing is written unless the person says so", async () => {
    const answers: Answers = { tryServer: () => FAILED };
    const not = await run("add", "fs npx -y fs", { script: ["Test it", "Do not"], answers });
    expect(not.dialogs.at(-1)?.title).toBe("fs did not connect: npx was not found. Install Node.");
    expect(methods(not)).not.toContain("addServer");
    expect(said(not)).toBe("fs is not added; no file has changed.");
    const anyway = await run("add", "fs npx -y fs", {
      script: ["Test it", "Add it anyway", "For you"],
      answers,
    });
    expect(methods(anyway)).toContain("addServer");
  });

  test("a server that needs a sign-in counts as reachable; the sentence says how to sign in", async () => {
    const answers: Answers = { tryServer: (): TriedServer => ({ outcome: "needs-sign-in", tookMs: 5 }) };
    const ran = await run("add", "docs https://a.example", { script: ["Test it", "For you"], answers });
    expect(methods(ran)).toContain("addServer");
    expect(said(ran)).toContain("/mcp auth docs");
  });

  test("the test can be cancelled: the request is aborted", async () => {
    let aborted = false;
    const answers: Answers = {
      tryServer: (_params, signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => {
            aborted = true;
            reject(new ThreadsError("cancelled", "cancelled"));
          });
        }),
    };
    const ran = await run("add", "fs npx -y fs", { script: ["Test it", "Cancel", "Do not"], answers });
    expect(aborted).toBe(true);
    expect(methods(ran)).not.toContain("addServer");
  });

  test.each<[string, Script]>([
    ["the first dialog", [undefined]],
    ["the first dialog, by its last choice", ["Cancel"]],
    ["the choice of the file", ["Test it", undefined]],
  ])("%s is closed -> nothing is written", async (_what, script) => {
    const ran = await run("add", "fs npx -y fs", { script });
    expect(methods(ran)).not.toContain("addServer");
    expect(said(ran)).toBe("fs is not added; no file has changed.");
  });

  test("a name that is taken -> asked first; --replace asks nothing", async () => {
    const answers: Answers = { previewServer: () => preview({ exists: { file: "/x.json", by: "import" } }) };
    const kept = await run("add", "fs npx -y fs", { script: ["Keep"], answers });
    expect(kept.dialogs[0]?.title).toContain("another program's file /x.json");
    expect(methods(kept)).toEqual(["previewServer"]);
    const script = ["Replace", "Add it without a test", "For you"];
    const replaced = await run("add", "fs npx -y fs", { script, answers });
    expect(replaced.asked.at(-1)?.[1]).toMatchObject({ replace: true });
    const written = await run("add", "--replace --scope user fs npx -y fs", {
      script: ["Add it without"],
      answers,
    });
    expect(written.asked.at(-1)?.[1]).toMatchObject({ replace: true, project: false });
  });

  test("mistakes of the entry, and of the words", async () => {
    const mistakes = [
      { severity: "error" as const, key: "args", message: "expected a list", remedy: "Write one." },
    ];
    const wrong = await run("add", "fs npx", { answers: { previewServer: () => preview({ mistakes }) } });
    expect(wrong.notices).toEqual([
      ["fs cannot be added:\nerror: args: expected a list. Write one.", "error"],
    ]);
    const words = await run("add", "--evn A=1 fs npx");
    expect(words.asked).toEqual([]);
    expect(said(words)).toContain("Did you mean --env?");
    expect(said(words)).toContain("/mcp add <name> <command> [arguments]");
  });

  test("a long line comes page by page; only the last page offers the test", async () => {
    const answers: Answers = { previewServer: () => preview({ line: "x ".repeat(4_000) }) };
    const ran = await run("add", "fs npx", { script: ["Next", "Next", undefined], answers });
    expect(ran.dialogs.map(({ options }) => options?.[0])).toEqual(["Next page", "Next page", "Next page"]);
  });

  test("over RPC a program answers with a choice that it was not given -> nothing runs", async () => {
    const ran = await run("add", "fs npx", { select: () => "Run it all" });
    expect(methods(ran)).toEqual(["previewServer"]);
  });

  test("without a person: written only after a test that passed", async () => {
    const added = await run("add", "fs npx -y fs", { hasUI: false });
    expect(methods(added)).toEqual(["previewServer", "tryServer", "addServer"]);
    const failed = await run("add", "fs npx -y fs", { hasUI: false, answers: { tryServer: () => FAILED } });
    expect(methods(failed)).toEqual(["previewServer", "tryServer"]);
    const taken = await run("add", "fs npx -y fs", {
      hasUI: false,
      answers: { previewServer: () => preview({ exists: { file: MINE, by: "user" } }) },
    });
    expect(methods(taken)).toEqual(["previewServer"]);
    expect(methods(await run("add", "", { hasUI: false }))).toEqual([]);
  });

  const WRONG = { severity: "error", key: "cwd", message: "it is no folder", remedy: "Correct it." } as const;
  test.each<[what: string, line: string, answers: Answers, code: number | undefined]>([
    ["added", "fs npx -y fs", {}, undefined],
    ["nothing is named", "", {}, 2],
    ["words that cannot be read", "fs", {}, 2],
    ["no name", "npx -y fs", {}, 2],
    ["a bad entry", "fs npx", { previewServer: () => preview({ mistakes: [WRONG] }) }, 2],
    [
      "a name that is taken",
      "fs npx",
      { previewServer: () => preview({ exists: { file: MINE, by: "user" } }) },
      2,
    ],
    ["a test that failed", "fs npx", { tryServer: () => FAILED }, 1],
  ])("without a person, %s -> code $3", async (_what, line, answers, code) => {
    expect(await exitCodeOf(() => run("add", line, { hasUI: false, answers }))).toBe(code);
    expect(await exitCodeOf(() => run("add", line, { answers }))).toBeUndefined();
  });
});

describe("what /mcp add asks for by itself", () => {
  const given = ({ asked }: Ran): unknown => asked.findLast(([method]) => method === "addServer")?.[1];

  test("a name that was forgotten", async () => {
    const script = ["files", "Add it without", "For you"];
    const ran = await run("add", "npx -y @x/notes", { script });
    expect(ran.dialogs[0]).toMatchObject({ method: "input", title: "Its name. Enter: notes" });
    expect(given(ran)).toMatchObject({ name: "files", entry: { command: "npx", args: ["-y", "@x/notes"] } });
    expect(methods(await run("add", "npx -y @x/notes", { hasUI: false }))).toEqual([]);
  });

  test("a command that holds its arguments", async () => {
    const script = ["Divide it", "Add it without", "For you"];
    const json = '{"fs": {"command": "npx -y \'a b\'", "args": ["."]}}';
    const ran = await run("add", json, { script });
    expect(given(ran)).toMatchObject({ entry: { command: "npx", args: ["-y", "a b", "."] } });
  });

  test("several servers of one README: those that are ticked", async () => {
    const json =
      '{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example"}, "c": {"command": "z"}}}';
    const each = ["Add it without", "For you"];
    const ran = await run("add", json, { script: ["[x] 2. b", "Add 2 servers", ...each, ...each] });
    expect(ran.dialogs[0]).toMatchObject({
      options: ["Add 3 servers", "[x] 1. a: x", "[x] 2. b: https://b.example", "[x] 3. c: z", "Back"],
    });
    const names = ran.asked.flatMap(([method, params]) =>
      method === "addServer" ? [(params as { name: string }).name] : [],
    );
    expect(names).toEqual(["a", "c"]);
    expect(said(await run("add", json, { script: ["Back"] }))).toBe("Nothing is added.");
  });

  test("a well-known server, by its name or from the list, with the place where its key is made", async () => {
    const script = ["Leave it", "Add it without", "For you"];
    const ran = await run("add", "github", { script });
    expect(ran.dialogs[0]?.title).toContain(
      "It is made at https://github.com/settings/personal-access-tokens/new",
    );
    expect(given(ran)).toMatchObject({
      name: "github",
      entry: { url: "https://api.githubcopilot.com/mcp/", bearerTokenEnv: "GITHUB_PERSONAL_ACCESS_TOKEN" },
    });
    const listed = await run("add", "", {
      script: ["A well-known", "deepwiki", "Add it without", "For you"],
    });
    expect(given(listed)).toMatchObject({ name: "deepwiki", entry: { url: "https://mcp.deepwiki.com/mcp" } });
    const optional = await run("add", "context7", {
      script: ["With a key", "A command", "pass c7", "Add it without", "For you"],
    });
    expect(given(optional)).toMatchObject({ entry: { headers: { CONTEXT7_API_KEY: "!pass c7" } } });
  });

  test.each<[string, object]>([
    ["--sandbox filesystem", { entry: { command: "npx", sandbox: { write: ["."] } } }],
    ["memory --sandbox --lifecycle eager", { entry: { command: "npx", sandbox: true, lifecycle: "eager" } }],
    ["--env DEBUG=1 Playwright --", { name: "playwright", entry: { env: { DEBUG: "1" } } }],
    [
      "--project --replace deepwiki",
      { entry: { url: "https://mcp.deepwiki.com/mcp" }, project: true, replace: true },
    ],
    ["--bearer-token-env MY_TOKEN github", { entry: { bearerTokenEnv: "MY_TOKEN" } }],
    ["filesystem", { entry: { args: ["-y", "@modelcontextprotocol/server-filesystem", "."] } }],
  ])("a well-known server with options, %s -> they count", async (line, expected) => {
    vi.stubEnv("MY_TOKEN", "t");
    const ran = await run("add", line, {
      script: ["Add it without", ...(line.includes("--project") ? [] : ["For you"])],
    });
    expect(given(ran)).toMatchObject(expected);
    const alone = await run("add", line, { hasUI: false });
    expect(given(alone)).toMatchObject(expected);
    vi.unstubAllEnvs();
  });

  test("a well-known server with an option that it cannot have -> refused, and nothing is added", async () => {
    const ran = await run("add", "--sandbox deepwiki");
    expect(said(ran)).toContain("--sandbox is for a command, and a URL is given.");
    expect(methods(ran)).toEqual([]);
  });

  test("values that an example leaves open: a variable, a command, a file; none of them in the entry", async () => {
    vi.stubEnv("ACME_KEY_OF_TEST", "k-123");
    const entry = {
      command: "x",
      env: {
        API_KEY: "YOUR_API_KEY",
        TOKEN: "\u0024{input:token}",
        OTHER: "\u0024{NOT_SET_IN_TEST}",
        LANG: "C",
      },
    };
    const script = ["In an env", "ACME_KEY_OF_TEST", "I type it", "s3cret", "A command", "pass it"];
    const answers: Answers = {
      keepValue: () => ({ file: "/agent/mcp-keys/a", written: "!cat '/agent/mcp-keys/a'" }),
    };
    const ran = await run("add", `a ${JSON.stringify(entry)}`, {
      script: [...script, "Add it without", "For you"],
      answers,
    });
    vi.unstubAllEnvs();
    expect(given(ran)).toMatchObject({
      entry: {
        env: {
          API_KEY: "\u0024{ACME_KEY_OF_TEST}",
          TOKEN: "!cat '/agent/mcp-keys/a'",
          OTHER: "!pass it",
          LANG: "C",
        },
      },
    });
    expect(JSON.stringify([ran.notices, ran.dialogs, given(ran)])).not.toMatch(/s3cret|k-123/);
  });

  test.each<[value: string, Script, filled: string]>([
    [
      "postgres://app:\u0024{DB_PASSWORD_OF_TEST}@db/app",
      ["In an env", "ACME_KEY_OF_TEST"],
      "postgres://app:\u0024{ACME_KEY_OF_TEST}@db/app",
    ],
    [
      "https://\u0024{input:tenant}.example",
      ["In an env", "ACME_KEY_OF_TEST"],
      "https://\u0024{ACME_KEY_OF_TEST}.example",
    ],
    [
      "\u0024{env:NO_ONE_OF_TEST}:\u0024{ACME_KEY_OF_TEST}:\u0024{input:two}:\u0024{env:NO_ONE_OF_TEST}",
      ["In an env", "ACME_KEY_OF_TEST", "Leave it"],
      "\u0024{ACME_KEY_OF_TEST}:\u0024{ACME_KEY_OF_TEST}:\u0024{input:two}:\u0024{ACME_KEY_OF_TEST}",
    ],
    ["Token \u0024{NO_ONE_OF_TEST}", ["In an env", "ACME_KEY_OF_TEST"], "Token \u0024{ACME_KEY_OF_TEST}"],
    ["Bearer \u0024{NO_ONE_OF_TEST}", ["In an env", "ACME_KEY_OF_TEST"], "Bearer \u0024{ACME_KEY_OF_TEST}"],
    ["$\u0024{NO_ONE_OF_TEST}", [], "$\u0024{NO_ONE_OF_TEST}"],
  ])("a part of a value is open: %s -> the rest of it stays", async (value, script, filled) => {
    vi.stubEnv("ACME_KEY_OF_TEST", "k-123");
    const entry = { command: "x", env: { VALUE: value } };
    const ran = await run("add", `a ${JSON.stringify(entry)}`, {
      script: [...script, "Add it without", "For you"],
    });
    vi.unstubAllEnvs();
    expect(given(ran)).toMatchObject({ entry: { env: { VALUE: filled } } });
    // A command, which a typed value becomes, is a whole value.
    const asked = ran.dialogs.filter(({ title }) => title.includes("Where is the value?"));
    for (const { options } of asked)
      expect(options).toEqual(["In an environment variable", "Leave it as it is"]);
    expect(asked.length > 0).toBe(script.length > 0);
  });

  test.each<[string, Script, Partial<ServerPreview>, string[]]>([
    ["a name that is taken is asked about first", ["Keep"], { exists: { file: "/x.json", by: "user" } }, []],
    ["the person leaves", ["I type it", "s3cret", "Cancel"], {}, ["keepValue", "dropValues"]],
  ])(
    "a value that is typed for a server that is not added: %s -> %j",
    async (_what, script, more, wanted) => {
      const answers: Answers = {
        previewServer: () => preview(more),
        keepValue: () => ({ file: "/agent/mcp-keys/a", written: "!cat '/agent/mcp-keys/a'" }),
        dropValues: () => undefined,
      };
      const entry = JSON.stringify({ command: "x", env: { API_KEY: "YOUR_API_KEY" } });
      const ran = await run("add", `a ${entry}`, { script, answers });
      expect(methods(ran).filter((method) => method.endsWith("Value") || method.endsWith("Values"))).toEqual(
        wanted,
      );
      if (wanted.length > 0)
        expect(ran.asked.at(-1)).toEqual(["dropValues", { files: ["/agent/mcp-keys/a"] }]);
      expect(said(ran)).toContain("a is not added; no file has changed.");
    },
  );

  test.each<[string, Script, number]>([
    ["of where it is", [], 1],
    ["of the name of its variable, and then of where it is", ["In an env", undefined], 2],
    ["of the value itself, and then of where it is", ["I type it", undefined], 2],
  ])("Escape in the question %s -> the server is not added", async (_what, script, questions) => {
    const entry = JSON.stringify({ command: "x", env: { API_KEY: "YOUR_API_KEY" } });
    const ran = await run("add", `a ${entry}`, { script: [...script, undefined] });
    const asked = ran.dialogs.filter(({ title }) => title.includes("Where is the value?"));
    expect(asked).toHaveLength(questions);
    expect(given(ran)).toBeUndefined();
    expect(said(ran)).toContain("a is not added; no file has changed.");
  });

  test("Escape in a question about the value, then another place -> that one is written", async () => {
    const entry = JSON.stringify({ command: "x", env: { API_KEY: "YOUR_API_KEY" } });
    const script = ["In an env", undefined, "A command", "pass a", "Add it without", "For you"];
    const ran = await run("add", `a ${entry}`, { script });
    expect(given(ran)).toMatchObject({ entry: { env: { API_KEY: "!pass a" } } });
  });

  test("an example's token in a header -> bearerToken, since a command is a whole value", async () => {
    const entry = { url: "https://a.example", headers: { Authorization: "Bearer <your token>" } };
    const ran = await run("add", `a ${JSON.stringify(entry)}`, {
      script: ["A command", "pass a", "Add it without", "For you"],
    });
    expect(given(ran)).toMatchObject({ entry: { url: "https://a.example", bearerToken: "!pass a" } });
    expect(given(ran)).not.toHaveProperty("entry.headers");
  });

  test("a server that lacks a variable -> it is asked for, and tried again with it", async () => {
    const tries: unknown[] = [];
    const answers: Answers = {
      tryServer: ({ entry }: { entry: unknown }) => {
        tries.push(entry);
        const message =
          "fs could not be connected: its process exited. It wrote:\nError: API_KEY is required.";
        return tries.length === 1 ? { ...FAILED, error: { code: "connect_failed", message } } : CONNECTED;
      },
    };
    const script = ["Test it", "Say where API_KEY is", "A command", "pass k", "For you"];
    const ran = await run("add", "fs npx -y fs", { script, answers });
    expect(tries).toEqual([ENTRY, { ...ENTRY, env: { API_KEY: "!pass k" } }]);
    expect(given(ran)).toMatchObject({ entry: { env: { API_KEY: "!pass k" } } });
  });

  test("a failure that the person has read is not told again", async () => {
    const script = ["Test it", "Add it anyway", "For you"];
    const ran = await run("add", "fs npx -y fs", { script, answers: { tryServer: () => FAILED } });
    expect(ran.dialogs.at(-1)?.title).toBe("fs did not connect.\nAdd it where?");
    expect(said(ran)).toBe("fs is added to /agent/mcp.json.");
  });

  test("what was typed wrong is there again", async () => {
    const script = ["A program", "npx a", "A=1 TOKEN", "A=1", undefined];
    const ran = await run("add", "", { script });
    expect(ran.dialogs[3]).toMatchObject({
      method: "editor",
      title: expect.stringMatching(/^Word 2 is not NAME=value\./),
      prefill: "A=1 TOKEN",
    });
  });
});

describe("/mcp add step by step", () => {
  test("a command: variables, a proposed name, then as with words", async () => {
    const script = ["A program", "npx -y 'server-files'", "TOKEN=a=b 'X=c d'", "", "Test it", "For you"];
    const ran = await run("add", "", { script });
    expect(ran.asked.at(-1)).toEqual([
      "addServer",
      {
        name: "files",
        entry: { command: "npx", args: ["-y", "server-files"], env: { TOKEN: "a=b", X: "c d" } },
        project: false,
      },
    ]);
  });

  test("a URL with the variable of its token", async () => {
    const script = [
      "A remote server",
      "https://mcp.notion.com/mcp",
      "$NOTION_TOKEN",
      "mine",
      "Leave it",
      "Add it without",
      "For you",
    ];
    const ran = await run("add", "", { script });
    expect(ran.asked.at(-1)?.[1]).toMatchObject({
      name: "mine",
      entry: { url: "https://mcp.notion.com/mcp", bearerTokenEnv: "NOTION_TOKEN" },
    });
  });

  test("the JSON of a README: in Pi's editor, again after a mistake; or behind /mcp add as it is pasted", async () => {
    const drafts = ["{oops", `"fs": {\n  "command": "npx",\n  "args": ["-y", "it's"]\n},`];
    const script = ["Paste JSON", "", "Add it without", "For you"];
    const ran = await run("add", "", { script, editor: () => drafts.shift() });
    expect(said(ran)).toContain("not a JSON object");
    expect(ran.asked.at(-1)?.[1]).toMatchObject({
      name: "fs",
      entry: { command: "npx", args: ["-y", "it's"] },
    });
    // Web pages put such blanks in front of a text, and JSON has no place for them.
    const members = '"fs": { "command": "npx" }';
    for (const blank of ["\uFEFF", "\u00A0", "\u2003"])
      for (const text of [members, `{ ${members} }`]) {
        const blanks = ["Paste JSON", "", "Add it without", "For you"];
        const added = await run("add", "", { script: blanks, editor: () => `${blank}${text}${blank}` });
        expect(added.asked.at(-1)?.[1], JSON.stringify(blank + text)).toMatchObject({
          name: "fs",
          entry: { command: "npx" },
        });
      }
    const pasted = await run("add", 'mine {"command": "npx", "args": ["a b"]}', {
      script: ["Add it without", "For you"],
    });
    expect(pasted.asked.at(-1)?.[1]).toMatchObject({
      name: "mine",
      entry: { command: "npx", args: ["a b"] },
    });
    const closed = await run("add", "", { script: ["Paste JSON"], editor: () => undefined });
    expect(said(closed)).toBe("Nothing is added.");
  });

  test("a mistake is told in the same step, which is asked again", async () => {
    const script = ["A remote server", "example", "", "https://a.example", "sk-123", undefined];
    const ran = await run("add", "", { script });
    expect(ran.dialogs.map(({ title }) => title.split("\n")[0])).toEqual([
      "Add what?",
      "The URL of the server",
      expect.stringContaining("example is not a URL"),
      "Type the URL.",
      expect.stringContaining("The environment variable"),
      expect.stringContaining("not the token"),
    ]);
    expect(said(ran)).toBe("Nothing is added.");
  });

  test("a program that answers nonsense for ever over RPC comes to an end", async () => {
    const program = (_title: string, choices: readonly string[]) =>
      choices.find((one) => one.startsWith("A program")) ?? choices[0];
    const ran = await run("add", "", { select: program, input: () => "'", editor: () => "'" });
    expect(ran.dialogs).toHaveLength(11);
    expect(ran.asked).toEqual([]);
    const odd = await run("add", "", { select: program, input: () => ({ a: 1 }) });
    expect(odd.asked).toEqual([]);
    const back = await run("add", "", {
      select: (_title, choices) => (choices.includes("Back") ? "Back" : choices[0]),
    });
    expect(back.dialogs).toHaveLength(20);
  });
});

const FOUND: FoundImports = {
  file: MINE,
  problems: [],
  hosts: [
    {
      host: "claude-code",
      title: "Claude Code",
      imported: false,
      files: [
        {
          file: "/home/.claude.json",
          ofProject: false,
          more: 0,
          servers: [
            { name: "a", line: "run a", id: "id-a", standing: "new" },
            { name: "b", line: "run b", id: "id-b", standing: "other" },
            { name: "long", unusable: "too long", standing: "new" },
          ],
        },
      ],
    },
    {
      host: "cursor",
      title: "Cursor",
      imported: true,
      files: [
        {
          file: "/project/.cursor/mcp.json",
          ofProject: true,
          more: 3,
          servers: [{ name: "clone", line: "sh -c evil", id: "id-c", standing: "new" }],
        },
      ],
    },
  ],
};

describe("/mcp import", () => {
  const answers: Answers = {
    findImports: () => FOUND,
    takeImports: (wish: { hosts?: string[]; ids?: string[] }) => ({
      file: MINE,
      taken: wish.hosts ?? wish.ids,
      left: [],
    }),
  };
  const wishOf = ({ asked }: Ran): unknown => asked.find(([method]) => method === "takeImports")?.[1];

  test("a whole program", async () => {
    const ran = await run("import", "", {
      script: ["Claude Code: 3 servers, 2 new", "Use its file", "Done"],
      answers,
    });
    expect(wishOf(ran)).toEqual({ how: "imports", hosts: ["claude-code"] });
    expect(ran.dialogs[1]?.title).toContain("a (new): run a");
    expect(said(ran)).toBe("Imported into /agent/mcp.json: claude-code.");
  });

  test("some servers: the new ones of the person's own file are chosen at first", async () => {
    const script = ["Claude Code", "Copy some", "[ ] 2. b", "[x] 1. a", "[ ] 1. a", "Copy 2 servers", "Done"];
    const ran = await run("import", "", { script, answers });
    expect(wishOf(ran)).toEqual({ how: "copy", ids: ["id-a", "id-b"] });
  });

  test("those of a registry may be copied with a sandbox", async () => {
    const [claude, ...others] = FOUND.hosts;
    const files = claude?.files.map((file) => ({
      ...file,
      servers: file.servers.map((server) => ({
        ...server,
        ...(server.name === "a" ? { lacksRoom: true as const } : {}),
      })),
    }));
    const found = { ...FOUND, hosts: [{ ...claude, files }, ...others] };
    const script = ["Claude Code", "Copy some", "[ ] 2. b", "Copy 2 servers"];
    const wants = async (choice: string | undefined) =>
      run("import", "", {
        script: [...script, choice, "Done"],
        answers: { ...answers, findImports: () => found as FoundImports },
      });
    const ran = await wants("Copy them with");
    expect(ran.dialogs.find(({ title }) => title.includes("registry"))?.title).toContain("packages: a.\n");
    expect(wishOf(ran)).toEqual({ how: "copy", ids: ["id-a", "id-b"], sandbox: true });
    expect(wishOf(await wants("Copy them as"))).toEqual({ how: "copy", ids: ["id-a", "id-b"] });
    expect(wishOf(await wants(undefined))).toBeUndefined();
  });

  test("a server from a project's file is shown whole before it can be chosen", async () => {
    const script = [
      "Cursor: 4 servers, 1 new, imported",
      "Copy some",
      "[ ] 1. clone",
      "Leave it",
      "Back",
      "Done",
    ];
    const left = await run("import", "", { script, answers });
    expect(wishOf(left)).toBeUndefined();
    const shown = left.dialogs[3];
    expect(shown?.title).toMatch(/\/project\/\.cursor\/mcp\.json, a file of this project.*\nsh -c evil$/s);
    expect(left.dialogs[2]?.options).not.toContainEqual(expect.stringMatching(/^Copy/));
    const chosen = await run("import", "", {
      script: ["Cursor", "Copy some", "[ ] 1. clone", "Choose it", "Copy 1 server", "Done"],
      answers,
    });
    expect(wishOf(chosen)).toEqual({ how: "copy", ids: ["id-c"] });
  });

  test("nothing found, problems of files, and without a person", async () => {
    const none = await run("import", "", { answers: { findImports: () => ({ ...FOUND, hosts: [] }) } });
    expect(said(none)).toContain("No other program's configuration");
    const problems = [
      { severity: "warning" as const, file: "/f", line: 2, column: 1, message: "broken", remedy: "Mend it." },
    ];
    const wrong = await run("import", "", {
      script: ["Done"],
      answers: { findImports: () => ({ ...FOUND, problems }) },
    });
    expect(wrong.notices).toEqual([["/f:2:1: broken. Mend it.", "warning"]]);
    const print = await run("import", "", { hasUI: false, answers });
    expect(methods(print)).toEqual(["findImports"]);
  });

  test("a program that chooses for ever over RPC comes to an end", async () => {
    const ran = await run("import", "", { select: (_title, choices) => choices[0], answers });
    expect(ran.dialogs.length).toBeLessThan(5_000);
  });
});

describe("/mcp remove", () => {
  test("says where what was typed stays", async () => {
    const status = () => makeReport({ servers: [makeStatus("fs", { source: MINE })] });
    const kept = ["/agent/mcp-keys/fs.KEY-00000000"];
    const answers: Answers = { status, removeServer: () => ({ file: MINE, kept }) };
    const ran = await run("remove", "fs", { script: ["Remove it"], answers });
    expect(said(ran)).toBe(
      "fs is removed from /agent/mcp.json. What you typed for it stays in /agent/mcp-keys/fs.KEY-00000000: the project's file of another branch or worktree may name it.",
    );
  });

  test("a server of another program's file -> nobody is asked, since the worker refuses it and says why", async () => {
    const status = () =>
      makeReport({ servers: [makeStatus("curs", { source: "/c.json", isForeign: true })] });
    const ran = await run("remove", "curs", { answers: { status } });
    expect([ran.dialogs, methods(ran)]).toEqual([[], ["status", "removeServer"]]);
  });

  test("asks first, then says what was removed", async () => {
    const still = { file: "/project/.mcp.json", by: "project" as const };
    const status = () =>
      makeReport({ servers: [makeStatus("my server", { source: MINE }), makeStatus("fs")] });
    const answers: Answers = { status, removeServer: () => ({ file: MINE, still }) };
    const ran = await run("remove", "my server", { script: ["Remove it"], answers });
    expect(ran.dialogs).toMatchObject([
      {
        title: `Remove my server?\nIts entry is taken out of ${MINE}. To keep the entry: /mcp disable.`,
        options: ["No, go back", "Remove it"],
      },
    ]);
    expect(ran.asked).toEqual([
      ["status", {}],
      ["removeServer", { server: "my server", file: MINE }],
    ]);
    expect(said(ran)).toBe(
      "my server is removed from /agent/mcp.json. The server my server of the project's file /project/.mcp.json counts now.",
    );
    for (const script of [["No"], [undefined]]) {
      const kept = await run("remove", "fs", { script, answers });
      expect(methods(kept)).toEqual(["status"]);
    }
    const unknown = await run("remove", "nope", { answers });
    expect([methods(unknown), unknown.dialogs]).toEqual([["status"], []]);
    expect(said(unknown)).toBe("No server named nope is configured. Configured: my server, fs.");
    const print = await run("remove", "fs", { hasUI: false });
    expect(methods(print)).toEqual(["removeServer"]);
  });
});

test("a text that fits beside its choices -> one page; a longer one uses the height of the screen", () => {
  const lines = (count: number): string => Array.from({ length: count }, (_, i) => `line ${i}\n`).join("");
  const small = { columns: 80, rows: 24 };
  expect(pagesOf(lines(10).trimEnd(), small, 3)).toHaveLength(1);
  expect(pagesOf(lines(11), small, 3).map((page) => page.split("\n").length - 1)).toEqual([8, 3]);
  expect(pagesOf(lines(30).trimEnd(), { columns: 120, rows: 50 }, 3)).toHaveLength(1);
});
