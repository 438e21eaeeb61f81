/**
 * Owns: the checks that the documentation is true: examples are accepted by the code that reads configurations, tables
 * name what the code has, links lead somewhere, and the package holds the pages.
 */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { KEY_PAGES, keyTables, withKeyTables } from "../../scripts/key-tables.ts";
import { checkArguments, readCommandLine } from "../../src/cli/words/parse.ts";
import { KNOWN_SERVERS, knownServer } from "../../src/shared/known-servers.ts";
import { ERROR_CODES } from "../../src/shared/protocol/errors.ts";
import { parseAdd } from "../../src/shared/setup.ts";
import { splitWords } from "../../src/shared/text/split-words.ts";
import { subcommand, WORDS } from "../../src/ui/command/words.ts";
import { parseConfigText } from "../../workers/connection/config/files/files.ts";
import { WINDOW_VARIABLES } from "../../workers/connection/hub/window-variables.ts";
import { commandsOf, docCommands, unaccounted } from "../support/doc-commands.ts";
import { packedEntry } from "../support/run-package.ts";
import { anchorsOf, codeBlocks, codeSpans, linksOf, tableRows } from "./support/markdown.ts";

const root = join(import.meta.dirname, "..", "..");
const read = (path: string): Promise<string> => readFile(join(root, path), "utf8");

/** Pages for users: all of them are checked. */
const DOCS = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md"));
const USER_PAGES = ["README.md", ...DOCS.map((name) => `docs/${name}`)];
const OTHER_PAGES = ["CONTRIBUTING.md", "bench/README.md", "bench/METHOD.md", "test/README.md"];
const pages = new Map(
  await Promise.all([...USER_PAGES, ...OTHER_PAGES].map(async (path) => [path, await read(path)] as const)),
);
/** Pages for people who read the code; the package has the others. */
const isPacked = (name: string): boolean => !["README.md", "architecture.md", "tour.md"].includes(name);
const pageOf = (path: string): string => pages.get(path) ?? "";

const SOURCE = { file: "/home/me/.pi/agent/mcp.json", origin: "user", required: false } as const;
const TOP_KEYS = ["mcpServers", "imports", "settings", "$schema"];

/** What the code says is wrong with an example. An example may be a whole file, a server, or some of a server's keys. */
function mistakesIn(example: string): string[] {
  const told = (text: string): string[] =>
    parseConfigText(text, SOURCE).problems.map(({ line, message }) => `line ${line}: ${message}`);
  if (TOP_KEYS.some((key) => example.includes(`"${key}"`))) return told(example);
  const target = /"(command|url)":/.test(example) ? "" : '"command": "x", ';
  const server = example.trim().replace("{", `{ ${target}`);
  return told(`{ "mcpServers": { "example": ${server} } }`);
}

describe("examples of configurations", () => {
  const examples = USER_PAGES.flatMap((path) =>
    codeBlocks(pageOf(path))
      .filter(({ language, about }) => /^jsonc?$/.test(language) && about === "")
      .map(({ text }, i) => [`${path}, example ${i + 1}`, text] as const),
  );

  test("the pages have some", () => {
    expect(examples.length).toBeGreaterThan(5);
  });

  test.each(examples)("%s -> no mistake", (_where, text) => {
    expect(mistakesIn(text)).toEqual([]);
  });

  test("a wrong key, a wrong value, text that is no JSON -> the check finds it", () => {
    expect(mistakesIn('{ "mcpServers": { "a": { "comand": "x" } } }')).not.toEqual([]);
    expect(mistakesIn('{ "lifecycle": "often" }')).not.toEqual([]);
    expect(mistakesIn('{ "settings": { "hotReload": "on" }')).not.toEqual([]);
  });
});

/** Each text of a page that could be typed into Pi or a shell: code spans, and the lines of shell examples. */
const typed = (page: string): string[] => [
  ...codeSpans(page),
  ...codeBlocks(page)
    .filter(({ language }) => ["bash", "sh", "console", "text"].includes(language))
    .flatMap(({ text }) => text.split("\n").map((line) => line.replace(/^\$ /, ""))),
];

