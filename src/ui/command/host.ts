/** The part of the session that `/mcp` needs. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { ServerStatus } from "../../shared/protocol/status.ts";

export interface McpCommandHost {
  ask: Runtime["ask"];
  /** Asks the user again about the project's servers that were refused or put off. */
  askConsents(): Promise<void>;
  /** Signs in to a server; without a name to the one that needs it. Resolves when the user has read how it ended. */
  signIn(server: string | undefined): Promise<void>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
}
