/**
 * The commands. Owns: which file has which command. What needs no worker is there at once; the others are loaded when
 * they run. Must not: read the command line. Called by: main.
 */
import type { WordName } from "../words/words.ts";
import { completion } from "./completion.ts";
import type { Command } from "./known.ts";
import { search, tool, tools } from "./tools.ts";

export { candidates } from "./completion.ts";
export type { Command, Context } from "./known.ts";

const COMMANDS: Readonly<Record<WordName, () => Promise<Command>>> = {
  list: async () => (await import("./list.ts")).list,
  tools: async () => tools,
  tool: async () => tool,
  search: async () => search,
  call: async () => (await import("./call.ts")).call,
  resources: async () => (await import("./list.ts")).resources,
  read: async () => (await import("./list.ts")).read,
  prompts: async () => (await import("./list.ts")).prompts,
  add: async () => (await import("./setup.ts")).add,
  remove: async () => (await import("./setup.ts")).remove,
  import: async () => (await import("./setup.ts")).takeOver,
  enable: async () => (await import("./setup.ts")).enable,
  disable: async () => (await import("./setup.ts")).disable,
  login: async () => (await import("./login.ts")).login,
  logout: async () => (await import("./login.ts")).logout,
  doctor: async () => (await import("./list.ts")).doctor,
  stats: async () => (await import("./list.ts")).stats,
  logs: async () => (await import("./list.ts")).logs,
  completion: async () => completion,
};

export const loadCommand = (word: WordName): Promise<Command> => COMMANDS[word]();
