/**
 * Owns: the cost of a file that somebody else wrote: its time grows with its size and no faster, and the numbers of
 * its servers and of its reported mistakes are bounded. Processor time is measured, with a limit that only
 * quadratic work exceeds.
 */
import { describe, expect, it, test } from "vitest";
import type { HostName } from "../../../../../src/shared/import-names.ts";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../../../src/shared/text/failure.ts";
import {
  type ExposureRules,
  exposureOf,
  namesInRules,
} from "../../../../../workers/connection/config/entry/exposure.ts";
import { type FileConfig, parseConfigText } from "../../../../../workers/connection/config/files/files.ts";
import type { ConfigSource } from "../../../../../workers/connection/config/files/sources.ts";
import { hostSources, parseHostText } from "../../../../../workers/connection/config/hosts/hosts.ts";
import {
  boundProblems,
  type Merged,
  mergeLayers,
} from "../../../../../workers/connection/config/merge/layers.ts";
import { amount } from "../../../../support/long.ts";
import { coreSlowness, cpuMs } from "../../../../support/slowdown.ts";
import { definition, facts, PROJECT_FILE, PROJECT_PI, USER } from "./support.ts";

const MEBIBYTE = 2 ** 20;
/** By default the texts have half of their size, and quadratic work takes a quarter of its time. */
const SHARE = amount(2, 1);
const some = (count: number): number => count / SHARE;
/** The quadratic reader took from 6 to 80 s for each of the whole texts; this one takes at most 0.3 s. */
const MOST_CPU_MS = 4_000 / SHARE ** 2;

/** On slower cores equal work takes more. */
async function expectWork(work: () => unknown, mostMs = MOST_CPU_MS): Promise<void> {
  const tookMs = cpuMs(work);
  const slowness = tookMs < mostMs ? 1 : await coreSlowness();
  expect(tookMs, `in milliseconds, cores ${slowness.toFixed(1)} times slower`).toBeLessThan(
    mostMs * slowness,
  );
}

const list = (count: number, one: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => one(i)).join(",");
const servers = (body: string): string => `{"mcpServers":{${body}}}`;
const ofA = (body: string): string => servers(`"a":{"command":"x",${body}}`);
const merged = (...files: FileConfig[]): Merged => mergeLayers({ registered: [], hosts: [], files });

