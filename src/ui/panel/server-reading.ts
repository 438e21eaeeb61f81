/** Reads a server's details, and with them its tools. What comes for a server that is no longer wanted is dropped. */

import type { PanelHost } from "./host.ts";
import type { World } from "./model/model.ts";
import { listTools } from "./tool-list.ts";

export interface ServerReading {
  /** Reads the server, unless it was the last one that was read. Rejects with what went wrong. */
  follow(server: string | undefined): Promise<void>;
  /** The same server is read again. */
  forget(): void;
  stop(): void;
}

export function createServerReading(
  host: Pick<PanelHost, "ask" | "catalog">,
  put: (part: Partial<Pick<World, "details" | "tools">>) => void,
): ServerReading {
  let shown: string | undefined;
  let run = 0;

  const read = async (server: string): Promise<void> => {
    const own = ++run;
    const details = await host.ask("serverDetails", { server });
    if (own !== run) return;
    put({ details: new Map([[server, details]]) });
    const list = await listTools(server, details, host.catalog(), () => own !== run);
    if (list) put({ tools: new Map([[server, list]]) });
  };

  return {
    follow: async (server) => {
      if (server === shown) return;
      shown = server;
      if (server !== undefined) await read(server);
    },
    forget: () => {
      shown = undefined;
    },
    stop: () => {
      run++;
    },
  };
}
