/** The words of `add`, and the name of a server that nobody named. */
import { describe, expect, test } from "vitest";
import { proposedName } from "../../../src/shared/pasted.ts";
import { isJsonText, parseAdd } from "../../../src/shared/setup.ts";
import { splitWords } from "../../../src/shared/text/split-words.ts";

/** A variable, which stays as it is written. */
const TOKEN = "$" + "{TOKEN}";

/** The words of a line, then what `add` makes of them. */
function added(line: string) {
  const split = splitWords(line);
  return "problem" in split ? split : parseAdd(split.words);
}

function problemOf(line: string): string {
  const parsed = added(line);
  return "problem" in parsed ? parsed.problem : "no problem";
}

function addOf(line: string) {
  const parsed = added(line);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.add;
}

describe("the words of a line", () => {
  test.each<[string, string[]]>([
    ["a  b\tc", ["a", "b", "c"]],
    ["'a b' \"c d\"", ["a b", "c d"]],
    ["a'b c'd", ["ab cd"]],
    ['""', [""]],
    ["", []],
    ["a\\ b", ["a b"]],
    [String.raw`"a\"b" 'c\d'`, ['a"b', String.raw`c\d`]],
    [String.raw`C:\Users\me "C:\Program Files\x"`, [String.raw`C:\Users\me`, String.raw`C:\Program Files\x`]],
    [`$HOME *.ts ${TOKEN}`, ["$HOME", "*.ts", TOKEN]],
    ["a\\", ["a\\"]],
  ])("%j -> %j", (line, words) => {
    expect(splitWords(line)).toEqual({ words });
  });

  test.each(["'open", 'a "b'])("an open quote is a problem: %j", (line) => {
    expect(splitWords(line)).toHaveProperty("problem", expect.stringContaining("not closed"));
  });
});

describe("a bundle", () => {
  test.each([
    "x.mcpb",
    "x ./y.MCPB",
    "x -- ./y.dxt",
    "https://a.example/y.mcpb",
    "x https://a.example/y.mcpb?v=1",
  ])("%s -> how its server is added", (line) => {
    expect(problemOf(line)).toMatch(/mcpb|dxt/i);
    expect(problemOf(line)).toContain(
      "is a bundle of a server, and bundles are not installed here. Unpack it",
    );
  });

  test("one that a command reads -> the command's own", () => {
    expect(addOf("x npx run-bundle ./y.mcpb").entry).toEqual({
      command: "npx",
      args: ["run-bundle", "./y.mcpb"],
    });
  });
});

