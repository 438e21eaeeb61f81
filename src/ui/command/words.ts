/** The subcommands of `/mcp`. */

/** Subcommand -> the form of its arguments. */
export const WORDS = {
  status: "",
  tools: "[server]",
  reconnect: "[server]",
  enable: "<server> [--project]",
  disable: "<server> [--project]",
  edit: "[--project]",
  trust: "",
  stats: "",
} as const;

/** The first word, and the whole text after it, because a server's name may hold spaces. */
export function splitWord(args: string): { word: string; rest: string | undefined } {
  const at = args.search(/\s/);
  return at === -1
    ? { word: args, rest: undefined }
    : { word: args.slice(0, at), rest: args.slice(at).trimStart() };
}