/** The words of `/mcp` that the page names: `/mcp enable|disable` has two. */
const mcpWords = (page: string): string[] =>
  typed(page)
    .map((text) => /^(?:pi -p ")?\/mcp ([a-z|\\]+)/.exec(text)?.[1] ?? "")
    .flatMap((words) => words.split(/\\?\|/))
    .filter((word) => word !== "");

/** The words of each `/mcp add ...` that the page writes out; forms with `<name>` or `[name]` are none. */
const addExamples = (page: string): string[] =>
  typed(page)
    .map((text) => /^\/mcp add (\S.*)$/.exec(text)?.[1] ?? "")
    .filter((rest) => rest !== "" && !/[<[]/.test(rest));

function problemOfAdd(rest: string): string | undefined {
  const split = splitWords(rest);
  if (!("words" in split)) return split.problem;
  const parsed = parseAdd(split.words);
  if ("add" in parsed) return undefined;
  // One of these names alone is a whole command.
  const bare = parsed.instead?.bare;
  return bare !== undefined && knownServer(bare) ? undefined : parsed.problem;
}

const isWord = (word: string): boolean => Object.hasOwn(WORDS, subcommand(word));

describe("commands", () => {
  test.each([...USER_PAGES, ...OTHER_PAGES])("%s names only words that /mcp has", (path) => {
    expect(mcpWords(pageOf(path)).filter((word) => !isWord(word))).toEqual([]);
  });

  test("docs/commands.md has a row for each word, with its arguments", () => {
    const named = tableRows(pageOf("docs/commands.md")).flatMap(([first = ""]) => codeSpans(first));
    const wanted = Object.entries(WORDS).map(([word, rest]) => `/mcp ${word} ${rest}`.trim());
    expect(wanted.filter((command) => !named.includes(command))).toEqual([]);
  });

  test.each(USER_PAGES)("%s writes /mcp add as its parser reads it", (path) => {
    expect(addExamples(pageOf(path)).map(problemOfAdd).filter(Boolean)).toEqual([]);
  });

  test("an option that /mcp add does not have -> the check finds it", () => {
    expect(addExamples("`/mcp add --colour red x y`").map(problemOfAdd)).toEqual([
      expect.stringContaining("colour"),
    ]);
    expect(addExamples(pageOf("docs/getting-started.md")).length).toBeGreaterThan(1);
  });

  test.each(USER_PAGES)("%s gives no word an option that it does not have", (path) => {
    const uses = typed(pageOf(path)).flatMap((text) => {
      const [, word = "", rest = ""] = /^\/mcp ([a-z]+)(.*)$/.exec(text) ?? [];
      if (word === "" || word === "add" || !isWord(word)) return [];
      const form = WORDS[subcommand(word) as keyof typeof WORDS];
      return [...rest.matchAll(/--[a-z-]+/g)].map(([option]) => ({ text, known: form.includes(option) }));
    });
    expect(uses.filter(({ known }) => !known)).toEqual([]);
  });

  test("a word that /mcp does not have -> the check finds it", () => {
    expect(
      mcpWords("`/mcp enable|dance x`\n\n```bash\n/mcp sing\n```\n").filter((word) => !isWord(word)),
    ).toEqual(["dance", "sing"]);
  });
});

/** The words of each line of the page that runs the command of the package, quotes as a shell reads them. */
const shellCommands = (page: string): string[][] =>
  typed(page)
    .map((line) => /^(?:npx )?pi-mcp-threads(?: (.*?))?(?: {2,}#.*)?$/.exec(line)?.[1] ?? "")
    .filter((rest) => rest !== "" && !/[<[…]/.test(rest))
    .map((rest) => [...rest.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map((match) => match.slice(1).join("")));

const readThrough = (words: readonly string[]): void => checkArguments(readCommandLine(words));

describe("the command pi-mcp-threads", () => {
  test.each(USER_PAGES)("%s gives it only words and options that it has", (path) => {
    for (const words of shellCommands(pageOf(path))) expect(() => readThrough(words)).not.toThrow();
  });

  test("a word or an option that it does not have -> the check finds it", () => {
    const [dance = [], lisp = []] = shellCommands(
      "```sh\npi-mcp-threads dance 'a b'\nnpx pi-mcp-threads list --lisp\n```\n",
    );
    expect(dance).toEqual(["dance", "a b"]);
    expect(() => readThrough(dance)).toThrow();
    expect(() => readThrough(lisp)).toThrow();
  });
});

describe("each command of the pages", () => {
  test("is run by a test, or has a reason why not", async () => {
    expect(unaccounted(await docCommands())).toEqual({ notRun: [], stale: [] });
  });

  test("one that is new to the pages -> the check finds it", () => {
    const page =
      "`npm run dance`\n\n```bash\npi-mcp-threads list   # all\ncurl \\\n  x.test\n```\n\n```text\n/mcp add x\nSay it.\n```\n";
    expect(commandsOf(page)).toEqual(["pi-mcp-threads list", "curl x.test", "/mcp add x", "npm run dance"]);
    expect(unaccounted(commandsOf(page)).notRun).toEqual(["curl x.test", "npm run dance"]);
  });
});

test("docs/troubleshooting.md explains each error code, and no other", () => {
  const rows = tableRows(pageOf("docs/troubleshooting.md"));
  const codes = rows.slice(rows.findIndex(([first]) => first === "code") + 1).map(([first = ""]) => first);
  expect(codes.map((code) => code.replaceAll("`", "")).toSorted()).toEqual([...ERROR_CODES].sort());
});

describe("tables of keys", () => {
  test.each(Object.entries(KEY_PAGES))("those of docs/%s are up to date: npm run schema", (name, tables) => {
    const page = pageOf(`docs/${name}`);
    expect(page).toBe(withKeyTables(page, keyTables(), tables));
  });

  test("each table has its page, and keys that are only read stand below it", () => {
    expect(Object.values(KEY_PAGES).flat().toSorted()).toEqual(Object.keys(keyTables()).sort());
    expect(pageOf("docs/configuration.md")).toContain("Also read: `mcp-servers` for `mcpServers`.");
    expect(Object.values(keyTables()).join("")).not.toContain("Another spelling");
    // The pages say how many there are.
    expect(KNOWN_SERVERS).toHaveLength(10);
  });

  test("a table without its mark, a mark without its table -> an error", () => {
    const table = { file: "| key |" };
    expect(() => withKeyTables("# Page\n", table)).toThrow("no mark for the keys of file");
    expect(() => withKeyTables("<!-- keys: other -->\n<!-- /keys -->", table)).toThrow("no table");
    expect(withKeyTables("<!-- keys: file -->\nold\n<!-- /keys -->", table)).toBe(
      "<!-- keys: file -->\n\n| key |\n\n<!-- /keys -->",
    );
  });

  test("each key has a meaning", () => {
    const rows = Object.values(keyTables()).flatMap(tableRows);
    expect(rows.length).toBeGreaterThan(60);
    expect(rows.filter((cells) => cells.at(-1) === "")).toEqual([]);
  });
});

test("docs/shared-servers.md names each variable that a shared server does not get, and no other", () => {
  const [, list = ""] = pageOf("docs/shared-servers.md").split(/<!-- \/?window variables\b[^>]*-->/);
  expect(codeSpans(list).toSorted()).toEqual(Object.keys(WINDOW_VARIABLES).sort());
});

test("docs/troubleshooting.md explains each reason why there is no hub", async () => {
  const spans = codeSpans(pageOf("docs/troubleshooting.md")).filter((span) => span.includes(" "));
  const sources = await Promise.all(
    ["workers/shared/hub/place.ts", "workers/connection/hub/link.ts"].map(read),
  );
  const reasons = sources
    .flatMap((text) => [...text.matchAll(/(?:new HubUnusable|unusable)\(\s*(?:"([^"]+)"|`([^`]+)`)/g)])
    .map(([, plain = "", template = ""]) => plain || template)
    // The frame of the reasons about the secret.
    .filter((reason) => !/^\$\{secret\}: \$\{why\}/.test(reason));
  expect(reasons.length).toBeGreaterThan(15);
  // What stands in braces, and what the person is to do, differ from case to case.
  const isExplained = (reason: string): boolean =>
    spans.some((span) => reason.replaceAll(/\$\{[^}]*\}/g, "…").includes(span));
  expect(reasons.filter((reason) => !isExplained(reason))).toEqual([]);
});

test("docs/limits.md names each file that the workers write below the agent folder", async () => {
  const named = codeSpans(pageOf("docs/limits.md"));
  const sources = await readdir(join(root, "workers"), { recursive: true });
  const texts = await Promise.all(
    sources.filter((path) => path.endsWith(".ts")).map((path) => read(join("workers", path))),
  );
  const written = texts.flatMap((text) =>
    [...text.matchAll(/(?:agentDir, |\b\w*(?:FOLDER|FILE|LOG) = )"(mcp[\w.-]*)"/g)].map(
      ([, name = ""]) => name,
    ),
  );
  expect(written.length).toBeGreaterThan(7);
  expect(written.filter((name) => !named.some((span) => span.startsWith(name)))).toEqual([]);
});

describe("pictures", () => {
  const shown = USER_PAGES.flatMap((path) => linksOf(pageOf(path))).filter((link) => link.endsWith(".svg"));

  test("each is shown by a page, and comes from npm run pictures", async () => {
    const names = await readdir(join(root, "docs", "pictures"));
    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((name) => !shown.some((link) => link.endsWith(`pictures/${name}`)))).toEqual([]);
  });

  test("each loads nothing from elsewhere, and says what it shows", async () => {
    for (const name of await readdir(join(root, "docs", "pictures"))) {
      const picture = await read(`docs/pictures/${name}`);
      expect(picture.match(/(?:href|src|url)[=(][^>]*/g) ?? []).toEqual([]);
      expect(picture).toMatch(/<title>[^<]{20,}<\/title>/);
    }
  });

  test.each(USER_PAGES)("of %s have a text for those who do not see them", (path) => {
    expect([...pageOf(path).matchAll(/!\[([^\]]*)\]\(/g)].filter(([, alt = ""]) => alt.length < 20)).toEqual(
      [],
    );
  });
});

describe("links", () => {
  test.each([...pages.keys()])("of %s lead somewhere", async (path) => {
    const broken: string[] = [];
    for (const link of linksOf(pageOf(path))) {
      if (/^[a-z]+:/.test(link)) continue;
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      const isThere = existsSync(join(root, target));
      const hasAnchor = anchor === undefined || (isThere && anchorsOf(await read(target)).includes(anchor));
      if (!isThere || !hasAnchor) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  test("of each page in the package lead to a file in the package, or to an address that exists", async () => {
    const folder = dirname(await packedEntry());
    const files = (await readdir(folder, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
    const packed = files.filter((path) => path.endsWith(".md"));
    expect(packed).toEqual(
      expect.arrayContaining(["README.md", ...DOCS.filter(isPacked).map((name) => `docs/${name}`)]),
    );
    const texts = await Promise.all(packed.map((path) => readFile(join(folder, path), "utf8")));
    const links = packed.flatMap((path, i) =>
      linksOf(texts[i] ?? "").map((link) => {
        const target = link.split("#", 1)[0] ?? "";
        return { page: path, link, target: target === "" ? path : join(dirname(path), target) };
      }),
    );
    expect(links.length).toBeGreaterThan(50);
    const isAddress = (link: string): boolean => /^https:\/\//.test(link);
    expect(links.filter(({ link, target }) => !isAddress(link) && !files.includes(target))).toEqual([]);
    // What nobody can read: the package names no repository and no page for reports, so no page promises one.
    const { repository, bugs, homepage } = JSON.parse(await read("package.json")) as Record<string, unknown>;
    expect({ repository, bugs, homepage }).toEqual({});
    expect(
      packed.filter((_path, i) => /maintainers|npm page|an issue\b|pull request to/i.test(texts[i] ?? "")),
    ).toEqual([]);
  });

  test("docs/README.md lists each page", () => {
    const listed = linksOf(pageOf("docs/README.md"));
    expect(DOCS.filter((name) => name !== "README.md" && !listed.includes(name))).toEqual([]);
  });

  test("anchors are GitHub's", () => {
    expect(anchorsOf("# What `/mcp` says\n## Over SSH, in a container\n## A\n## A\n")).toEqual([
      "what-mcp-says",
      "over-ssh-in-a-container",
      "a",
      "a-1",
    ]);
  });
});
