/**
 * Owns: `npm run pictures [name ...]`: the pictures of the documentation. Screens are those of the real Pi with the packed
 * extension, real servers and a scripted model, in tmux; the charts are made from bench/figures.
 * Must not: need a key, or a network beyond the first fetch of Pi.
 * To add a screen: a scene in SCENES. Called by: people, after a change of what a screen shows.
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { packedExtension } from "../bench/support/build.ts";
import { formatNumber } from "../bench/support/stats.ts";
import { type ModelScript, startModel } from "../test/support/model.ts";
import { createHome, type PiHome, runPrint } from "../test/support/pi-run.ts";
import { openTerminal, type Terminal } from "../test/support/terminal.ts";
import { chartSvg, type Group } from "./pictures/chart.ts";
import { figureOf, machineOf, readFigures } from "./pictures/figures.ts";
import { linesSvg, type Series } from "./pictures/lines.ts";
import { screenSvg } from "./pictures/screen-svg.ts";

const ROOT = join(import.meta.dirname, "..");
const OUT = join(ROOT, "docs", "pictures");
/** The sitting in which all clients were measured in turn while nothing else ran. */
const FIGURES = join(ROOT, "bench", "figures", "2026-11-23-peers.md");
/** What `npm run -s bench -- shared --markdown` writes. */
const SHARED_FIGURES = /^[\d-]+-shared\.md$/;

interface Scene {
  title: string;
  columns: number;
  rows: number;
  mcp: Record<string, unknown>;
  script: ModelScript;
  /** Resolves when the screen shows what the picture is of. */
  play(terminal: Terminal): Promise<unknown>;
  /** The first line of the picture; without it, the first line that is not empty. */
  from?: RegExp;
}

/** Servers from npm, found on the PATH as if they were installed. */
const SERVERS = {
  everything: { command: "mcp-server-everything", args: ["stdio"], description: "Examples of all features" },
  filesystem: { command: "mcp-server-filesystem", args: ["."], description: "Files of the project" },
  memory: { command: "mcp-server-memory", description: "What was learned about people and things" },
};
const PROGRAMS = join(ROOT, "node_modules", ".bin");

const calls = (name: string, args: unknown, text = "") => ({ text, toolCalls: [{ name, args }] });

const ANSWER = "19 + 23 is 42, and the folder holds README.md and src.";

const PANEL_SERVERS = {
  mcpServers: {
    ...SERVERS,
    everything: { ...SERVERS.everything, lifecycle: "eager", directTools: ["echo"] },
    broken: { command: "no-such-program", lifecycle: "eager" },
  },
};

async function openPanel(terminal: Terminal): Promise<void> {
  await terminal.until(/MCP: \d/);
  await terminal.prompt("/mcp");
  await terminal.until(/everything +connected +\S+ +\d+ +\d+ +[\d.]+k[\s\S]*broken +failed/);
}

