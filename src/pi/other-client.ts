/** Tells the user, once, that another extension also owns `/mcp`: two clients would run the same servers. */
import type { Pi, PiContext } from "./api.ts";
import { notify } from "./notices.ts";

/** `/mcp`, or `/mcp:2` and so on, as Pi numbers commands of one name. */
const OURS_OR_THEIRS = /^mcp(:\d+)?$/;

export function warnOfOtherOwner(pi: Pi, ctx: PiContext, ownLocation: string): void {
  const others = pi
    .getCommands()
    .filter((command) => OURS_OR_THEIRS.test(command.name) && command.sourceInfo.path !== ownLocation)
    .map((command) => command.sourceInfo.path);
  const other = others[0];
  if (other === undefined) return;
  notify(
    ctx,
    `${other} also provides /mcp. Two MCP clients run the same servers twice: remove one of them (pi config).`,
    "warning",
  );
}
