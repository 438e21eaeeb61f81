/** What both sides of the room share: the skills that stand in the conversation, and what a call brings. */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import type { Pi } from "../pi/api.ts";
import type { LoadedSkill } from "../shared/protocol/calls.ts";

/** A tool is about to run. */
export interface ToolAboutToRun {
  toolName: string;
  input: Record<string, unknown>;
}

export interface SkillsHost {
  pi: Pick<Pi, "appendEntry" | "getAllTools">;
  catalog: () => Catalog;
  /** Pi's. */
  agentDir: string;
  /** The tool that we have registered in Pi under this name; undefined for a tool of Pi or of another extension. */
  ownTool: (name: string) => CatalogTool | undefined;
  /** Runs a dialog when those before it have ended. */
  inTurn: <T>(task: () => Promise<T>) => Promise<T>;
  log: (message: string) => void;
}

/** Types of the entries in the transcript: a load, and a yes to what a skill leads to. */
export const LOADED_ENTRY = "mcp-skill";
export const RUN_ENTRY = "mcp-skill-run";

/** Kept by skills.ts, and read and written by gate.ts. */
export interface Standing {
  /** By `skillKeyOf`. */
  active: Map<string, LoadedSkill>;
  /** False: the branch may hold others. */
  isKnown: boolean;
  /** Keys of skills of which the person let commands run, each with the id of the session. */
  granted: Set<string>;
}
