/** A plan as one line for people: `mcp.json: + docs (12 tools), ~ github (args), - old`. Pure. */
import type { Plan, ServerChange } from "./changes.ts";

const SHOWN_SERVERS = 8;
const SHOWN_KEYS = 3;

const list = (keys: readonly string[]): string =>
  keys.length <= SHOWN_KEYS
    ? keys.join(", ")
    : `${keys.slice(0, SHOWN_KEYS).join(", ")} and ${keys.length - SHOWN_KEYS} more`;

const count = (tools: number | undefined): string =>
  tools === undefined ? "" : ` (${tools} ${tools === 1 ? "tool" : "tools"})`;

function describeChange(change: ServerChange, toolCounts: ReadonlyMap<string, number>): string | undefined {
  const { name } = change;
  if (change.action === "keep") return undefined;
  if (change.action === "stop") return `- ${name}`;
  const tools = count(toolCounts.get(name));
  if (change.action === "start") return `+ ${name}${change.after.enabled ? tools : " (disabled)"}`;
  if (change.keys.includes("enabled")) {
    return change.after.enabled ? `+ ${name}${tools || " (enabled)"}` : `- ${name} (disabled)`;
  }
  return `~ ${name} (${list(change.keys)})`;
}

/** Undefined if nothing changes. `toolCounts`: server -> number of tools, for servers whose tools are known. */
export function describeEffect(
  plan: Plan,
  toolCounts: ReadonlyMap<string, number>,
  label = "mcp.json",
): string | undefined {
  const lines = plan.servers
    .map((change) => describeChange(change, toolCounts))
    .filter((line) => line !== undefined);
  const shown = lines.slice(0, SHOWN_SERVERS);
  if (lines.length > shown.length) shown.push(`${lines.length - shown.length} more`);
  if (plan.settings.keys.length > 0) shown.push(`settings (${list(plan.settings.keys)})`);
  return shown.length === 0 ? undefined : `${label}: ${shown.join(", ")}`;
}
