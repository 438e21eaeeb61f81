/** The words of a notice about several servers. Pure. */
import { serverName } from "../report/server-name.ts";
import { oneLine } from "../shared/text/unprintable.ts";

export interface Notice {
  level: "info" | "warning" | "error";
  text: string;
}

const LINES = 10;
const LINE_CHARS = 300;
/** Of a group of equal failures. */
const NAMES = 5;
const NAMES_CHARS = 200;
const START = "MCP server ";

/** A notice and the server that it is about. */
export type ServerNotice = Notice & { server: string };

/** What failed, without the server's name. */
const causeOf = ({ server, text }: ServerNotice): string =>
  text.slice(START.length + serverName(server).length).replace(/^: /, "");

/** The sentences that do not name the server, such as "/mcp reconnect docs tries now": what equal failures share. */
const sharedBy = (notice: ServerNotice): string =>
  causeOf(notice)
    .split(/(?<=[.!?]) /)
    .filter((sentence) => !sentence.split(/[\s:;,."]/).includes(serverName(notice.server)))
    .join(" ");

/** The last line of several holds the cause and the remedy: the middle is left out first. */
function shortened(text: string): string {
  const lines = text.split("\n");
  const isLong = lines.length > 1 && text.length > LINE_CHARS;
  return oneLine(isLong ? `${lines[0]} ${lines.at(-1)}` : text, LINE_CHARS);
}

/** A line for each failure; those of the same words are one. */
function failureLines(all: readonly ServerNotice[]): { text: string; servers: number }[] {
  const groups = new Map<string, ServerNotice[]>();
  for (const notice of all) {
    const shared = sharedBy(notice);
    groups.set(shared, [...(groups.get(shared) ?? []), notice]);
  }
  return [...groups].map(([shared, notices]) => {
    const names = notices.map(({ server }) => serverName(server));
    if (notices.length === 1) {
      return { text: shortened(notices.map(({ text }) => text.slice(START.length)).join()), servers: 1 };
    }
    const more = names.length - NAMES;
    const list = `${names.slice(0, NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    return {
      text: `${names.length} servers (${oneLine(list, NAMES_CHARS)}): ${shortened(shared)}`,
      servers: names.length,
    };
  });
}

/** One notice for each level: a single one as it is, several as one with a line for each failure. */
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
    const groups = failureLines(all);
    const left = groups.slice(LINES).reduce((sum, { servers }) => sum + servers, 0);
    const end = `${left > 0 ? `and ${left} more. ` : ""}/mcp doctor says what to do.`;
    const lines = groups.slice(0, LINES).map(({ text }) => text);
    return [{ level, text: [`${all.length} MCP servers failed:`, ...lines, end].join("\n") }];
  };
  return [...join("error"), ...join("warning")];
}
