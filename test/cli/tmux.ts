/** Owns: the packed command in a real terminal of a given size (tmux with its own server), and its screen as text. */
import { onCleanup } from "../support/cleanup.ts";
import type { PiHome } from "../support/pi-home.ts";
import { openTmux, untilShown } from "../support/tmux.ts";
import { CLI } from "./support.ts";

export interface CommandTerminal {
  /** Runs the command; its exit code follows on a line `exit <code>`. `env`: assignments before it. */
  start(args: string, env?: string): Promise<void>;
  /** Types the text, and Enter. */
  type(text: string): Promise<void>;
  write(text: string): Promise<void>;
  press(key: string): Promise<void>;
  /** Waits until the screen matches, then answers its text. */
  until(expected: RegExp): Promise<string>;
  /** The screen with its colours as escape sequences. */
  colours(): Promise<string>;
}

/** `program`: a shell without its files of settings. */
export async function openShell(
  home: PiHome,
  columns = 100,
  { program = ["bash", "--norc"], path }: { program?: readonly string[]; path?: string | undefined } = {},
): Promise<CommandTerminal> {
  const env = home.env({ LANG: "C.UTF-8", TMUX: undefined, ...(path === undefined ? {} : { PATH: path }) });
  const tmux = await openTmux({ columns, rows: 40, cwd: home.cwd, env, program });
  onCleanup(() => tmux.kill());
  const screen = async (): Promise<string[]> =>
    (await tmux.run("capture-pane", "-p", "-J")).join("\n").trimEnd().split("\n");
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
    write: async (text) => {
      await tmux.run("send-keys", "-l", text);
    },
    press: async (key) => {
      await tmux.run("send-keys", key);
    },
    until: async (expected) => (await untilShown(screen, expected)).join("\n"),
    colours: async () => (await tmux.run("capture-pane", "-p", "-e")).join("\n"),
  };
}