describe("words -> entry", () => {
  test.each<[string, string, object]>([
    ["--sandbox fs npx -y x", "fs", { command: "npx", args: ["-y", "x"], sandbox: true }],
    ["fs npx -y server-filesystem .", "fs", { command: "npx", args: ["-y", "server-filesystem", "."] }],
    ["fs -- npx -y server", "fs", { command: "npx", args: ["-y", "server"] }],
    ["one ./server", "one", { command: "./server" }],
    ["docs https://example.com/mcp", "docs", { url: "https://example.com/mcp" }],
    ["--transport http notion https://mcp.notion.com/mcp", "notion", { url: "https://mcp.notion.com/mcp" }],
    [
      "--transport sse asana https://mcp.asana.com/sse --header 'Authorization: Bearer a=b'",
      "asana",
      { type: "sse", url: "https://mcp.asana.com/sse", headers: { Authorization: "Bearer a=b" } },
    ],
    [
      "-t http -H X-Key=a:b -H 'X-Other: c' api https://a.example/mcp",
      "api",
      { url: "https://a.example/mcp", headers: { "X-Key": "a:b", "X-Other": "c" } },
    ],
    [
      `--env AIRTABLE_API_KEY=${TOKEN} -e B=c=d airtable -- npx -y airtable-mcp-server`,
      "airtable",
      {
        command: "npx",
        args: ["-y", "airtable-mcp-server"],
        env: { AIRTABLE_API_KEY: TOKEN, B: "c=d" },
      },
    ],
    // The name before the options, as `claude mcp add` and `codex mcp add` take it.
    [
      "my -e KEY=1 -- /path/to/server a",
      "my",
      { command: "/path/to/server", args: ["a"], env: { KEY: "1" } },
    ],
    [
      "gh --url https://a.example/mcp --bearer-token-env-var GH_TOKEN",
      "gh",
      { url: "https://a.example/mcp", bearerTokenEnv: "GH_TOKEN" },
    ],
    [`a --transport=http ${TOKEN}/mcp`, "a", { url: `${TOKEN}/mcp` }],
    [
      "--cwd ~/x --lifecycle eager --description 'All notes' notes node server.js",
      "notes",
      { command: "node", args: ["server.js"], cwd: "~/x", lifecycle: "eager", description: "All notes" },
    ],
    [
      "docker docker run -i -e KEY image",
      "docker",
      { command: "docker", args: ["run", "-i", "-e", "KEY", "image"] },
    ],
    ["d -- docker run --env KEY image", "d", { command: "docker", args: ["run", "--env", "KEY", "image"] }],
    ["'my server' ls", "my server", { command: "ls" }],
    ["__proto__ ls", "__proto__", { command: "ls" }],
  ])("%s", (line, name, entry) => {
    expect(addOf(line)).toMatchObject({ name, project: false, replace: false });
    expect(addOf(line).entry).toEqual(entry);
  });

  test.each<[string, { project: boolean; saysWhere: boolean; replace: boolean }]>([
    ["a ls", { project: false, saysWhere: false, replace: false }],
    ["--project a ls", { project: true, saysWhere: true, replace: false }],
    ["-s project a ls", { project: true, saysWhere: true, replace: false }],
    ["--scope user --replace a ls", { project: false, saysWhere: true, replace: true }],
  ])("%s says where the entry goes", (line, where) => {
    expect(addOf(line)).toMatchObject(where);
  });

  test("a variable named like a property of every object is a variable", () => {
    const { env } = addOf("-e __proto__=1 -e constructor=2 a ls").entry;
    expect(Object.entries(env ?? {})).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
  });
});