describe("a text of a hostile file -> read in a time that grows with its size", () => {
  const wrong = `{"command":"x","args":[${list(90, () => "1")}]}`;
  const texts: [string, string][] = [
    ["many servers", servers(list(some(16_000), (i) => `"s${i}":{"command":"x"}`))],
    ["servers that are wrong", servers(list(some(16_000), (i) => `"s${i}":5`))],
    ["overrides of nothing", servers(list(some(16_000), (i) => `"s${i}":{"enabled":false}`))],
    ["unknown keys of the file", `{${list(some(60_000), (i) => `"mcpServrs${i}":1`)}}`],
    ["unknown keys of a server", ofA(list(some(40_000), (i) => `"lifcyle${i}":1`))],
    ["unknown settings", `{"settings":{${list(some(40_000), (i) => `"toolPrefx${i}":1`)}}}`],
    ["the same key many times", `{${list(some(150_000), () => '"a":1')}}`],
    ["the same server many times", servers(list(some(16_000), () => '"a":{"command":"x"}'))],
    ["wrong values of env", ofA(`"env":{${list(some(40_000), (i) => `"A${i}":1`)}}`)],
    ["wrong arguments", ofA(`"args":[${list(some(40_000), () => "1")}]`)],
    ["servers with 90 wrong arguments each", servers(list(some(500), (i) => `"s${i}":${wrong}`))],
    ["exposures", ofA(`"toolExposure":{${list(some(40_000), (i) => `"t${i}":1`)}}`)],
    ["numbers", ofA(`"z":[${list(some(400_000), () => "1")}]`)],
    ["objects", ofA(`"z":[${list(some(300_000), () => "{}")}]`)],
    ["commas", `{"mcpServers":[${",".repeat(some(MEBIBYTE))}]}`],
    ["comments", servers("/**/".repeat(some(200_000)))],
    ["lines", servers("\n".repeat(some(MEBIBYTE)))],
    ["one long string", servers(`"a":{"command":"${"x".repeat(some(MEBIBYTE))}"}`)],
    ["one long key", servers(`"${"k".repeat(some(MEBIBYTE))}":{"command":5}`)],
    ["a list in a list, and so on", servers(`"a":${"[".repeat(some(MEBIBYTE))}`)],
    ["an object in an object, and so on", servers(`"a":${'{"a":'.repeat(some(200_000))}`)],
  ];

  it.each(texts)("%s", async (_what, text) => {
    await expectWork(() => {
      for (const source of [PROJECT_FILE, USER]) merged(parseConfigText(text, source));
    });
  });

  const LONG = "a.".repeat(2_000);
  const tomlTexts: [string, string][] = [
    ["servers", list(some(16_000), (i) => `[mcp_servers.s${i}]\ncommand = "x"\n`).replaceAll(",", "")],
    ["many long keys", list(some(200), (i) => `k${i}.${LONG}b = 1\n`).replaceAll(",", "")],
    ["one key of many parts", `${"a.".repeat(some(MEBIBYTE / 2))}b = 1`],
    ["a string with a line of many parts", `x = """\n${"a.".repeat(some(MEBIBYTE / 2))}b\n"""`],
    ["one long key in quotes", `"${"k".repeat(some(MEBIBYTE))}" = 1`],
    ["a list in a list, and so on", `a = ${"[".repeat(some(MEBIBYTE))}`],
    ["comments", "#\n".repeat(some(MEBIBYTE / 2))],
  ];

  it.each(tomlTexts)("TOML: %s", async (_what, text) => {
    await expectWork(() => readHost("codex", text));
  });
});

function readHost(host: HostName, text: string): ReturnType<typeof parseHostText> {
  const source = hostSources(host, facts()).find(({ origin }) => origin === "project-file") ?? PROJECT_FILE;
  return parseHostText(text, { host, source, facts: facts(), before: [] });
}

describe("another program's value with many starts of a variable and no end -> read in linear time", () => {
  it.each<[HostName, string, string]>([
    ["vscode", "servers", "${input:"],
    ["cursor", "mcpServers", "${input:"],
    ["windsurf", "mcpServers", "${file:"],
    ["claude-code", "mcpServers", "${A:-"],
  ])("%s", async (host, key, start) => {
    const text = JSON.stringify({ [key]: { a: { command: "x", args: [start.repeat(some(100_000))] } } });
    await expectWork(() => readHost(host, text));
  });
});

describe("rules for tools -> compared with every tool, so bounded", () => {
  const excluding = (pattern: (i: number) => string): ExposureRules => ({
    directTools: undefined,
    exposure: undefined,
    toolExposure: {},
    includeTools: undefined,
    excludeTools: Array.from({ length: LIMITS.toolRules }, (_, i) => pattern(i)),
  });

  /** The work grows with the tools, and so does the limit. */
  const TOOLS = amount(150, 1_000);

  it.each<[string, (i: number) => string]>([
    ["the longest patterns", () => `*${"a*".repeat(127)}`],
    ["names that end like a hash", (i) => `x_abc${String(i).padStart(3, "0")}`],
  ])(`%s for ${TOOLS} tools`, async (_what, pattern) => {
    const rules = excluding(pattern);
    await expectWork(() => {
      for (let i = 0; i < TOOLS; i++)
        exposureOf(`get_a_a_a_${i}`, rules, false, namesInRules("server", `get_a_a_a_${i}`, "server"));
    }, 4 * TOOLS);
  });

  it.each([
    [
      "1,001 names",
      { excludeTools: Array.from({ length: 1_001 }, (_, i) => `t${i}`) },
      "has 1,001 items, at most 1,000 are possible",
    ],
    [
      "a name of 257 characters",
      { includeTools: ["x".repeat(257)] },
      "holds a name of more than 256 characters",
    ],
    [
      "10,001 arguments",
      { args: Array.from({ length: 10_001 }, () => "x") },
      "has 10,001 items, at most 10,000 are possible",
    ],
  ])("%s -> the entry is a mistake", (_what, over, message) => {
    const { entries, problems } = parseConfigText(
      servers(`"a":${JSON.stringify({ command: "x", ...over })}`),
      USER,
    );
    expect(entries).toMatchObject([{ kind: "override", isWrong: true }]);
    expect(problems).toMatchObject([{ severity: "error", message }]);
  });
});

