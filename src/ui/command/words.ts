/** The subcommands of `/mcp`, what each is for, and their other names. */

/** Subcommand -> the form of its arguments. */
export const WORDS = {
  status: "",
  tools: "[server]",
  tool: "<name>",
  try: "<name>",
  resources: "[server]",
  skills: "[server]",
  reconnect: "[server]",
  auth: "[server]",
  logout: "<server>",
  add: "[name] [command or url]",
  import: "",
  remove: "<server>",
  on: "<server>",
  off: "<server>",
  enable: "<server> [--project]",
  disable: "<server> [--project]",
  edit: "[--project]",
  trust: "",
  stats: "",
  hub: "[stop [name]]",
  logs: "[server]",
  doctor: "[server]",
  help: "",
} as const;

/** Subcommand -> what it does, for the help and the completion. */
export const ABOUT: Readonly<Record<keyof typeof WORDS, string>> = {
  status: "each server with its state, tools and last error",
  tools: "the tools of all servers, or of one",
  tool: "one tool with its parameters and schema",
  try: "call a tool yourself, with a form of its arguments",
  resources: "the resources; @server:uri in a message hands one to the model",
  skills: "the skills that servers offer, and why some cannot be loaded",
  reconnect: "connect again, all servers or one",
  auth: "sign in to a server, or say where its key is",
  logout: "sign out of a server",
  add: "add a server; alone it asks step by step",
  import: "import servers from Cursor, Claude Code, VS Code and others",
  remove: "take a server out of its file",
  on: "switch a server on for this session",
  off: "switch a server off for this session",
  enable: "switch a server on, in its file",
  disable: "switch a server off, in its file",
  edit: "edit mcp.json; saving applies it",
  trust: "ask again about servers of the project",
  stats: "calls, errors, bytes and times of each tool",
  hub: "servers that sessions share, or end them",
  logs: "the last lines of the log, of all servers or of one",
  doctor: "what is wrong, and what to do",
  help: "this list",
};

/** The words that switch a server -> whether it is on before. */
export const SWITCHES: Readonly<Record<string, boolean>> = {
  on: false,
  enable: false,
  off: true,
  disable: true,
};

/** The subcommand of that name, also of the names that other MCP clients give it; the word itself if there is none. */
export const subcommand = (word: string): string =>
  word === "login" ? "auth" : word === "unauth" ? "logout" : word === "log" ? "logs" : word;

/** The first word, and the whole text after it, because a server's name may hold spaces. */
export function splitWord(args: string): { word: string; rest: string | undefined } {
  const at = args.search(/\s/);
  return at === -1
    ? { word: args, rest: undefined }
    : { word: args.slice(0, at), rest: args.slice(at).trimStart() };
}
