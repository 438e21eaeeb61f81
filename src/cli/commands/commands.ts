/**
 * The commands. Owns: which file has which command. What needs no worker is there at once; the others are loaded when
 * they run. Must not: read the command line. Called by: main.
 */
import type { WordName } from "../words/words.ts";
import { completion } from "./completion.ts";
import type { Command } from "./context.ts";
import { search } from "./search.ts";
import { tool } from "./tool.ts";
import { tools } from "./tools.ts";

export { candidates } from "./completion.ts";
export type { Command, Context } from "./context.ts";

const COMMANDS: Readonly<Record<WordName, () => Promise<Command>>> = {
  list: async () => (await import("./list.ts")).list,
  tools: async () => tools,
  tool: async () => tool,
  search: async () => search,
  call: async () => (await import("./call.ts")).call,
  resources: async () => (await import("./resources.ts")).resources,
  read: async () => (await import("./resources.ts")).read,
  prompts: async () => (await import("./prompts.ts")).prompts,
  add: async () => (await import("./setup.ts")).add,
  remove: async () => (await import("./setup.ts")).remove,
  import: async () => (await import("./import.ts")).takeOver,
  enable: async () => (await import("./setup.ts")).enable,
  disable: async () => (await import("./setup.ts")).disable,
  login: async () => (await import("./login.ts")).login,
  logout: async () => (await import("./login.ts")).logout,
  doctor: async () => (await import("./doctor.ts")).doctor,
  stats: async () => (await import("./doctor.ts")).stats,
  logs: async () => (await import("./logs.ts")).logs,
  completion: async () => completion,
};

export const loadCommand = (word: WordName): Promise<Command> => COMMANDS[word]();
