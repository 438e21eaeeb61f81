/** The subcommands of `/mcp`, and their other names. */

/** Subcommand -> the form of its arguments. */
export const WORDS = {
  status: "",
  tools: "[server]",
  tool: "<name>",
  try: "<name>",
  resources: "[server]",
  reconnect: "[server]",
  auth: "[server]",
  logout: "<server>",
  add: "[name] [command or url]",
  import: "",
  remove: "<server>",
  enable: "<server> [--project]",
  disable: "<server> [--project]",
  edit: "[--project]",
  trust: "",
  stats: "",
  hub: "[stop [name]]",
  doctor: "[server]",
} as const;

/** The subcommand of that name, also of the names that other MCP clients give it; the word itself if there is none. */
export const subcommand = (word: string): string =>
  word === "login" ? "auth" : word === "unauth" ? "logout" : word;

/** The first word, and the whole text after it, because a server's name may hold spaces. */
export function splitWord(args: string): { word: string; rest: string | undefined } {
  const at = args.search(/\s/);
  return at === -1
    ? { word: args, rest: undefined }
    : { word: args.slice(0, at), rest: args.slice(at).trimStart() };
}
