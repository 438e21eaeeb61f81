/**
 * The commands. Owns: which file has which command. Each is loaded when it runs, so that `search` loads no worker. Must
 * not: read the command line. Called by: main.
 */
import type { WordName } from "../words/words.ts";
import type { Command } from "./context.ts";

export type { Command, Context } from "./context.ts";

const COMMANDS: Readonly<Record<WordName, () => Promise<Command>>> = {
  list: async () => (await import("./list.ts")).list,
  tools: async () => (await import("./tools.ts")).tools,
  tool: async () => (await import("./tool.ts")).tool,
  search: async () => (await import("./search.ts")).search,
  call: async () => (await import("./call.ts")).call,
};

export const loadCommand = (word: WordName): Promise<Command> => COMMANDS[word]();
