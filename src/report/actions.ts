/**
 * What `/mcp`, its panel and the shell carry out alike: the request to the worker, and what the person reads of its end. A word
 * of both is a row here, a row in src/ui/command/words.ts and a row in src/cli/words/table.ts, and nothing else: each side
 * carries out the rows of this table by itself.
 */
import type { Runtime } from "../runtime/contract.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { readHubWords, renderHub, stoppedText } from "./hub.ts";
import { serverName } from "./server-name.ts";
import { renderStats } from "./status.ts";

/** Of a sentence of the worker. */
const TEXT_CHARS = 2_000;

export interface Given {
  /** The configured name; empty for an action that takes none. */
  server: string;
  /** What stands behind the word, for an action that takes words; else empty. */
  words: string;
  /** Whether the project's file is to be written. */
  project: boolean;
  /** Cells of a line. */
  columns: number;
}

export interface Done {
  text: string;
  /** What holds all the same, as a sentence of its own. */
  but?: string | undefined;
  /** For `--json`. */
  document: unknown;
}

export interface Action {
  /** `server`: the exact name of any server; `remote`: of one that is no local program; `words`: what `fits` takes. */
  takes: "server" | "remote" | "words" | "nothing";
  fits?(words: string): boolean;
  run(ask: Runtime["ask"], given: Given): Promise<Done>;
}

const switchTo = (enabled: boolean): Action => ({
  takes: "server",
  run: async (ask, { server, project }) => {
    const { file, but } = await ask("setEnabled", { server, enabled, project });
    const text = `${serverName(server)} is ${enabled ? "enabled" : "disabled"} in ${file}.`;
    return { text, but, document: { server, enabled, file, ...(but ? { but } : {}) } };
  },
});

/** For this session, and in no file. */
const switchNow = (on: boolean): Action => ({
  takes: "server",
  run: async (ask, { server }) => {
    const { but } = await ask("setEnabled", { server, enabled: on, project: false, session: true });
    const text = `${serverName(server)} is switched ${on ? "on" : "off"} for this session.`;
    return { text, but, document: { server, on, ...(but ? { but } : {}) } };
  },
});

/** Words of `/mcp` alone: the shell has no session that goes on. */
export const OF_SESSION = { on: switchNow(true), off: switchNow(false) };

const ROWS = {
  enable: switchTo(true),
  disable: switchTo(false),
  logout: {
    takes: "remote",
    run: async (ask, { server }) => {
      const { text } = await ask("signOut", { server });
      return { text: oneLine(text, TEXT_CHARS), document: { server, text } };
    },
  },
  stats: {
    takes: "nothing",
    run: async (ask, { columns }) => {
      const report = await ask("stats", {});
      return { text: renderStats(report, columns), document: report };
    },
  },
  hub: {
    takes: "words",
    fits: (words) => readHubWords(words) !== undefined,
    run: async (ask, { words }) => {
      const { stop } = readHubWords(words) ?? {};
      const { report, stopped = 0 } = await ask("hub", stop ? { stop } : {});
      const hub = report ?? null;
      if (!stop) return { text: renderHub(report), document: { hub } };
      return { text: stoppedText(report, stopped, stop), document: { stopped, hub } };
    },
  },
} satisfies Record<string, Action>;

export type ActionName = keyof typeof ROWS;

export const ACTIONS: Readonly<Record<ActionName, Action>> = ROWS;

export const isAction = (word: string): word is ActionName => Object.hasOwn(ROWS, word);

/** The action's end in one text. */
export const doneText = ({ text, but }: Done): string => (but ? `${text} ${but}` : text);
