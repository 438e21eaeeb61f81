/** Warns the user about another extension with a command `/mcp`: two MCP clients would run the same servers. */
import type { Pi } from "./api.ts";
import type { PiContext } from "./context.ts";
import { notify } from "./notices.ts";

/** Pi numbers commands of one name: `mcp`, `mcp:2` and so on. */
const MCP_COMMAND = /^mcp(:\d+)?$/;

/** The paths of the other extensions that have such a command. */
export const otherClients = (pi: Pi, ownLocation: string): string[] =>
  pi
    .getCommands()
    .filter((command) => MCP_COMMAND.test(command.name) && command.sourceInfo.path !== ownLocation)
    .map((command) => command.sourceInfo.path);

export function warnOfOtherOwner(pi: Pi, ctx: PiContext, ownLocation: string): void {
  const [other] = otherClients(pi, ownLocation);
  if (other === undefined) return;
  notify(
    ctx,
    `${other} also provides /mcp. Two MCP clients run the same servers twice: remove one of them (pi config).`,
    "warning",
  );
}