describe("each mistake has words of its own", () => {
  test.each<[string, RegExp]>([
    ["", /name of the server is missing/],
    ["a", /command or the URL is missing behind the name a/],
    ["a --", /is missing/],
    [
      "https://example.com/mcp",
      /name of the server is missing: write one before https:\/\/example\.com\/mcp, for example example\./,
    ],
    ["a https://x.example/mcp more", /takes no arguments: more/],
    ["a ftp://x.example", /must begin with https:\/\//],
    ["--transport http a x.example/mcp", /x\.example\/mcp is not a URL/],
    ["--transport stdio a https://x.example", /for a command, and a URL/],
    ["--transport web a https://x.example", /--transport needs http, sse, stdio/],
    ["--sandbox a https://a.test", /--sandbox is for a command, and a URL is given/],
    ["--sandbox=no a ls", /--sandbox takes no value/],
    ["--lifecycle often a ls", /--lifecycle needs lazy, eager or keep-alive/],
    ["--scope local a ls", /local is not known here/],
    ["--env TOKEN a ls", /--env needs NAME=value/],
    ["--env =x a ls", /--env needs NAME=value/],
    ["--env A=1 --env A=2 a ls", /A is given twice/],
    ["--header X a https://x.example", /--header needs Name=value/],
    ["--header 'a b: c' a https://x.example", /letters, digits and hyphens/],
    ["--bearer-token-env sk-123 a https://x.example", /name of an environment variable, not the token/],
    [
      "--bearer-token-env ghp_16C7e42F292c6912E7710c838347Ae178B4a a https://x.example",
      /name of an environment variable, not the token/,
    ],
    ["--env A=1 a https://x.example", /--env is for a command/],
    ["--cwd /x a https://x.example", /--cwd is for a command/],
    ["--header A=1 a ls", /--header is for a URL/],
    ["--bearer-token-env T a ls", /--bearer-token-env is for a URL/],
    ["--evn A=1 a ls", /not an option of add\. Did you mean --env\?/],
    ["--nonsense a ls", /--nonsense is not an option of add\. The options/],
    ["--env", /--env needs a value/],
    ["--project=yes a ls", /--project takes no value/],
    ["a ls --project", /--project stands behind the command/],
    ["a ls --env A=1", /write -- before the command/],
    ["a --url https://x.example ls", /ls is a word too many/],
    ["'open ls", /quote ' is not closed/],
    ["a ''", /is missing/],
  ])("%s", (line, problem) => {
    expect(problemOf(line)).toMatch(problem);
  });
});

describe("a line as people have it", () => {
  test.each<[line: string, name: string, entry: object]>([
    ["claude mcp add ctx -- npx foo", "ctx", { command: "npx", args: ["foo"] }],
    [
      "claude mcp add --transport http -s local docs https://x.example/mcp",
      "docs",
      { url: "https://x.example/mcp" },
    ],
    ['claude mcp add-json fs \'{"command":"x"}\'', "fs", { command: "x" }],
    ["codex mcp add ctx --env A=1 -- npx foo", "ctx", { command: "npx", args: ["foo"], env: { A: "1" } }],
    ['code --add-mcp \'{"name":"fs","command":"x"}\'', "fs", { command: "x" }],
    ["/mcp add fs ls", "fs", { command: "ls" }],
    ["docker docker run x", "docker", { command: "docker", args: ["run", "x"] }],
    ["claude npx foo", "claude", { command: "npx", args: ["foo"] }],
    ["claude mcp add docker -- docker run -i x", "docker", { command: "docker", args: ["run", "-i", "x"] }],
    ["python -- python server.py", "python", { command: "python", args: ["server.py"] }],
    ["npx -- npx -y foo", "npx", { command: "npx", args: ["-y", "foo"] }],
    ["npm -- ./server", "npm", { command: "./server" }],
    ["docker -e A=1 -- docker run x", "docker", { command: "docker", args: ["run", "x"], env: { A: "1" } }],
    ["docker --env A=1 docker run x", "docker", { command: "docker", args: ["run", "x"], env: { A: "1" } }],
    ["docker --url https://x.example/mcp", "docker", { url: "https://x.example/mcp" }],
    ["node --transport http https://x.example", "node", { url: "https://x.example" }],
    ["node -t http https://x.example", "node", { url: "https://x.example" }],
  ])("%s -> the server that it means", (line, name, entry) => {
    expect(addOf(line)).toMatchObject({ name, entry });
  });

  test.each<[line: string, name: string, entry: object]>([
    ["npx -y @x/files", "files", { command: "npx", args: ["-y", "@x/files"] }],
    ["-e A=1 uvx mcp-server-git --repo .", "git", { command: "uvx", env: { A: "1" } }],
    ["claude mcp add -- npx -y @x/files", "files", { command: "npx" }],
    ["node notes.js --project", "notes", { command: "node", args: ["notes.js", "--project"] }],
    ["uvx mcp-server-docker", "docker", { command: "uvx", args: ["mcp-server-docker"] }],
    ["npx -y docker-mcp", "docker", { command: "npx", args: ["-y", "docker-mcp"] }],
    ["npx -- docs-mcp", "docs", { command: "npx", args: ["--", "docs-mcp"] }],
    ["-- docker run x", "docker", { command: "docker", args: ["run", "x"] }],
    ["uv --project /files run x", "files", { command: "uv", args: ["--project", "/files", "run", "x"] }],
    ["https://mcp.notion.com/mcp --header A=1", "notion", { headers: { A: "1" } }],
  ])("%s without a name -> one is proposed", (line, name, entry) => {
    const split = splitWords(line);
    const parsed = "problem" in split ? split : parseAdd(split.words);
    expect(parsed).toMatchObject({
      problem: expect.stringMatching(/^The name of the server is missing: write one before \S+, for example/),
      instead: { named: { name, entry } },
    });
  });

  test("a name alone, and several servers -> what may be meant", () => {
    expect(parseAdd(["github"])).toMatchObject({ instead: { bare: "github" } });
    const json = '{"a": {"command": "x"}, "b": {"serverUrl": "https://b.example"}}';
    expect(parseAdd([json])).toMatchObject({
      instead: {
        several: [
          { name: "a", entry: { command: "x" } },
          { name: "b", entry: { url: "https://b.example" } },
        ],
      },
    });
  });
});

describe("the line of another program", () => {
  const npx = { command: "npx", args: ["-y", "@a/mcp"] };
  test.each<[line: string, name: string, entry: object]>([
    // Claude Code takes a -- out wherever it stands.
    [
      "claude mcp add -e KEY=1 --scope user byul npx -- -y @a/mcp --env X",
      "byul",
      { command: "npx", args: ["-y", "@a/mcp", "--env", "X"], env: { KEY: "1" } },
    ],
    ["gemini mcp add byul npx -- -y @a/mcp", "byul", npx],
    ["qwen mcp add byul npx -- -y @a/mcp", "byul", npx],
    ["codex mcp add byul npx -- @a/mcp", "byul", { command: "npx", args: ["--", "@a/mcp"] }],
    ["byul npx -- @a/mcp", "byul", { command: "npx", args: ["--", "@a/mcp"] }],
    // Its -e takes several values.
    ["claude mcp add foo -e A=1 B=2 -- npx -y @a/mcp", "foo", { ...npx, env: { A: "1", B: "2" } }],
    [
      "claude mcp add -e A=1 B=2 --scope user foo npx -- -y @a/mcp",
      "foo",
      { ...npx, env: { A: "1", B: "2" } },
    ],
    ["amp mcp add foo -- npx -y @a/mcp", "foo", npx],
    ["opencode mcp add foo --url https://a.example/mcp", "foo", { url: "https://a.example/mcp" }],
    ["droid mcp add foo https://a.example/mcp", "foo", { url: "https://a.example/mcp" }],
    ['kiro-cli mcp add-json foo \'{"command":"x"}\'', "foo", { command: "x" }],
    [
      'claude mcp add-json foo \'{"url":"https://a.example","timeout":600000}\'',
      "foo",
      { url: "https://a.example", requestTimeoutMs: 600_000 },
    ],
    ['foo \'{"command":"x","timeout":1800}\'', "foo", { command: "x", timeout: 1_800 }],
    [
      'foo \'{"command":"x","timeout":60000,"requestTimeoutMs":5}\'',
      "foo",
      { command: "x", requestTimeoutMs: 5 },
    ],
    ["mcp mcp-server add", "mcp", { command: "mcp-server", args: ["add"] }],
  ])("%s", (line, name, entry) => {
    expect(addOf(line)).toMatchObject({ name, entry });
    expect(Object.keys(addOf(line).entry).sort()).toEqual(Object.keys(entry).sort());
  });

  test("docker's gateway lacks a name", () => {
    expect(problemOf("docker mcp gateway run")).toContain("The name of the server is missing");
    expect(addOf("toolkit docker mcp gateway run").entry).toEqual({
      command: "docker",
      args: ["mcp", "gateway", "run"],
    });
  });
});

describe("a link that installs a server", () => {
  const entry = { command: "npx", args: ["-y", "größer/>?"] };
  const json = JSON.stringify(entry);
  const base64 = Buffer.from(json).toString("base64");
  const text = encodeURIComponent(json);
  test.each([
    `cursor://anysphere.cursor-deeplink/mcp/install?name=foo&config=${base64}`,
    `https://cursor.com/en/install-mcp?name=foo&config=${encodeURIComponent(base64)}`,
    `https://vscode.dev/redirect/mcp/install?name=foo&config=${text}`,
    `https://insiders.vscode.dev/redirect/mcp/install?name=foo&config=${text}&quality=insiders`,
    `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: "foo", ...entry }))}`,
    `vscode-insiders:mcp/install?${encodeURIComponent(JSON.stringify({ name: "foo", ...entry }))}`,
  ])("%s", (link) => {
    expect(base64).toContain("/");
    expect(parseAdd([link])).toMatchObject({ add: { name: "foo", entry } });
    expect(parseAdd(["--project", "bar", link])).toMatchObject({
      add: { name: "bar", project: true, entry },
    });
  });

  test.each(["https://shop.example/install-mcp?id=1", "vscode:mcp/install?%7B%22command%22%3A%22x%22%7D"])(
    "%s behind -- and a command -> an argument like any other",
    (link) => {
      expect(parseAdd(["shop", "--", "shop-mcp", link])).toMatchObject({
        add: { name: "shop", entry: { command: "shop-mcp", args: [link] } },
      });
    },
  );

  test.each([
    "cursor://anysphere.cursor-deeplink/mcp/install?name=foo",
    "vscode:mcp/install?%7B%22name%22",
    "https://cursor.com/install-mcp?name=foo&config=%E0%A4%A",
    "https://cursor.com/install-mcp?config=!!!",
    `https://cursor.com/install-mcp?config=${base64.replace("/", "_")}`,
  ])("%s -> says what to do", (link) => {
    expect(parseAdd([link])).toHaveProperty("problem", expect.stringContaining("That link holds no server"));
  });

  test("one of 400,001 characters -> the same, and nothing of it is decoded", () => {
    const start = "vscode:mcp/install?";
    const ofLength = (length: number): string =>
      `${start}${encodeURIComponent(json).padEnd(length - start.length, "&")}`;
    expect(parseAdd(["foo", ofLength(400_000)])).toMatchObject({ add: { name: "foo", entry } });
    expect(parseAdd(["foo", ofLength(400_001)])).toHaveProperty(
      "problem",
      expect.stringContaining("That link holds no server"),
    );
  });

  test("a base64 that is 390,000 equals signs, or as many digits -> the same", () => {
    for (const long of ["=".repeat(390_000), `${"=".repeat(390_000)}A`, "A".repeat(390_000)])
      expect(parseAdd([`https://cursor.com/install-mcp?config=${long}`])).toHaveProperty(
        "problem",
        expect.stringContaining("That link holds no server"),
      );
  });

  test("the address of a server is none", () => {
    expect(addOf("a https://a.example/mcp/install").entry).toEqual({ url: "https://a.example/mcp/install" });
    expect(addOf("a https://a.example/mcp?config=x").entry).toEqual({
      url: "https://a.example/mcp?config=x",
    });
  });
});

describe("the JSON of a README", () => {
  const FS = { command: "npx", args: ["-y", "server-filesystem", "."] };
  test.each<[string, string[], string, object]>([
    ["a whole file", [JSON.stringify({ mcpServers: { fs: FS } })], "fs", FS],
    ["a whole file of VS Code", [JSON.stringify({ servers: { fs: FS }, inputs: [] })], "fs", FS],
    ["one property in braces", [JSON.stringify({ fs: FS })], "fs", FS],
    ["the entry alone", [JSON.stringify(FS)], "filesystem", FS],
    [
      "the entry alone, with a URL",
      ['{"url": "https://mcp.notion.com/mcp"}'],
      "notion",
      { url: "https://mcp.notion.com/mcp" },
    ],
    [
      "another key for the URL",
      ['{"w": {"serverUrl": "https://a.example"}}'],
      "w",
      { url: "https://a.example" },
    ],
    ["a name before it", ["mine", "--", JSON.stringify({ fs: FS })], "mine", FS],
    ["a name without --", ["mine", JSON.stringify(FS)], "mine", FS],
    [
      "comments, and commas behind the last values",
      [
        '// ~/.cursor/mcp.json\n/* all ** of them */ {\n  "mcpServers": {\n    // Needs Node 20.\n    "fs": {"command": "npx", "args": ["http://x", "/*"],},\n  },\n}',
      ],
      "fs",
      { command: "npx", args: ["http://x", "/*"] },
    ],
    [
      "blanks that only editors and pages know",
      [`\ufeff\u00a0${JSON.stringify({ fs: FS })}\u2028\u00a0`],
      "fs",
      FS,
    ],
    [
      "a name of every object",
      ['{"mcpServers": {"__proto__": {"command": "x"}}}'],
      "__proto__",
      { command: "x" },
    ],
  ])("%s", (_what, words, name, entry) => {
    expect(parseAdd(["--project", ...words])).toEqual({
      add: { name, entry, project: true, saysWhere: true, replace: false },
    });
  });

  test.each<[string[], RegExp]>([
    [["{oops}"], /not a JSON object: invalid symbol in line 1, column 2\.$/],
    [['{"a": {\n"command": "x"\n"args": []}}'], /not a JSON object: comma expected in line 3, column 1\.$/],
    [['{"a": {"command": "x"}'], /not a JSON object: close brace expected in line 1, column 23\.$/],
    [['{"mcpServers": {}}'], /names no server/],
    [['{"a": {"command": "x"}, "b": {"url": "y"}}'], /holds 2 servers/],
    [["--env", "A=1", '{"command": "x"}'], /--env is for a command or a URL/],
    [["--cwd", "/", '{"command": "x"}'], /--cwd is for a command or a URL/],
    [["a", '{"command": "x"}', "more"], /more is a word too many/],
    [[`{"command": "${"x".repeat(100_000)}"}`], /too long/],
  ])("%j", (words, problem) => {
    const parsed = parseAdd(words);
    expect("problem" in parsed ? parsed.problem : "no problem").toMatch(problem);
  });
});

test("JSON of more servers than are added at once -> their whole number, and none is offered", () => {
  const servers = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`s${i}`, { command: "x" }]));
  expect(parseAdd([JSON.stringify({ mcpServers: servers })])).toEqual({
    problem:
      "The JSON holds 51 servers, more than the 50 that are added at once: write them into your mcp.json.",
  });
});

