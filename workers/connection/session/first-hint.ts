/**
 * The line that tells a person without any server how to begin: once for each agent folder, remembered by a file. Owns:
 * that file. Called by: session.ts, after the first plan.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { counted } from "../../../src/shared/text/amounts.ts";
import { commandFor } from "../../shared/commands.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { findHosts } from "../config/found/found.ts";
import { DIALECTS } from "../config/hosts/dialects.ts";

const HINT_FILE = "mcp-hint.json";

/** True for the one session that made the file. False also if it cannot be made: else every start would tell. */
const isFirst = (agentDir: string): Promise<boolean> =>
  writeFile(join(agentDir, HINT_FILE), `${JSON.stringify({ version: 1, toldAt: Date.now() })}\n`, {
    // Fails if there is anything of that name, a link too: of several sessions one tells.
    flag: "wx",
    mode: 0o600,
  }).then(
    () => true,
    () => false,
  );

/** For example `7 servers of Claude Code and Cursor`; undefined if other programs have none. */
async function othersText(running: RunningConfiguration): Promise<string | undefined> {
  const found = await findHosts(running.facts);
  const counts = found
    .map(({ host, files }) => ({ host, count: files.reduce((sum, { servers }) => sum + servers.length, 0) }))
    .filter(({ count }) => count > 0);
  const titles = counts.map(({ host }) => DIALECTS[host].title);
  const all = counts.reduce((sum, { count }) => sum + count, 0);
  const names = [titles.slice(0, -1).join(", "), titles.at(-1)].filter(Boolean).join(" and ");
  return all === 0 ? undefined : `${counted(all, "server")} of ${names}`;
}

/** The line; undefined if it was told before, or there is something to see in `/mcp` already. */
export async function firstHint(running: RunningConfiguration): Promise<string | undefined> {
  const { servers, problems } = running.applied;
  if (servers.length + problems.length > 0 || !(await isFirst(running.facts.agentDir))) return undefined;
  const others = await othersText(running);
  const add = `No MCP server is configured yet. ${commandFor("add")} adds one`;
  return others === undefined
    ? `${add}.`
    : `${add}, ${commandFor("import")} takes over what other programs have: ${others}.`;
}