describe("a file of servers -> the first so many", () => {
  it.each<[string, ConfigSource, number, string]>([
    [
      "a project's",
      PROJECT_FILE,
      500,
      "the first 500 of a project's file are used, the other 1,500 are left out",
    ],
    ["a project's own of Pi", PROJECT_PI, 500, "the first 500 of a project's file are used"],
    ["the user's", USER, 2_000, ""],
  ])("%s -> %#", (_whose, source, used, told) => {
    const { entries, problems } = parseConfigText(
      `{"mcpServers":{${list(1_999, (i) => `"s${i}":{"command":"x"}`)}},"mcp-servers":{"last":{"command":"x"}}}`,
      source,
    );
    expect(entries).toHaveLength(used);
    expect(problems.map(describeProblem)).toEqual(
      told === "" ? [] : [expect.stringContaining(`has 2,000 servers; ${told}`)],
    );
  });

  it.each<[HostName, string]>([
    ["vscode", `{"servers":{${list(800, (i) => `"s${i}":{"command":"x"}`)}}}`],
    ["codex", list(800, (i) => `[mcp_servers.s${i}]\ncommand = "x"\n`).replaceAll(",", "")],
    ["opencode", `{"mcp":{${list(800, (i) => `"s${i}":{"type":"local","command":["x"]}`)}}}`],
  ])("of %s in a project -> 500, and one problem", (host, text) => {
    const { servers: found, problems } = readHost(host, text);
    expect(found).toHaveLength(500);
    expect(problems).toMatchObject([
      { severity: "error", message: expect.stringMatching(/^has 800 servers; .* 300 are left out$/) },
    ]);
  });

  test.each([128, 129])("a name of %i characters", (length) => {
    const { entries, problems } = parseConfigText(servers(`"${"n".repeat(length)}":{"command":"x"}`), USER);
    expect([entries.length, problems.length]).toEqual(length === 128 ? [1, 0] : [0, 1]);
    expect(problems.map(describeProblem).join("").length).toBeLessThan(300);
  });
});

describe("too many servers in all", () => {
  const many = (count: number, source: ConfigSource, prefix: string): FileConfig =>
    parseConfigText(servers(list(count, (i) => `"${prefix}${i}":{"command":"${prefix}"}`)), source);

  test("the project's servers are left out before the user's, and each file is reported once", () => {
    const imported = Array.from({ length: 100 }, (_, i) =>
      definition(`i${i}`, { command: "x" }, { file: "/home/me/.cursor/mcp.json", origin: "import" }),
    );
    const files = [many(700, USER, "u"), many(500, PROJECT_FILE, "p")];
    const { servers: kept, problems } = mergeLayers({ registered: [], hosts: [imported], files });
    const counts = Map.groupBy(kept, ({ origin }) => origin);
    expect([...counts].map(([origin, its]) => [origin, its.length])).toEqual([
      ["import", 100],
      ["user", 700],
      ["project-file", 200],
    ]);
    expect(problems.map(describeProblem)).toEqual([
      `${PROJECT_FILE.file}: 300 of its servers are left out, the first is p200: more than 1,000 are configured in all. Remove servers that you do not need.`,
    ]);
  });

  test("a project's server replaces the user's own -> neither is lost", () => {
    const files = [many(900, USER, "u"), many(500, PROJECT_PI, "p"), many(400, PROJECT_FILE, "u")];
    const { servers: kept } = mergeLayers({ registered: [], hosts: [], files });
    expect(kept).toHaveLength(LIMITS.servers);
    expect(kept.filter(({ name }) => name.startsWith("u"))).toHaveLength(900);
  });
});