test("JSON that is deep, or has a comment behind each comment -> refused at once", () => {
  expect(parseAdd([`{"a": ${"[".repeat(90_000)}`])).toEqual({ problem: "That JSON is nested too deeply." });
  const comments = `${"////".repeat(10_000)}\n${"/**/ ".repeat(10_000)}`;
  expect([isJsonText(`${comments}x {`), isJsonText(`${comments}{`)]).toEqual([false, true]);
  expect(parseAdd([`{"a": ${comments}x`])).toEqual({
    problem: "That is not a JSON object: invalid symbol in line 2, column 50001.",
  });
});

test.each<[string, string]>([
  ["npx -y @modelcontextprotocol/server-filesystem .", "filesystem"],
  ["npx -y @playwright/mcp@latest", "playwright"],
  ["npx chrome-devtools-mcp@latest", "chrome-devtools"],
  ["uvx mcp-server-git", "git"],
  ["docker run -i --rm ghcr.io/github/github-mcp-server", "github"],
  ["node /home/me/notes-server/dist/index.js", "notes"],
  ["./bin/my-tool", "my-tool"],
  ["https://mcp.notion.com/mcp", "notion"],
  ["https://api.githubcopilot.com/mcp/", "githubcopilot"],
  ["https://user:pw@docs.example.co/mcp?key=secret", "example"],
  ["http://127.0.0.1:3000/mcp", "server"],
  ["http://localhost:3000/mcp", "localhost"],
  ["node", "server"],
  ["", "server"],
  [`npx ${"a".repeat(100)}`, "a".repeat(32)],
])("%s -> %s", (target, name) => {
  expect(proposedName(target.split(" "))).toBe(name);
});