const SCENES: Readonly<Record<string, Scene>> = {
  session: {
    title:
      "A session of Pi: the model searches for a tool with ToolSearch, which loads it, then calls everything get-sum and filesystem list_directory.",
    columns: 96,
    rows: 60,
    mcp: { mcpServers: SERVERS },
    script: [
      calls("ToolSearch", { query: "add two numbers", limit: 1 }),
      calls("everything__get-sum", { a: 19, b: 23 }),
      calls("ToolSearch", { query: "list directory", limit: 1 }),
      calls("filesystem__list_directory", { path: "." }),
      { text: ANSWER },
    ],
    from: /^ ?Add 19 and 23/,
    play: async (terminal) => {
      await terminal.until(/MCP: \d/);
      await terminal.prompt("Add 19 and 23 with a tool, then list the project folder.");
      await terminal.until(/19 \+ 23 is 42/);
    },
  },
  panel: {
    title: "The panel of /mcp: each server with its state, its tools and what they cost.",
    columns: 96,
    rows: 26,
    mcp: PANEL_SERVERS,
    script: [],
    from: /^─+$/,
    play: openPanel,
  },
  server: {
    title: "A server in the panel of /mcp: what runs, since when, from which file, and what can be done.",
    columns: 96,
    rows: 34,
    mcp: PANEL_SERVERS,
    script: [],
    from: /^─+$/,
    play: async (terminal) => {
      await openPanel(terminal);
      await terminal.press("Enter");
      await terminal.until(/process +stdio · up[\s\S]*→ Tools/);
    },
  },
  tools: {
    title:
      "The tools of a server in the panel of /mcp: which are declared to the model, and what each costs.",
    columns: 96,
    rows: 34,
    mcp: PANEL_SERVERS,
    script: [],
    from: /^─+$/,
    play: async (terminal) => {
      await openPanel(terminal);
      await terminal.press("Enter");
      await terminal.until(/→ Tools/);
      await terminal.press("Enter");
      await terminal.until(/~\d+ of ~[\d.]+k tokens declared[\s\S]*● echo/);
      await terminal.press("Down");
      await terminal.until(/→ . /);
    },
  },
  add: {
    title:
      "/mcp add: what the server would run, its answer to a trial, and the question where it is written.",
    columns: 96,
    rows: 34,
    mcp: { mcpServers: { memory: SERVERS.memory } },
    script: [],
    from: /^ ?Where|^─+$/,
    play: async (terminal) => {
      await terminal.until(/MCP: \d/);
      await terminal.prompt("/mcp add files mcp-server-filesystem .");
      await terminal.until(/Test it/);
      await terminal.press("Enter");
      await terminal.until(/answers over stdio/);
    },
  },
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' sequences begin with this character.
const plain = (line: string): string => line.replaceAll(/\u001b\[[\d;:]*[A-Za-z]/g, "").trimEnd();

/** The captured lines from the scene's first line to the last one that is not empty. */
function cropped(captured: string, from: RegExp | undefined): string {
  const lines = captured.split("\n");
  const first = lines.findIndex((line) => (from ? from.test(plain(line)) : plain(line) !== ""));
  const last = lines.findLastIndex((line) => plain(line) !== "");
  if (first === -1) throw new Error(`the screen has no line ${from}:\n${lines.map(plain).join("\n")}`);
  return lines.slice(first, last + 1).join("\n");
}

/** Runs Pi once, so that the tools are known at the next start, as they are to a person who has used the servers. */
async function learnTools(home: PiHome, extension: string, env: Record<string, string>): Promise<void> {
  const model = await startModel([calls("ToolSearch", { query: "anything" })]);
  try {
    const { code, stderr } = await runPrint({
      home,
      model,
      extensions: extension,
      prompt: "Search once.",
      env,
    });
    if (code !== 0) throw new Error(`Pi ended with ${code}: ${stderr}`);
  } finally {
    await model.close();
  }
}

async function screenOf(scene: Scene): Promise<string> {
  const { columns, rows, title } = scene;
  const { entry } = await packedExtension();
  const home = await createHome({
    mcp: scene.mcp,
    settings: { theme: "dark" },
    files: { "README.md": "# A project\n", "src/main.ts": "export {};\n" },
  });
  const model = await startModel(scene.script);
  try {
    const env = { COLORTERM: "truecolor", PATH: `${PROGRAMS}${delimiter}${process.env.PATH}` };
    await learnTools(home, entry, env);
    const terminal = await openTerminal({ home, model, extension: entry, columns, rows, env });
    try {
      await scene.play(terminal);
      return screenSvg(cropped(await terminal.colours(), scene.from), { title, columns });
    } finally {
      await terminal.close();
    }
  } finally {
    await model.close();
    await home.dispose();
  }
}

/** Scenario, metric, and the cases of this package, of the built-in MCP and of the adapter. */
type Compared = readonly [scenario: string, metric: string, ours: string, builtIn: string, adapter: string];

const ADAPTER = "pi-mcp-adapter 2.36.0";
const COMPARED: readonly (readonly [title: string, ...Compared])[] = [
  ["Tokens of MCP in the first request", "tokens", "together, tokens", "ours", "built-in MCP", ADAPTER],
  [
    "First request of Pi, later than without MCP",
    "start",
    "first request after",
    "ours, warm, eager",
    "built-in MCP",
    "adapter, warm, eager",
  ],
  [
    "CPU of Pi's main thread while the servers connect",
    "connect",
    "main-thread CPU",
    "ours",
    "built-in MCP",
    ADAPTER,
  ],
  [
    "Longest time in which Pi does not answer meanwhile",
    "connect",
    "longest stall, session",
    "ours",
    "built-in MCP",
    ADAPTER,
  ],
];

async function chart(): Promise<string> {
  const page = await readFile(FIGURES, "utf8");
  const figures = readFigures(page);
  const groups = COMPARED.map(([title, scenario, metric, ...cases]): Group => {
    const names = ["pi-mcp-threads", "built-in MCP", "pi-mcp-adapter"];
    const bars = cases.map((name, i) => {
      const { value, over, unit } = figureOf(figures, scenario, name, metric);
      const sign = over === undefined ? "" : "+";
      const label = `${sign}${formatNumber(over ?? value)} ${unit}`;
      return { name: names[i] ?? name, value: over ?? value, label, isOurs: i === 0 };
    });
    return { title, bars };
  });
  return chartSvg({
    title: "20 servers, 1,000 tools: what MCP costs Pi (less is better)",
    source: `Medians; + is beyond Pi without MCP. ${machineOf(page) ?? ""}`,
    groups,
  });
}

/** Cases of the scenario `shared`, and how the picture names them. */
const SESSIONS: readonly (readonly [name: string, label: string, role: Series["role"]])[] = [
  ["bare Pi", "Pi without MCP", "other"],
  ["ours, shared", "pi-mcp-threads, shared", "main"],
  ["ours", "pi-mcp-threads", "own"],
  ["built-in MCP", "built-in MCP", "other"],
  [ADAPTER, "pi-mcp-adapter", "other"],
];

async function memory(): Promise<string> {
  const folder = join(ROOT, "bench", "figures");
  const newest = (await readdir(folder))
    .filter((name) => SHARED_FIGURES.test(name))
    .sort()
    .at(-1);
  if (!newest)
    throw new Error(`no figures: npm run -s bench -- shared --markdown > ${folder}/<date>-shared.md`);
  const page = await readFile(join(folder, newest), "utf8");
  const figures = readFigures(page);
  const series = SESSIONS.map(([name, label, role]): Series => {
    const rows = figures.filter((figure) => figure.scenario === "shared" && figure.case === name);
    const values = rows.filter(({ metric }) => /^memory of \d+ sessions?$/.test(metric));
    return { name: label, role, values: values.map(({ value }) => value / 1_000) };
  });
  return linesSvg({
    title: "Memory of several sessions over the same eight servers",
    source: `Medians, all processes together (PSS). ${machineOf(page) ?? ""}`,
    axis: "sessions at once",
    unit: "GB",
    step: 1,
    series: series.filter(({ values }) => values.length > 0),
  });
}

const PICTURES: Readonly<Record<string, () => Promise<string>>> = {
  cost: chart,
  ...Object.fromEntries(Object.entries(SCENES).map(([name, scene]) => [name, () => screenOf(scene)])),
  memory,
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PICTURES);
await mkdir(OUT, { recursive: true });
for (const name of wanted) {
  const draw = PICTURES[name];
  if (!draw) throw new Error(`there is no picture ${name}: ${Object.keys(PICTURES).join(", ")}`);
  await writeFile(join(OUT, `${name}.svg`), await draw());
  process.stdout.write(`docs/pictures/${name}.svg\n`);
}
