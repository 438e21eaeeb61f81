/** Owns: the packed command in a real terminal of a given size (tmux with its own server), and its screen as text. */
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onCleanup } from "../support/cleanup.ts";
import type { PiHome } from "../support/pi-home.ts";
import { openTmux } from "../support/tmux.ts";
import { CLI } from "./support.ts";

const PATIENCE_MS = 30_000;

export interface CommandTerminal {
  /** Runs the command; its exit code follows on a line `exit <code>`. `env`: assignments before it. */
  start(args: string, env?: string): Promise<void>;
  type(text: string): Promise<void>;
  press(key: string): Promise<void>;
  /** Waits until the screen matches, then answers its text. */
  until(expected: RegExp): Promise<string>;
  /** The screen with its colours as escape sequences. */
  colours(): Promise<string>;
}

export async function openShell(home: PiHome, columns = 100): Promise<CommandTerminal> {
  const socket = `${basename(home.dir)}-${Math.random().toString(36).slice(2, 8)}`;
  const env = home.env({ LANG: "C.UTF-8", TMUX: undefined });
  const program = ["bash", "--norc"];
  const tmux = await openTmux({ socket, columns, rows: 40, cwd: home.cwd, env, program });
  onCleanup(() => tmux.kill());
  const screen = async (): Promise<string> =>
    (await tmux.run("capture-pane", "-p", "-J")).join("\n").trimEnd();
  return {
    start: async (args, before = "") => {
      // Nothing of the command before may pass for what this one shows.
      await tmux.run("send-keys", "-R");
      const command = `clear; ${before} '${process.execPath}' '${CLI}' ${args}; echo "exit $?"`;
      await tmux.run("send-keys", "-l", command);
      await tmux.run("send-keys", "Enter");
    },
    type: async (text) => {
      await tmux.run("send-keys", "-l", text);
      await tmux.run("send-keys", "Enter");
    },
    press: async (key) => {
      await tmux.run("send-keys", key);
    },
    until: async (expected) => {
      const endsAt = performance.now() + PATIENCE_MS;
      for (;;) {
        const text = await screen();
        if (expected.test(text)) return text;
        if (performance.now() > endsAt) throw new Error(`the screen never showed ${expected}:\n${text}`);
        await sleep(50);
      }
    },
    colours: async () => (await tmux.run("capture-pane", "-p", "-e")).join("\n"),
  };
}
