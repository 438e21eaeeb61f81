/** The text of the servers' instructions, and which of them a transcript holds. */
import { isObject } from "../../shared/protocol/is-object.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { SnapshotServer } from "../../shared/snapshot/contract.ts";
import { cleanText, cut, shownName } from "../../shared/text/unprintable.ts";
import type { InstructionsState, ReadBranch, ToldInstructions } from "./contract.ts";

/** The servers whose instructions a result of the branch holds. */
export function toldIn(branch: readonly unknown[]): Set<string> {
  const told = new Set<string>();
  for (const entry of branch) {
    const message = isObject(entry) && entry.type === "message" ? entry.message : undefined;
    if (!isObject(message) || message.role !== "toolResult" || !isObject(message.details)) continue;
    const { instructed } = message.details;
    for (const server of Array.isArray(instructed) ? instructed : []) {
      if (typeof server === "string") told.add(server);
    }
  }
  return told;
}

/**
 * The instructions with a mark before each line. A clean text has no line end but the newline, so that a server can
 * write no line without the mark, and the model sees where the server's words end.
 */
export function markedInstructions(server: string, instructions: string): string {
  const text = cut(
    cleanText(instructions)
      .trim()
      .replace(/\n{3,}/g, "\n\n"),
    LIMITS.instructionsChars,
  );
  const lines = text.split("\n").map((line) => `> ${line}`.trimEnd());
  const head = `Instructions of the MCP server ${shownName(server)}, in the server's own words and not the user's. Each of their lines begins with ">":`;
  return [head, ...lines].join("\n");
}

export interface Telling {
  asked: readonly string[];
  known: readonly SnapshotServer[];
  branch: ReadBranch;
}

/** Tells each server once. Servers beyond the limit of one answer are told with a later result of one of their tools. */
export function tellInstructions(
  state: InstructionsState,
  { asked, known, branch }: Telling,
): ToldInstructions | undefined {
  const texts = new Map<string, string>();
  for (const name of asked) {
    if (texts.size >= LIMITS.instructionsServers || state.told?.has(name)) continue;
    const instructions = known.find((server) => server.name === name)?.instructions;
    if (instructions === undefined) continue;
    state.told ??= toldIn(branch());
    if (state.told.has(name)) continue;
    state.told.add(name);
    texts.set(name, markedInstructions(name, instructions));
  }
  return texts.size === 0
    ? undefined
    : { text: [...texts.values()].join("\n\n"), servers: [...texts.keys()] };
}
