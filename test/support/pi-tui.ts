/**
 * The terminal code of the pinned Pi itself: its measure, its own components, its screens in both modes, and lines of
 * every kind to try on them. Must not: repeat a rule of Pi.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensurePi } from "./pi-host.ts";

interface Drawn {
  render(width: number): string[];
  invalidate(): void;
}

interface Screen {
  addChild(component: Drawn): void;
  start(): void;
  stop(): void;
  doRender(): void;
}

interface PiTui {
  visibleWidth(text: string): number;
  Text: new (text: string, paddingX: number, paddingY: number) => Drawn;
  TruncatedText: new (text: string, paddingX: number, paddingY: number) => Drawn;
  Markdown: new (text: string, paddingX: number, paddingY: number, theme: object) => Drawn;
  Box: new (paddingX: number, paddingY: number) => Drawn & { addChild(component: Drawn): void };
  SelectList: new (items: object[], maxVisible: number, theme: object) => Drawn;
  TuiMainScreen: new (terminal: object) => Screen;
  TuiAltScreen: new (terminal: object) => Screen;
  initTheme(name: string, watches: boolean): void;
  getMarkdownTheme(): object;
  getSelectListTheme(): object;
}

async function load(): Promise<PiTui> {
  const { packageDir } = await ensurePi();
  const chunks = join(packageDir, "dist", "bundle", "chunks");
  for (const name of await readdir(chunks)) {
    if (!name.endsWith(".js")) continue;
    if (!(await readFile(join(chunks, name), "utf8")).includes("function visibleWidth(")) continue;
    const tui = (await import(pathToFileURL(join(chunks, name)).href)) as PiTui;
    tui.initTheme("dark", false);
    return tui;
  }
  throw new Error("the pinned Pi has no visibleWidth");
}

let loaded: Promise<PiTui> | undefined;
export const loadPiTui = (): Promise<PiTui> => {
  loaded ??= load();
  return loaded;
};

/** The values of Pi's setting `tuiMode`. */
export const TUI_MODES = ["regular", "fullscreen"] as const;

/** Pi checks only lines that are seen. */
const ROWS = 100;

/** A terminal of a size that shows nothing. */
const terminalOf = (columns: number, rows: number): object =>
  new Proxy({}, { get: (_, key) => (key === "columns" ? columns : key === "rows" ? rows : () => undefined) });

/**
 * Has Pi draw each list of lines behind the one before it, as it draws a change of the screen. Throws as Pi does, for
 * example "Rendered line 3 exceeds terminal width". `margin`: cells that Pi keeps free on both sides.
 */
export async function drawInPi(
  mode: (typeof TUI_MODES)[number],
  pictures: Iterable<readonly string[]>,
  { columns, margin = 0 }: { columns: number; margin?: number },
): Promise<void> {
  const { TuiMainScreen, TuiAltScreen, Box } = await loadPiTui();
  const screen = new (mode === "regular" ? TuiMainScreen : TuiAltScreen)(terminalOf(columns, ROWS));
  let shown: readonly string[] = ["before"];
  const box = new Box(margin, 0);
  box.addChild({ render: () => [...shown], invalidate: () => undefined });
  screen.addChild(box);
  screen.start();
  try {
    screen.doRender();
    for (const lines of pictures) {
      shown = lines;
      screen.doRender();
    }
  } finally {
    screen.stop();
  }
}

/** Another one in each run. A test that fails names it: `WIDTH_SEED=123 npx vitest run ...` has the same texts. */
export const WIDTH_SEED = Number(process.env.WIDTH_SEED ?? Date.now() % 1_000_000);

/** Characters that join, lead or follow others in a way of their own, or that Pi takes out of a message. */
const ODD = [
  ..."*_$`~[(<&|\\#- 1a\u0600\u0605\u06dd\u070f\u08e2\u{110bd}\u0903\u0e33\u0eb3\u200d\u200c\u200b\u00ad\ufe0f\ufe0e",
  ..."\u20e3\u0301\u094d\u0915\u0937\u102b\u0f7f\u1734\u302e\u3164\u115f\u1100\u1161\u11a8\uac00\uff76\uff9e\u65e5",
  ..."🇩🇪🇫👩❤🏽🏴\u{e0067}\u{e007f}",
  ...["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "1️⃣", "❤️", "क्षि", "กำ", "한국"],
];

/** Texts that Pi measured wider than this package did: prefixes of flags, marks without a letter, AM behind a flag, ... */
export const WIDER = [..."\u0600\u0605\u06dd\u070f\u08e2\u{110bd}"]
  .map((sign) => `${sign}🇩`.repeat(60))
  .concat(" \u0903\u0e33".repeat(60), "\u0903\u0e33".repeat(60), "🇩ำ".repeat(60), `a${"\u0903".repeat(300)}`)
  // The first half of such a line, joined to the second one: Pi filled it up before it drew the AM, which then was wider.
  .concat("\u0301\u0eb3\u070f\u{e00f4}&\u0600✮🚹❤️\u{e009c}\u{1ff2c}𒾱\u{37fe8}1\u094d🇩🇪\u302e");

/** Unicode has a block of each kind in these. */
const RANGES = [
  [0x20, 0x7e],
  [0xa1, 0x24ff],
  [0x2500, 0x33ff],
  [0x3400, 0xd7ff],
  [0xe000, 0xffff],
  [0x10000, 0x1ffff],
  [0x1f000, 0x1faff],
  [0x20000, 0x3ffff],
  [0xe0000, 0xe01ff],
] as const;

/** A function that makes random text of so many characters, half of them odd ones. `random`: numbers from 0 to 1. */
export const randomText =
  (random: () => number) =>
  (chars: number): string => {
    const of = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
    const one = (): string => {
      if (random() < 0.5) return of(ODD);
      const [first, last] = of(RANGES);
      return String.fromCodePoint(first + Math.floor(random() * (last - first + 1)));
    };
    return Array.from({ length: chars }, one).join("");
  };
