/**
 * Owns: `npm run pictures [name ...]`: the pictures of the documentation. Screens are those of the real Pi with the packed
 * extension, real servers and a scripted model, in tmux; the charts are made from bench/figures.
 * Must not: need a key, or a network beyond the first fetch of Pi.
 * To add a screen: a scene in pictures/scenes.ts. Called by: people, after a change of what a screen shows.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { packedExtension } from "../bench/support/build.ts";
import { formatNumber } from "../bench/support/stats.ts";
import { startModel } from "../test/support/model.ts";
import { createHome, type PiHome } from "../test/support/pi-home.ts";
import { openTerminal } from "../test/support/terminal.ts";
import { openTmux, untilShown } from "../test/support/tmux.ts";
import { chartSvg, type Group } from "./pictures/chart.ts";
import { figureOf, machineOf, readFigures } from "./pictures/figures.ts";
import { linesSvg, type Series } from "./pictures/lines.ts";
import { SCENES, type Scene } from "./pictures/scenes.ts";
import { screenSvg } from "./pictures/screen-svg.ts";

const ROOT = join(import.meta.dirname, "..");
const OUT = join(ROOT, "docs", "pictures");
/** The sitting in which all clients were measured in turn while nothing else ran. */
const FIGURES = join(ROOT, "bench", "figures", "2026-11-26-peers.md");
/** What `npm run -s bench -- shared --markdown` writes. */
const SHARED_FIGURES = /^[\d-]+-shared\.md$/;

/** Programs of the servers, and of Node. */
const PROGRAMS = join(ROOT, "node_modules", ".bin");
const SYSTEM = ["/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
const SIZE = { columns: 96, rows: 44 };
/** What a home is called in a picture. */
const HOME = "/home/me";

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' sequences begin with this character.
const plain = (line: string): string => line.replaceAll(/\u001b\[[\d;:]*[A-Za-z]/g, "").trimEnd();

/** The captured lines from the scene's first line to its last one. */
function cropped(captured: string, { from, to }: Scene): string {
  const lines = captured.split("\n");
  const first = lines.findIndex((line) => (from ? from.test(plain(line)) : plain(line) !== ""));
  if (first === -1) throw new Error(`the screen has no line ${from}:\n${lines.map(plain).join("\n")}`);
  const end = to ? lines.findIndex((line, i) => i > first && to.test(plain(line))) : -1;
  const shown = lines.slice(first, end === -1 ? undefined : end);
  return shown.slice(0, shown.findLastIndex((line) => plain(line) !== "") + 1).join("\n");
}

/** Asks all servers once, so that the tools are known at the next start, as they are to a person who has used the servers. */
async function learnTools(home: PiHome, entry: string, env: Record<string, string>): Promise<void> {
  const list = spawn(process.execPath, [commandOf(entry), "list"], {
    cwd: home.cwd,
    env: home.env(env),
    stdio: "ignore",
  });
  const [code] = await once(list, "close");
  // 3: a server cannot be reached, as some scenes want it.
  if (code !== 0 && code !== 3) throw new Error(`list ended with ${code}`);
}

/** The packed command beside the extension. */
const commandOf = (entry: string): string => join(dirname(entry), "dist", "cli.js");

/** Pi, or a shell, in a terminal. */
async function openStage(scene: Scene, home: PiHome, entry: string, env: Record<string, string>) {
  if (scene.program !== "shell") {
    const model = await startModel(scene.script ?? []);
    const terminal = await openTerminal({ home, model, extension: entry, ...SIZE, env });
    const close = (): Promise<unknown> => Promise.all([terminal.close(), model.close()]);
    return { ...terminal, close };
  }
  const bin = join(home.dir, "bin");
  await mkdir(bin);
  await symlink(commandOf(entry), join(bin, "pi-mcp-threads"));
  const shell = { ...home.env({ LANG: "C.UTF-8", TMUX: undefined, ...env }), PS1: "$ " };
  const tmux = await openTmux({
    ...SIZE,
    cwd: home.cwd,
    env: { ...shell, PATH: `${bin}${delimiter}${env.PATH}` },
    program: ["bash", "--norc"],
  });
  const screen = async (): Promise<string[]> => (await tmux.run("capture-pane", "-p")).join("\n").split("\n");
  const send = (...keys: string[]): Promise<unknown> => tmux.run("send-keys", ...keys);
  return {
    until: (expected: RegExp) => untilShown(screen, expected),
    type: (text: string) => send("-l", text),
    press: (key: string) => send(key),
    prompt: async (text: string) => {
      await send("-l", text);
      await send("Enter");
    },
    colours: async () => (await tmux.run("capture-pane", "-p", "-e", "-N")).join("\n"),
    close: () => tmux.kill(),
  };
}

async function screenOf(scene: Scene): Promise<string> {
  const { entry } = await packedExtension();
  const home = await createHome({
    ...(scene.mcp ? { mcp: scene.mcp } : {}),
    settings: { theme: "dark" },
    files: { "README.md": "# A project\n", "src/main.ts": "export {};\n", ...scene.files },
  });
  try {
    await writeBelow(home.dir, scene.homeFiles ?? {});
    const env = { COLORTERM: "truecolor", PATH: `${PROGRAMS}${delimiter}${SYSTEM}` };
    if (!scene.isFirstStart) await learnTools(home, entry, env);
    const stage = await openStage(scene, home, entry, env);
    try {
      const taken: string[] = [];
      const keep = async (): Promise<void> => {
        const shown = (await stage.colours()).replaceAll(home.dir, HOME).replaceAll(PROGRAMS, `${HOME}/bin`);
        taken.push(cropped(shown, scene));
      };
      await scene.play({ ...stage, keep });
      await keep();
      return screenSvg(taken.join("\n\n"), { title: scene.title, columns: SIZE.columns });
    } finally {
      await stage.close();
    }
  } finally {
    await home.dispose();
  }
}

async function writeBelow(folder: string, files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(content));
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
