/** Registers the tools that a resumed branch has declared and that Pi does not know. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import type { SnapshotServer } from "../../shared/snapshot/contract.ts";
import type { Book } from "./book.ts";
import { type DeclaredTool, fromTranscript } from "./branch.ts";

export interface Branch {
  declared: ReadonlyMap<string, DeclaredTool>;
  /** Undefined if the tool belongs to no server that is known. */
  serverOf: (tool: DeclaredTool) => SnapshotServer | undefined;
}

/** Answers how many tools are left that neither Pi nor the catalog nor `serverOf` knows. */
export function restore(pi: Pi, book: Book, catalog: Catalog, { declared, serverOf }: Branch): number {
  const missing = [...declared.values()].filter(({ name }) => !book.get(name));
  if (missing.length === 0) return 0;
  const inPi = new Set(pi.getAllTools().map(({ name }) => name));
  let left = 0;
  for (const tool of missing) {
    if (inPi.has(tool.name)) continue;
    const known = catalog.get(tool.name);
    const server = known ? undefined : serverOf(tool);
    if (known) book.register(known);
    else if (server) book.register(fromTranscript(tool, server));
    else left++;
  }
  return left;
}
