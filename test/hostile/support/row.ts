/**
 * Owns: the keys of a row of the hostile suite: one attack, its files and servers, and the steps of the model.
 * Must not: run anything.
 * Called by: the tables in ../rows, run-row.ts, and the bench scenario `hostile`, which runs some rows against other clients.
 */
import type { PiHome } from "../../support/pi-home.ts";
import type { Arena } from "./arena.ts";
import type { Canary } from "./canary.ts";

/**
 * What an attack can break. Each of these is visible from outside:
 * `lives`      Pi runs, answers a further prompt, and ends by itself with exit code 0; no process that Pi started is left
 * `neighbour`  the healthy server answers a call within 2 s, and a server that is added during the attack becomes usable
 * `main`       no turn of the main thread's loop computes 50 ms longer than bare Pi's longest in the same kind of run
 * `runs`       nothing runs: the file `place.canaryFile`, which the attack's program would write, does not exist
 * `leaves`     nothing leaves the machine: the server `place.canary`, which the attack would call, got no request
 * `words`      text that the user and the model get unasked, and results for the model, hold no control characters and are
 *             bounded
 */
export type Check = "lives" | "neighbour" | "main" | "runs" | "leaves" | "words";

/** The checks of each attack by a server. */
export const SERVER_CHECKS: readonly Check[] = ["lives", "neighbour", "main", "words"];
/** The checks of each attack by the files of a clone. */
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
  /** A file with a line for each message that the attacking server received and for each step of its attack. */
  seenFile: string;
  seen(): Promise<string[]>;
  /** Returns the mcp.json entry of a program in ../servers. */
  hostile(program: string, ...args: string[]): Entry;
  /** Starts a program in ../servers/http and resolves with its mcp.json entry. The program ends with the place. */
  http(program: string, ...args: string[]): Promise<{ url: string }>;
  /** Does the same in one program for all attacks that use it: it begins one more server for each line of its stdin. */
  sharedHttp(program: string, ...args: string[]): Promise<{ url: string }>;
  /** Gives the user's npm a registry with one package, a healthy server. Resolves with the server's mcp.json entry. */
  npx(): Promise<Entry>;
  /** Resolves with the absolute path of a file in the home. The file is written if `content` is given. */
  file(name: string, content?: unknown): Promise<string>;
}

export interface Call {
  tool: string;
  args?: Record<string, unknown>;
}

export interface Story {
  place: Place;
  /**
   * Starts Pi in the project, or in `cwd`: a Pi of its own if another one of the story runs. `after`: one that ends when
   * this one starts; this costs one session less than `end`.
   */
  start(options?: { cwd?: string; after?: Arena }): Promise<Arena>;
  /** Ends a Pi before the story is over, so that no session runs while files change. */
  end(arena: Arena): Promise<void>;
}

export interface Row {
  /** A unique phrase that says what the attacker does. */
  name: string;
  /** Id of the finding in the security notes; "own" for an attack without a finding. */
  finding: string;
  /** What the attack can break. */
  checks: readonly Check[];
  /**
   * `home` gives the row a home and a session of its own, with the attack in place before the session starts; the Pi was
   * used by other rows before. `process` gives it a Pi of its own as well. Other rows share one session.
   */
  alone?: "home" | "process";
  /**
   * False keeps the attacks of other rows out of the configuration while this one is there: this attack takes much
   * processor time or memory as long as it is there, or the row counts what happens in that time.
   */
  beside?: false;
  /** True if another row, or a test of the rule itself, makes the same attack: this one runs under `ALL_ROWS=1`. */
  thorough?: true;
  /** The attacking server, in the user's mcp.json. */
  server?: (place: Place) => Entry | Promise<Entry>;
  /** More entries for the user's mcp.json. */
  servers?: (place: Place) => Record<string, Entry> | Promise<Record<string, Entry>>;
  /** Files of the clone, path -> content. This key and the following ones up to `startsBefore` need `alone`. */
  files?: (place: Place) => Record<string, unknown>;
  /** Puts links, pipes and folders into the clone. */
  lay?: (place: Place) => Promise<void>;
  /** `settings` of mcp.json; a function is asked after the servers have started. */
  settings?: Record<string, unknown> | ((place: Place) => Promise<Record<string, unknown>>);
  piSettings?: Record<string, unknown>;
  trusted?: boolean;
  /** Environment of Pi. */
  env?: (place: Place) => Record<string, string>;
  /** Number of earlier starts in the same home; each lasts until the tools are known. */
  startsBefore?: number;
  /** The line that the server records when the attack has taken place; the default is `tools/list`. */
  happened?: string;
  /**
   * CPU time by which a turn of main's loop may exceed bare Pi's, for attacks that also slow Pi itself; milliseconds.
   */
  mainMs?: number;
  /**
   * Time during which the healthy server is called while the attack runs, also beside the model's calls; milliseconds.
   */
  watchMs?: number;
  /** True if the extension may stop the attack before `happened`. */
  mayBeStopped?: boolean;
  /** Tools of the attacking server that the model loads and calls, one after the other. */
  calls?: readonly Call[];
  /** Further steps after the calls. */
  act?: (arena: Arena) => Promise<void>;
  /**
   * Several starts of Pi in the same home, in place of one start with calls and `act`. Resolves with a text for each
   * problem. After the story each Pi is ended and checked.
   */
  story?: (story: Story) => Promise<string[]>;
  /** True if `act` and `check` read nothing that only this extension has; the bench then runs them for every client. */
  anyClient?: boolean;
  /** Runs after all steps, while Pi still runs. Returns a text for each problem. */
  check?: (arena: Arena) => string[] | Promise<string[]>;
}
