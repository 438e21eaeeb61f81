/**
 * The tool through which the model reaches all other tools: ToolSearch, or `mcp` if the settings ask for it. Owns: which
 * of the two is declared, and with which description. Must not: search or call.
 * The declaration is made from the snapshot in the factory, and again from what is known before the first prompt. From
 * the first request on it stays as the branch has it, also when a session is resumed, because any changed byte costs the
 * user their prompt cache: later changes are told beside the next prompt (news).
 * To add such a tool: a file with its definition and one with its call, a setting, a case in `register`.
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { AddedMessage, Pi, PiTool } from "../pi/api.ts";
import { PROXY_TOOL } from "../shared/naming.ts";
import type { CatalogSettings, ServerStatus } from "../shared/protocol/session.ts";
import type { DeclaredTool } from "./branch.ts";
import type { ToolHost } from "./host.ts";
import { createProxyTool } from "./proxy.ts";
import type { Instructions, NewsBranch } from "./told.ts";
import { createToolSearch } from "./tool-search.ts";

/**
 * The servers of the configuration and its settings; undefined: no plan has told them yet. The catalog may be behind: it
 * lacks servers that have just come, and holds some that are gone.
 */
export interface Planned {
  servers: readonly ServerStatus[];
  settings: CatalogSettings;
}

export interface SearchTools {
  declare(catalog: Catalog): void;
  /**
   * Before a prompt: declares what there is now, unless the model has a declaration already. `planned`: the servers of the
   * configuration and its settings, if they are known; the catalog may lack servers that have just come.
   */
  describe(
    planned: { servers: readonly ServerStatus[]; settings: CatalogSettings } | undefined,
  ): Promise<void>;
  /** Goes on with the declaration of a branch, byte for byte. Without one in the branch, `describe` makes one. */
  keep(branch: ReadonlyMap<string, DeclaredTool>): void;
  /** For each prompt, after `describe`: what the model has not been told yet, if there is anything and it has the tool. */
  news(branch: NewsBranch, planned: Planned | undefined): Promise<AddedMessage | undefined>;
  /** Whether the declaration holds the servers: those of a snapshot or of the plan. */
  complete(): boolean;
  /** Name of the declared tool; undefined if Pi withholds it from the model, as `--tools` asks. */
  name(): string | undefined;
}

const isEnabled = ({ state }: ServerStatus): boolean => state !== "disabled";

export function createSearchTools(pi: Pi, host: ToolHost & ToolHost): SearchTools {
  let declared: PiTool | undefined;
  /** Names of the servers that were known when the description was made. */
  let named: readonly string[] = [];
  let complete = false;
  /** The model has the declaration: from now on it stays. */
  let isTold = false;
  /** The catalog of which the model has been told. */
  let toldOf: Catalog | undefined;

  const name = (): string | undefined =>
    declared && pi.getActiveTools().includes(declared.name) ? declared.name : undefined;
  const create = (description: string, isProxy: boolean): PiTool =>
    isProxy ? createProxyTool(description, host) : createToolSearch(description, host);
  const register = (tool: PiTool): void => {
    if (declared?.name === tool.name && declared.description === tool.description) return;
    // Pi cannot take a tool back; the model does not see a hidden one.
    if (declared && declared.name !== tool.name) pi.registerTool({ ...declared, exposure: "hidden" });
    declared = tool;
    pi.registerTool(tool);
  };
  const declare = ({ checksum, servers, description, settings }: Catalog): void => {
    complete = checksum !== undefined;
    named = servers.map(({ name }) => name);
    register(create(description, settings.proxyTool));
  };

  return {
    declare,
    describe: async (planned) => {
      if (isTold) return;
      const catalog = host.catalog();
      const servers = planned?.servers.filter(isEnabled) ?? [];
      const known = new Set(catalog.servers.map(({ name }) => name));
      const isSame =
        known.size === servers.length &&
        servers.every(({ name }) => known.has(name)) &&
        planned?.settings.proxyTool === catalog.settings.proxyTool &&
        planned.settings.catalog === catalog.settings.catalog;
      if (!planned || (catalog.checksum !== undefined && isSame)) return declare(catalog);
      const { settings } = planned;
      const { describedPlan } = await import("./told.ts");
      const description = await describedPlan(servers, { catalog, settings });
      complete = true;
      named = servers.map(({ name }) => name);
      register(create(description, settings.proxyTool));
    },
    keep: (branch) => {
      toldOf = undefined;
      const before = declared && branch.get(declared.name);
      isTold =
        before !== undefined && JSON.stringify(before.parameters) === JSON.stringify(declared?.parameters);
      if (before && isTold) register(create(before.description, before.name === PROXY_TOOL));
    },
    news: async (branch, planned) => {
      if (!declared || name() === undefined) return undefined;
      const catalog = host.catalog();
      const isFirst = !isTold;
      isTold = true;
      if (toldOf === catalog) return undefined;
      toldOf = catalog;
      // What has just been declared is what there is, unless the catalog is behind the plan.
      if (isFirst) return undefined;
      const servers = planned ? planned.servers.filter(isEnabled) : catalog.servers;
      const { tellNews } = await import("./told.ts");
      return tellNews({
        declared: { name: declared.name, description: declared.description, servers: named },
        catalog,
        settings: planned?.settings ?? catalog.settings,
        servers: servers.map((server) => server.name),
        branch,
      });
    },
    complete: () => complete,
    name,
  };
}

/** The servers' own words on their use; told.ts, loaded with the first answer, bounds and marks them. */
export function createInstructions(catalog: () => Pick<Catalog, "servers">): Instructions {
  const state: { told: Set<string> | undefined } = { told: undefined };
  return {
    tell: async (servers, branch) =>
      (await import("./told.ts")).tellInstructions(state, {
        asked: servers,
        known: catalog().servers,
        branch,
      }),
    branchChanged: () => {
      state.told = undefined;
    },
  };
}
