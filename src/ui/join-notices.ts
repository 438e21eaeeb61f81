/** The words of a notice about several servers. Loaded when several fail at about the same time. Pure. */
import { serverName } from "../report/server-name.ts";
import { oneLine } from "../shared/text/unprintable.ts";

export interface Notice {
  level: "info" | "warning" | "error";
  text: string;
}

const LINES = 10;
const LINE_CHARS = 300;
const START = "MCP server ";

/** A notice and the server that it is about. */
export type ServerNotice = Notice & { server: string };

/** One notice for each level: a single one as it is, several as one with a line for each server. */
export function joinNotices(pending: readonly ServerNotice[]): Notice[] {
  const join = (level: Notice["level"]): Notice[] => {
    const all = pending.filter((one) => one.level === level);
    const [first] = all;
    if (!first) return [];
    if (all.length === 1) return [{ level, text: first.text }];
    const shown = all.slice(0, LINES);
    const more = all.length - shown.length;
    if (level === "warning") {
      const names = [...shown.map(({ server }) => serverName(server)), ...(more > 0 ? [`${more} more`] : [])];
      return [
        { level, text: `${all.length} MCP servers need a sign-in: ${names.join(", ")}. /mcp auth signs in.` },
      ];
    }
    const lines = shown.map(({ text }) => oneLine(text.slice(START.length), LINE_CHARS));
    const end = `${more > 0 ? `and ${more} more. ` : ""}/mcp doctor says what to do.`;
    return [{ level, text: [`${all.length} MCP servers failed:`, ...lines, end].join("\n") }];
  };
  return [...join("error"), ...join("warning")];
}
