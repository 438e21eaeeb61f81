/**
 * Owns: the real Pi in a real terminal of a given size (tmux with its own server), its screen as text, and its end.
 * Must not: interpret the screen.
 * Called by: end-to-end tests of the text that a person sees.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ScriptedModel } from "./model.ts";
import { type PiHome, STUB_MODEL, STUB_PROVIDER } from "./pi-home.ts";
import { ensurePi } from "./pi-host.ts";
import { ROOM_AT_START } from "./pi-process.ts";
import { openTmux, untilShown } from "./tmux.ts";

export interface TerminalOptions {
  home: PiHome;
  model: ScriptedModel;
  /** Paths for `-e`; without it, Pi loads what its settings name. */
  extension?: string | readonly string[];
  columns: number;
  rows?: number;
  /** More arguments of Pi, for example `["--continue"]`. */
  args?: readonly string[];
  /** More variables, for example `{ COLORTERM: "truecolor" }`. */
  env?: Readonly<Record<string, string>>;
}

export interface Terminal {
  /** The screen's lines, without colours. */
  screen(): Promise<string[]>;
  /** The screen with its colours as escape sequences, and with the spaces at the ends of its lines. */
  colours(): Promise<string>;
  /** The terminal's title. */
  title(): Promise<string>;
  /** Waits until the screen matches, then answers its lines. After 30 s it throws an error with the screen's text. */
  until(expected: RegExp): Promise<string[]>;
  /** The same, then a pause, without which a dialog right behind an answer takes no key. */
  untilRead(expected: RegExp): Promise<string[]>;
  /** Types the text and presses Enter. */
  prompt(text: string): Promise<void>;
  /** Types the text. */
  type(text: string): Promise<void>;
  /** Presses one key, by its name in tmux, for example `C-o`. */
  press(key: string): Promise<void>;
  /** Without `rows`, their number stays. */
  resize(columns: number, rows?: number): Promise<void>;
  /** Begins another session of the same Pi in a terminal of this width: once, because its notice tells them apart. */
  startAnew(columns: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Pi's editor with its line, whole, and the folder below it. That a page is not seen says nothing: Pi draws from the top, and a
 * screen that is read while it is drawn lacks its end.
 */
export const EDITOR = /^─{10,}\n.*\n─{10,}\n~/m;

/** Longer than the pause of src/ui/typing.ts. */
const READ_MS = 1_000;

/** Resolves once Pi shows its prompt. */
export async function openTerminal(options: TerminalOptions): Promise<Terminal> {
  const { home, model, extension, columns, rows = 50 } = options;
  const { cli } = await ensurePi();
  await home.useModel(model.url);
  const env = home.env({ LANG: "C.UTF-8", TMUX: undefined, ...options.env });
  const pi = [process.execPath, ...ROOM_AT_START, cli, "--provider", STUB_PROVIDER, "--model", STUB_MODEL];
  pi.push(...[extension ?? []].flat().flatMap((path) => ["-e", path]));
  const program = [...pi, ...(options.args ?? [])];
  const tmux = await openTmux({ columns, rows, cwd: home.cwd, env, program });

  const screen = async (): Promise<string[]> =>
    (await tmux.run("capture-pane", "-p")).map((line) => line.trimEnd());
  let sent = "";
  /** While Pi starts it takes no prompt: it says so and leaves the text in its editor. */
  const isRefused = (lines: string[]): boolean =>
    sent !== "" &&
    lines.some((line) => line.includes("Startup is still in progress")) &&
    lines.some(
      (line, at) => line === sent && lines[at - 1]?.startsWith("─") && lines[at + 1]?.startsWith("─"),
    );
  const until = (expected: RegExp): Promise<string[]> =>
    untilShown(async () => {
      const lines = await screen();
      if (isRefused(lines)) await tmux.run("send-keys", "Enter");
      return lines;
    }, expected);
  const prompt = async (text: string): Promise<void> => {
    sent = text;
    await tmux.run("send-keys", "-l", text);
    await tmux.run("send-keys", "Enter");
  };
  let height = rows;
  const resize = async (width: number, newHeight = height): Promise<void> => {
    height = newHeight;
    await tmux.run("resize-window", "-x", String(width), "-y", String(height));
  };
  await until(new RegExp(STUB_MODEL));
  return {
    screen,
    colours: async () => (await tmux.run("capture-pane", "-p", "-e", "-N")).join("\n"),
    title: async () => (await tmux.run("display-message", "-p", "#{pane_title}")).join("\n"),
    until,
    untilRead: async (expected) => {
      const lines = await until(expected);
      await sleep(READ_MS);
      return lines;
    },
    prompt,
    type: async (text) => {
      await tmux.run("send-keys", "-l", text);
    },
    press: async (key) => {
      await tmux.run("send-keys", key);
    },
    resize,
    startAnew: async (width) => {
      await resize(width);
      await until(new RegExp(`^─{${width}}$`, "m"));
      await prompt("/new");
      await until(/New session started/);
    },
    close: () => tmux.kill(),
  };
}
