/**
 * The commands. Owns: which file has which command. What needs no worker is there at once; the others are loaded when they
 * run. A command that is also a word of `/mcp` and answers alike is a row of report/actions.ts and has no file here.
 */
import type { ActionName } from "../../report/actions.ts";
import type { WordName } from "../words/table.ts";
import { completion } from "./completion.ts";
import type { Command } from "./known.ts";
import { search, tool, tools } from "./tools.ts";

type Load = () => Promise<Command>;

const COMMANDS: Readonly<Record<Exclude<WordName, ActionName>, Load> & { [word in ActionName]?: never }> = {
  list: async () => (await import("./list.ts")).list,
  tools: async () => tools,
  tool: async () => tool,
  search: async () => search,
  call: async () => (await import("./call.ts")).call,
  resources: async () => (await import("./offers.ts")).resources,
  read: async () => (await import("./offers.ts")).read,
  prompts: async () => (await import("./offers.ts")).prompts,
  prompt: async () => (await import("./offers.ts")).prompt,
  skills: async () => (await import("./offers.ts")).skills,
  skill: async () => (await import("./offers.ts")).skill,
  complete: async () => (await import("./offers.ts")).complete,
  add: async () => (await import("./setup.ts")).add,
  remove: async () => (await import("./setup.ts")).remove,
  import: async () => (await import("./setup.ts")).takeOver,
  "sign-ins": async () => (await import("./sign-ins.ts")).signIns,
  serve: async () => (await import("./serve.ts")).serve,
  run: async () => (await import("./run.ts")).run,
  login: async () => (await import("./login.ts")).login,
  doctor: async () => (await import("./list.ts")).doctor,
  logs: async () => (await import("./list.ts")).logs,
  completion: async () => completion,
};

export async function loadCommand(word: WordName): Promise<Command> {
  const load: Load | undefined = COMMANDS[word];
  return load ? load() : (await import("./login.ts")).carryOut(word as ActionName);
}
