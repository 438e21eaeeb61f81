/**
 * The tools that may run until the session ends. A grant is for the tool as the server described it, on the server as it
 * was defined: another description, other hints or another program need another yes. Kept in memory only.
 */
import { sameJson } from "../../shared/json.ts";
import type { CachedTool } from "../../shared/listed.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";

/** What a yes is about. */
export interface Subject {
  definition: ServerDefinition;
  tool: CachedTool;
}

/** Whether both are the same tool of the same server, described and defined in the same way. */
export const sameSubject = (a: Subject, b: Subject): boolean =>
  a.definition.name === b.definition.name &&
  sameJson(a.definition.target, b.definition.target) &&
  (a.tool === b.tool || sameJson(a.tool, b.tool));

export interface Grants {
  add(subject: Subject): void;
  has(subject: Subject): boolean;
}

export function createGrants(): Grants {
  const granted = new Map<string, Subject>();
  const key = ({ definition, tool }: Subject): string => JSON.stringify([definition.name, tool.name]);
  return {
    add: (subject) => void granted.set(key(subject), subject),
    has: (subject) => {
      const found = granted.get(key(subject));
      return found !== undefined && sameSubject(found, subject);
    },
  };
}
