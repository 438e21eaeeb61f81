/**
 * Under which name a tool of ours can stand in Pi. A name without a server in it (`toolPrefix: "none"`) may be
 * another extension's: in the factory that would keep Pi from starting, later Pi would silently keep the
 * other tool. So such a name is looked at before it is taken.
 */
import type { CatalogTool } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import { fallbackName } from "../../shared/naming/names.ts";

export interface Placement {
  /** The tool, under another name where its own is taken. */
  place(tool: CatalogTool): CatalogTool;
}

export interface PlacementOptions {
  /** We have registered this name ourselves. */
  isOurs: (name: string) => boolean;
  /** A tool could not have its name: once a tool. */
  onTaken: (tool: CatalogTool, name: string) => void;
}

export function createPlacement(pi: Pi, { isOurs, onTaken }: PlacementOptions): Placement {
  const moved = new Map<string, string>();
  let inPi: Set<string> | undefined;
  /** Read once for all tools that are registered in one go. */
  const namesInPi = (): Set<string> => {
    if (!inPi) {
      inPi = new Set(pi.getAllTools().map(({ name }) => name));
      queueMicrotask(() => {
        inPi = undefined;
      });
    }
    return inPi;
  };
  return {
    place: (tool) => {
      if (!tool.bare || isOurs(tool.name)) return tool;
      const before = moved.get(tool.name);
      if (before !== undefined) return { ...tool, name: before };
      if (!namesInPi().has(tool.name)) return tool;
      const name = fallbackName(tool.server.name, tool.tool);
      moved.set(tool.name, name);
      onTaken(tool, name);
      return { ...tool, name };
    },
  };
}
