/** Lists the tools of a server over all pages. A malformed tool costs the server only that tool. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CachedTool, normalizeTool, unboundedTools } from "../../shared/listed.ts";
import { createReader, inTurn } from "../../shared/pace/turns.ts";
import { createKeptList } from "./kept-list.ts";
import { listPages, type SendRequest } from "./list-pages.ts";

const NOTED_TOOLS = 20;
/** Tools between two looks at the time: the largest takes as long as a hundred usual ones. */
const TOOLS_A_STEP = 10;

export async function listTools(
  send: SendRequest,
  { limitMs, signal, onNote }: { limitMs: number; signal: AbortSignal; onNote: (note: string) => void },
): Promise<CachedTool[]> {
  const tools = createKeptList<CachedTool>("tools", {
    limit: LIMITS.toolsPerServer,
    nameOf: ({ name }) => name,
  });
  const names = new Set<string>();
  const unbounded: string[] = [];
  const reader = createReader();
  const onPage = async (result: Record<string, unknown>): Promise<boolean> => {
    const listed: unknown[] = Array.isArray(result.tools) ? result.tools : [];
    for (const [index, raw] of listed.entries()) {
      if (index % TOOLS_A_STEP === 0) await inTurn(reader);
      const tool = normalizeTool(raw);
      if (unbounded.length < NOTED_TOOLS) unbounded.push(...unboundedTools([raw]));
      if (!tool || names.has(tool.name)) continue;
      names.add(tool.name);
      tools.add(tool);
    }
    if (tools.isFull && result.nextCursor !== undefined) tools.stopEarly();
    return !tools.isFull;
  };
  await listPages(send, { method: "tools/list", limitMs, signal, onPage });
  if (unbounded.length > 0) {
    onNote(`schemas left out, too deep or too big: ${unbounded.slice(0, NOTED_TOOLS).join(", ")}`);
  }
  const note = tools.note();
  if (note !== undefined) onNote(note);
  return [...tools.items];
}
