/** The headers of each request over HTTP, with those that a tool's parameters are mirrored into. Knows the tools listed last. */
import type { CachedTool } from "../../../shared/listed.ts";
import type { JSONRPCRequest } from "../wire/wire.ts";
import { type MirroredParameter, mirroredParameters, parameterHeaders, standardHeaders } from "./headers.ts";

const NAME_CHARS = 100;
const NOTED = 20;

export class MirroredHeaders {
  #tools = new Map<string, MirroredParameter[]>();

  /** Takes a new list of tools and answers those that can be called: others have an invalid annotation, which is noted. */
  take(tools: readonly CachedTool[], onNote: (note: string) => void): CachedTool[] {
    const mirrored = new Map<string, MirroredParameter[]>();
    let leftOut = 0;
    const kept = tools.filter(({ name, inputSchema }) => {
      const found = mirroredParameters(inputSchema);
      if ("problem" in found) {
        if (++leftOut <= NOTED) onNote(`its tool ${name.slice(0, NAME_CHARS)} is left out: ${found.problem}`);
      } else if (found.length > 0) mirrored.set(name, found);
      return !("problem" in found);
    });
    if (leftOut > NOTED) onNote(`${leftOut - NOTED} more of its tools are left out for such a reason`);
    this.#tools = mirrored;
    return kept;
  }

  /** Undefined: the parameters are too long for headers. */
  of({ method, params }: JSONRPCRequest): Record<string, string> | undefined {
    const headers = standardHeaders({ method, params });
    const mirrored = method === "tools/call" ? this.#tools.get(String(params?.name)) : undefined;
    if (!mirrored) return headers;
    const own = parameterHeaders(mirrored, params?.arguments);
    return own && { ...headers, ...own };
  }
}