describe("boundProblems", () => {
  const problem = (severity: ConfigProblem["severity"], message: string, file = "/f"): ConfigProblem => ({
    severity,
    file,
    message,
    remedy: "r",
  });

  test("as many as are reported -> unchanged", () => {
    const all = Array.from({ length: 20 }, (_, i) => problem("warning", String(i)));
    expect(boundProblems(all)).toEqual(all);
  });

  test("16,000 problems -> the first 20, and the number of the others", () => {
    const all = Array.from({ length: 16_000 }, (_, i) => problem("error", String(i)));
    expect(boundProblems(all).map(describeProblem).slice(19)).toEqual([
      "/f: 19. r",
      "/f: and 15,980 more mistakes. Correct these first; the others are reported then.",
    ]);
  });

  test("an error behind many warnings -> reported in their place; other files are not affected", () => {
    const warnings = Array.from({ length: 21 }, (_, i) => problem("warning", String(i)));
    const told = boundProblems([problem("warning", "before", "/g"), ...warnings, problem("error", "wrong")]);
    expect(told.map(({ message }) => message)).toEqual([
      "before",
      ...Array.from({ length: 19 }, (_, i) => String(i)),
      "wrong",
      "and 2 more mistakes",
    ]);
  });
});

describe("names that every object has", () => {
  const NAMES = ["constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"];

  test.each(NAMES)("a server, key and setting named %s -> like any other", (name) => {
    const text = `{"mcpServers": {\n"${name}": {"command": "x",\n "${name}": 1}},\n"settings": {"${name}": 1}}`;
    const config = parseConfigText(text, PROJECT_PI);
    expect(config.entries).toMatchObject([{ kind: "server", definition: { name } }]);
    expect(config.problems.map(({ line, key }) => [line, key])).toEqual([
      [3, `mcpServers.${name}.${name}`],
      [4, `settings.${name}`],
    ]);
    expect(merged(config).servers.map((server) => server.name)).toEqual([name]);
  });

  test("__proto__ at every level -> no object gets it, and only the server of that name is reported", () => {
    const evil = '{"__proto__": {"polluted": 1}, "polluted": 2}';
    const text = `{"mcpServers": {"a": {"command": "x", "env": {"__proto__": "y"}, "oauth": ${evil}}, "__proto__": {"command": "x"}}, "__proto__": ${evil}}`;
    const { entries, problems } = parseConfigText(text, USER);
    expect(entries).toHaveLength(1);
    expect(problems.map(({ key }) => key)).toContain("mcpServers.__proto__");
    expect(Reflect.get({}, "polluted")).toBeUndefined();
    expect(entries[0]?.kind === "server" && entries[0].definition.target).toMatchObject({ env: {} });
  });
});

test("a text with too many levels or values -> one problem with its position", () => {
  const nested = parseConfigText(ofA(`"z":\n${"[".repeat(120)}${"]".repeat(120)}`), USER);
  expect(nested.problems).toMatchObject([
    { line: 2, message: "not valid JSON: it is nested deeper than 100 levels" },
  ]);
  const full = parseConfigText(ofA(`"z":[${list(50_000, () => "1")}]`), PROJECT_FILE);
  expect(full.problems).toMatchObject([{ message: "not valid JSON: it holds more than 50,000 values" }]);
  expect(nested.broken && full.broken).toBe(true);
});
