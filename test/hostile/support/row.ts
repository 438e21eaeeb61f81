/**
 * Owns: what a row of the hostile suite says: one attack, what of it is laid where, and what the model does.
 * Must not: run anything.
 * Called by: the tables in ../rows, run-row.ts, and the bench scenario `hostile`, which runs some rows against other clients.
 */
import type { PiHome } from "../../support/pi-home.ts";
import type { Arena } from "./arena.ts";
import type { Canary } from "./canary.ts";

/**
 * What an attack can break, as far as it can be seen from outside:
 * `lives`      Pi runs, answers a further prompt, and ends by itself with exit code 0; nothing that it started is left
 * `neighbour`  the healthy server answers a call within 2 s, and a server that is new beside the attack becomes usable
 * `main`       no turn of the main thread's loop computes 50 ms longer than bare Pi's longest in the same kind of run
 * `runs`       nothing runs: the file `place.canaryFile`, which the attack's program would write, is not there
 * `leaves`     nothing leaves the machine: the server `place.canary`, which the attack would call, got no request
 * `words`      what the user and the model are shown unasked holds no control characters and is not endless
 */
export type Check = "lives" | "neighbour" | "main" | "runs" | "leaves" | "words";

/** What each attack by a server can break. */
export const SERVER_CHECKS: readonly Check[] = ["lives", "neighbour", "main", "words"];
/** What each attack by the files of a clone can break. */
export const CLONE_CHECKS: readonly Check[] = [...SERVER_CHECKS, "runs", "leaves"];

export interface Problem {
  check: Check | "row";
  text: string;
}

export type Entry = Record<string, unknown>;

/** One attack's folders, servers and canaries. */
export interface Place {
  home: PiHome;
  /** Name of the attacking server in mcp.json. */
  server: string;
  canaryFile: string;
  canary: Canary;
  /** Gets a line for each message that the attacking server received and for each deed. */
  seenFile: string;
  seen(): Promise<string[]>;
  /** Entry of a program in ../servers. */
  hostile(program: string, ...args: string[]): Entry;
  /** Starts a program in ../servers/http; answers its entry. It ends with the place. */
  http(program: string, ...args: string[]): Promise<{ url: string }>;
  /** The user's npm knows one package, a healthy server; answers its entry. */
  npx(): Promise<Entry>;
  /** Absolute path of a file of the home that is no part of the project; written if there is content. */
  file(name: string, content?: unknown): Promise<string>;
}

export interface Call {
  tool: string;
  args?: Record<string, unknown>;
}

export interface Story {
  place: Place;
  /** Also in another working directory. */
  start(options?: { cwd?: string }): Promise<Arena>;
  /** Ends it before the story is over. */
  end(arena: Arena): Promise<void>;
}

export interface Row {
  /** What the attacker does; unique. */
  name: string;
  /** Id of the finding that it belongs to; "own" for an idea without one. */
  finding: string;
  /** What it can break. */
  checks: readonly Check[];
  /** It needs a Pi of its own, in which all lies ready before the start; else it shares one with other rows. */
  alone?: boolean;
  /** The attacking server, in the user's mcp.json. */
  server?: (place: Place) => Entry | Promise<Entry>;
  /** More entries for the user's mcp.json. */
  servers?: (place: Place) => Record<string, Entry> | Promise<Record<string, Entry>>;
  /** Files of the clone, path -> content. Only with `alone`, as all that follows up to `startsBefore`. */
  files?: (place: Place) => Record<string, unknown>;
  /** What is no plain file: links, pipes, folders. */
  lay?: (place: Place) => Promise<void>;
  /** `settings` of mcp.json. */
  settings?: Record<string, unknown>;
  piSettings?: Record<string, unknown>;
  trusted?: boolean;
  /** Environment of Pi. */
  env?: (place: Place) => Record<string, string>;
  /** Earlier starts in the same home, each until the tools are known. */
  startsBefore?: number;
  /** The attack has taken place when the server has written this line; without it when it was asked for its tools. */
  happened?: string;
  /** What a turn of main's loop may compute beyond bare Pi's, where Pi's own part grows with the attack; milliseconds. */
  mainMs?: number;
  /** The healthy server is called for so long while the attack goes on, also beside the calls of the model; milliseconds. */
  watchMs?: number;
  /** It does not even get so far, which is right. */
  mayBeStopped?: boolean;
  /** The model loads these tools of the attacking server, then calls them, one after the other. */
  calls?: readonly Call[];
  /** What else is done, after the calls. */
  act?: (arena: Arena) => Promise<void>;
  /**
   * In place of all of the above that happens after the start: several starts in the same home. Answers what does not
   * hold. Each Pi that it opens is ended and looked at after it.
   */
  story?: (story: Story) => Promise<string[]>;
  /** `act` and `check` look at nothing that only this extension has, so that the bench can take them. */
  anyClient?: boolean;
  /** What else must hold: a text for each thing that does not. After all that was done; Pi still runs. */
  check?: (arena: Arena) => string[] | Promise<string[]>;
}
