/**
 * Questions of servers, as the user sees them. Owns: their dialogs and texts. Must not: read a server's words, which the
 * worker has bounded and cleaned; open an address, which the worker does after a yes. Called by: session.
 * The dialogs are in run.ts, which is loaded with the first question. To change what the user reads: words.ts.
 */
import type { PiContext } from "../../pi/api.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import type { AskHost, Asks } from "./host.ts";

export type { Asks } from "./host.ts";

export function createAsks(ctx: PiContext, host: AskHost): Asks {
  let loaded: Promise<Asks> | undefined;
  return {
    on: (event) => {
      loaded ??= import("./run.ts").then(({ createAskDialogs }) => createAskDialogs(ctx, host));
      loaded.then((asks) => asks.on(event)).catch((error) => host.failed(`MCP: ${messageOf(error)}`));
    },
    interrupt: () => void loaded?.then((asks) => asks.interrupt()),
  };
}
