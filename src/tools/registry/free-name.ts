/**
 * The name under which Pi can register a tool of ours. A name without a server in it (`toolPrefix: "none"`) may belong
 * to another extension: such a name would keep Pi from starting if the factory registered it, and later Pi would
 * silently keep the other tool. So a bare name is looked up in Pi first.
 */
import type { CatalogTool } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import { fittedName } from "../../shared/naming.ts";

export interface FreeNameOptions {
  /** Whether we have registered this name ourselves. */
  isOurs: (name: string) => boolean;
  /** Called once for each tool that gets another name. */
  onTaken: (tool: CatalogTool, name: string) => void;
}

/** The tool, under another name if another extension has its own name. A tool keeps the name that it got first. */
export type WithFreeName = (tool: CatalogTool) => CatalogTool;

export function createFreeNames(pi: Pi, { isOurs, onTaken }: FreeNameOptions): WithFreeName {
  const renamed = new Map<string, string>();
  let inPi: Set<string> | undefined;
  /** Pi's names are read once for all tools that are registered in one go. */
  const namesInPi = (): Set<string> => {
    if (!inPi) {
      inPi = new Set(pi.getAllTools().map(({ name }) => name));
      queueMicrotask(() => {
        inPi = undefined;
      });
    }
    return inPi;
  };
  return (tool) => {
    if (!tool.bare || isOurs(tool.name)) return tool;
    const before = renamed.get(tool.name);
    if (before !== undefined) return { ...tool, name: before };
    if (!namesInPi().has(tool.name)) return tool;
    const name = fittedName({ server: tool.server.name, tool: tool.tool });
    renamed.set(tool.name, name);
    onTaken(tool, name);
    return { ...tool, name };
  };
}
