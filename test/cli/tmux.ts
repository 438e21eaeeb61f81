/** Owns: the packed command in a real terminal of a given size (tmux with its own server), and its screen as text. */
import { execFile } from "node:child_process";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { onCleanup } from "../support/cleanup.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI } from "./support.ts";

const run = promisify(execFile);
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
  const tmux = async (...args: string[]): Promise<string> => {
    const { stdout } = await run("tmux", ["-u", "-L", socket, "-f", "/dev/null", ...args], { env });
    return stdout;
  };
  await tmux("new-session", "-d", "-x", String(columns), "-y", "40", "-c", home.cwd, "bash", "--norc");
  onCleanup(() => tmux("kill-server").catch(() => undefined));
  const screen = async (): Promise<string> => (await tmux("capture-pane", "-p", "-J")).trimEnd();
  return {
    start: async (args, before = "") => {
      // Nothing of the command before may pass for what this one shows.
      await tmux("send-keys", "-R");
      const command = `clear; ${before} '${process.execPath}' '${CLI}' ${args}; echo "exit $?"`;
      await tmux("send-keys", "-l", command);
      await tmux("send-keys", "Enter");
    },
    type: async (text) => {
      await tmux("send-keys", "-l", text);
      await tmux("send-keys", "Enter");
    },
    press: async (key) => {
      await tmux("send-keys", key);
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
    colours: () => tmux("capture-pane", "-p", "-e"),
  };
}
