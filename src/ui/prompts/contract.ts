/** What the session, prompts.ts and the code that runs with the first command know of each other. Types only. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Pi, PiContext } from "../../pi/api.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { SnapshotPrompt } from "../../shared/snapshot/contract.ts";

export interface PromptHost {
  pi: Pick<Pi, "registerCommand" | "sendUserMessage" | "getCommands">;
  ask: Runtime["ask"];
  catalog: () => Catalog;
  /** Waits, within limits, until the servers' tools and prompts are known. */
  settle: () => Promise<unknown>;
}

/** A prompt with its server, as a command names it. */
export interface NamedPrompt {
  server: string;
  prompt: SnapshotPrompt;
}

/** A person typed a command: its name without the slash, and the text behind it. */
export interface TypedCommand {
  name: string;
  args: string;
  ctx: PiContext;
}
