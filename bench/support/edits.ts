/**
 * Owns: 50 edits of one mcp.json, of five kinds in turn, each with the notice of its effect and a check, by calls of
 * the model, that the notice is true.
 * Must not: write the file or measure.
 * Called by: the reload scenario.
 */
import type { ModelTurn } from "../../test/support/model.ts";
import type { StdioEntry } from "./own-start.ts";
import type { Variant } from "./variants.ts";

export const KINDS = ["settings", "server removed", "server added", "rules changed", "args changed"] as const;
export type Kind = (typeof KINDS)[number];

export const EDITS_OF_A_KIND = 10;
export const SERVERS = 20;

export type Entries = Record<string, StdioEntry & Record<string, unknown>>;

export interface Edit {
  kind: Kind;
  /** Number of the edit within its kind, from 0. */
  round: number;
  /** The edited server; undefined for settings. */
  server: string | undefined;
  /** The whole file. */
  content: { mcpServers: Entries; settings: Record<string, unknown> };
  notice: RegExp;
  /** The model's turns that check the effect. */
  turns: readonly ModelTurn[];
  /** True if the last result is the expected one. */
  isRight(result: string): boolean;
}

/** Arguments for a long text result. */
const LONG_TEXT = { id: "long", kind: "text", bytes: 20_000 };
/** Limits of the output guard, which the edits of the settings set in turn. */
const SHOWN_BYTES = [2_000, 6_000] as const;

const isMissing = (result: string): boolean => result.includes("No such tool");

/**
 * Takes the entries of 30 servers. 20 of them are configured at first: 10 of these are removed, one by one, and the
 * other 10 servers are added. The remaining 10 get other rules, then other arguments.
 */
export function makeEdits(all: Entries, variant: Variant): { first: Edit["content"]; edits: Edit[] } {
  const names = Object.keys(all);
  const stay = names.slice(0, EDITS_OF_A_KIND);
  const go = names.slice(EDITS_OF_A_KIND, SERVERS);
  const come = names.slice(SERVERS, SERVERS + EDITS_OF_A_KIND);
  let mcpServers = Object.fromEntries(Object.entries(all).slice(0, SERVERS));
  let settings: Record<string, unknown> = {};
  const first = { mcpServers, settings };
  const at = (list: readonly string[], round: number): string => list[round] ?? "";
  const find = (server: string): ModelTurn => variant.find(server, "echo");
  const echo = (server: string): ModelTurn =>
    variant.call(server, [{ tool: "echo", args: { text: server } }]);
  const put = (server: string, more: Record<string, unknown>): void => {
    const entry = mcpServers[server] ?? all[server];
    if (entry) mcpServers = { ...mcpServers, [server]: { ...entry, ...more } };
  };

  const make = (kind: Kind, round: number): Omit<Edit, "kind" | "round" | "content"> => {
    const stays = at(stay, round);
    switch (kind) {
      case "settings": {
        const maxBytes = SHOWN_BYTES[round % SHOWN_BYTES.length] ?? 0;
        settings = { outputGuard: { maxBytes } };
        return {
          server: undefined,
          notice: /^mcp\.json: settings \(outputGuard\)$/,
          turns: [variant.call(at(stay, 0), [{ tool: "payload", args: LONG_TEXT }])],
          // The guard adds a line that says where the whole result is stored.
          isRight: ({ length }) => length > maxBytes / 2 && length < maxBytes + 1_000,
        };
      }
      case "server removed": {
        const server = at(go, round);
        mcpServers = Object.fromEntries(Object.entries(mcpServers).filter(([name]) => name !== server));
        const notice = new RegExp(`^mcp\\.json: - ${server}$`);
        return { server, notice, turns: [find(server)], isRight: isMissing };
      }
      case "server added": {
        const server = at(come, round);
        put(server, {});
        const notice = new RegExp(`^mcp\\.json: \\+ ${server} \\(\\d+ tools\\)$`);
        const turns = [find(server), echo(server)];
        return { server, notice, turns, isRight: (result) => result.includes(`"${server}"`) };
      }
      case "rules changed": {
        put(stays, { excludeTools: ["echo"] });
        const notice = new RegExp(`^mcp\\.json: ~ ${stays} \\(excludeTools\\)$`);
        return { server: stays, notice, turns: [find(stays)], isRight: isMissing };
      }
      case "args changed": {
        const args = [...(mcpServers[stays]?.args ?? []), `--round=${round}`];
        // The edit allows the tool again, so that the model can call the restarted server.
        put(stays, { args, excludeTools: [] });
        const notice = new RegExp(`^mcp\\.json: ~ ${stays} \\(args, excludeTools\\)$`);
        const turns = [find(stays), echo(stays)];
        return { server: stays, notice, turns, isRight: (result) => result.includes(`"${stays}"`) };
      }
    }
  };

  const edits: Edit[] = [];
  for (let round = 0; round < EDITS_OF_A_KIND; round++) {
    for (const kind of KINDS) {
      const made = make(kind, round);
      edits.push({ kind, round, ...made, content: { mcpServers, settings } });
    }
  }
  return { first, edits };
}
