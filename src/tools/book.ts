/**
 * The book of what Pi has been told about our tools: registered, and withdrawn. The only place that registers an MCP
 * tool in Pi. Pi cannot take a tool back, so a withdrawn tool stays registered as `hidden`, where nobody reaches it.
 * A tool is found again in a newer catalog by its server and its name there, because its name in Pi may change.
 */
import { type Catalog, type CatalogTool, sameDefinition } from "../catalog/catalog.ts";
import type { Pi, ToolExposure } from "../pi/api.ts";
import { fittedName } from "../shared/naming.ts";
import { decode } from "../shared/protocol/calls.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { type CallTool, createMcpTool } from "./definition.ts";

/**
 * Which tools are declared from the first request on. The variable `MCP_DIRECT_TOOLS` overrides the configuration; it
 * holds `*`, `server` or `server/tool`, separated by commas, or `__none__`. The first tools that it names are direct, as
 * many as may be.
 */
export interface DirectRule {
  /** True if the catalog does not mark the direct tools: the variable names them. */
  byName: boolean;
  isDirect(tool: { tool: string; server: { name: string }; direct?: boolean }): boolean;
  /** Whether some tools of this server may be direct. `configured`: what the configuration says. */
  concerns(server: string, configured: boolean): boolean;
}

export function directRule(variable: string | undefined): DirectRule {
  const entries = (variable ?? "").split(",").map((entry) => entry.trim());
  const given = entries.filter((entry) => entry !== "");
  if (given.length === 0) {
    return {
      byName: false,
      isDirect: ({ direct }) => direct === true,
      concerns: (_server, configured) => configured,
    };
  }
  if (given.includes("__none__")) return { byName: false, isDirect: () => false, concerns: () => false };
  const named = new Set(given);
  const first = new Set<string>();
  return {
    byName: true,
    isDirect: ({ tool, server }) => {
      const name = `${server.name}/${tool}`;
      if (!named.has("*") && !named.has(server.name) && !named.has(name)) return false;
      return first.has(name) || (first.size < LIMITS.directTools && !!first.add(name));
    },
    concerns: (server) =>
      named.has("*") || given.some((entry) => entry === server || entry.startsWith(`${server}/`)),
  };
}

interface FreeNameOptions {
  /** Whether we have registered this name ourselves. */
  isOurs: (name: string) => boolean;
  /** Called once for each tool that gets another name. */
  onTaken: (tool: CatalogTool, name: string) => void;
}

/** The tool, under another name if another extension has its own name. A tool keeps the name that it got first. */
type WithFreeName = (tool: CatalogTool) => CatalogTool;

function createFreeNames(pi: Pi, { isOurs, onTaken }: FreeNameOptions): WithFreeName {
  /** `identity` of a tool -> its name: another server's tool may come to the bare name that this one had. */
  const renamed = new Map<string, string>();
  let inPi: Set<string> | undefined;
  /** Pi's names are read once for all tools that are registered in one go. */
  const namesInPi = (): Set<string> => {
    if (!inPi) {
      inPi = new Set(pi.getAllTools().map(({ name }) => name));
      queueMicrotask(() => {
        inPi = undefined;
      });
    }
    return inPi;
  };
  return (tool) => {
    if (!tool.bare || isOurs(tool.name)) return tool;
    const before = renamed.get(identity(tool));
    if (before !== undefined) return { ...tool, name: before };
    if (!namesInPi().has(tool.name)) return tool;
    const name = fittedName({ server: tool.server.name, tool: tool.tool });
    renamed.set(identity(tool), name);
    onTaken(tool, name);
    return { ...tool, name };
  };
}

const identity = ({ server, tool }: CatalogTool): string => `${server.name}\u0000${tool}`;

const isSame = (a: CatalogTool, b: CatalogTool): boolean =>
  a.tool === b.tool && a.server.name === b.server.name;

/**
 * Of a catalog that comes later Pi keeps this tool alone, and not the whole snapshot: its bytes, and the long texts of which
 * name and description are parts.
 */
function ownCopy({ schemas, at, server: { prompts, ...server }, ...rest }: CatalogTool): CatalogTool {
  const tool = { ...rest, server };
  const [keys, input, output] = [
    schemas.rootKeys(at),
    schemas.input(at).slice(),
    schemas.output(at)?.slice(),
  ];
  return {
    ...(JSON.parse(JSON.stringify(tool)) as typeof tool),
    at: 0,
    schemas: {
      rootKeys: () => keys,
      input: () => input,
      decoded: () => decode(input) as Record<string, unknown>,
      output: () => output,
    },
  };
}

const identities = new WeakMap<Catalog, Map<string, CatalogTool>>();

/** The same tool of the same server in this catalog; undefined if the catalog does not hold it. */
export function currentOf(catalog: Catalog, before: CatalogTool): CatalogTool | undefined {
  const named = catalog.get(before.name);
  if (named && isSame(named, before)) return named;
  let byIdentity = identities.get(catalog);
  if (!byIdentity) {
    byIdentity = new Map(catalog.tools.map((tool) => [identity(tool), tool]));
    identities.set(catalog, byIdentity);
  }
  return byIdentity.get(identity(before));
}

/**
 * Whether the tool's server is gone, or has listed its tools without this one. A server that is down keeps its tools, and
 * while no snapshot is known nobody knows which servers there are.
 */
export function isGone(tool: CatalogTool, catalog: Catalog): boolean {
  if (catalog.checksum === undefined || currentOf(catalog, tool)) return false;
  const server = catalog.servers.find(({ name }) => name === tool.server.name);
  return server === undefined || server.toolsKnown;
}

export interface BookOptions {
  call: CallTool;
  direct: Pick<DirectRule, "isDirect">;
  /** Called once for each tool whose own name belongs to another extension; `name` is the name that it got. */
  onTaken?: (tool: CatalogTool, name: string) => void;
}

export class Book {
  readonly withFreeName: WithFreeName;
  readonly #pi: Pi;
  readonly #options: BookOptions;
  readonly #registered = new Map<string, CatalogTool>();
  /** Names of withdrawn tools. */
  readonly #withdrawn = new Set<string>();
  /** By identity: the withdrawn tools that the model had, and gets back when their server is back, under whatever name. */
  readonly #missed = new Map<string, CatalogTool>();
  #changes = 0;

  constructor(pi: Pi, options: BookOptions) {
    this.#pi = pi;
    this.#options = options;
    this.withFreeName = createFreeNames(pi, {
      isOurs: (name) => this.#registered.has(name),
      onTaken: (tool, name) => options.onTaken?.(tool, name),
    });
  }

  /** Counts what Pi has been told. */
  get changes(): number {
    return this.#changes;
  }

  /** The tool as Pi was told last, also if it is withdrawn. */
  get(name: string): CatalogTool | undefined {
    return this.#registered.get(name);
  }

  get count(): number {
    return this.#registered.size;
  }

  all(): CatalogTool[] {
    return [...this.#registered.values()];
  }

  isWithdrawn(name: string): boolean {
    return this.#withdrawn.has(name);
  }

  /**
   * Whether so many tools of the server are gone that none of it is declared by itself that Pi does not know: Pi goes through all
   * that it was ever told of with each new one.
   */
  hasTooManyGone(server: string): boolean {
    const gone = [...this.#withdrawn].filter((name) => this.get(name)?.server.name === server);
    return gone.length >= LIMITS.goneTools;
  }

  /** The withdrawn tools that the model had, in the order of their withdrawal. */
  missed(): CatalogTool[] {
    return [...this.#missed.values()];
  }

  /** `isFirst`: for the factory, of whose catalog Pi keeps most tools. */
  register(found: CatalogTool, isFirst = false): void {
    const tool = isFirst ? found : ownCopy(found);
    this.#registered.set(tool.name, tool);
    this.#withdrawn.delete(tool.name);
    this.#missed.delete(identity(tool));
    this.#registerAs(tool, this.#options.direct.isDirect(tool) ? "direct" : "deferred");
  }

  /** Answers the tool under the name that it has in Pi. */
  registerIfNew(tool: CatalogTool): CatalogTool {
    const named = this.withFreeName(tool);
    if (!this.isCurrent(named)) this.register(named);
    return named;
  }

  /**
   * Whether Pi knows this very definition, as a tool of this server. The exposure may differ: telling it would change the
   * declaration of a tool that the model has, and cost the user their prompt cache.
   */
  isCurrent(tool: CatalogTool): boolean {
    const before = this.#registered.get(tool.name);
    return (
      before !== undefined &&
      !this.isWithdrawn(tool.name) &&
      isSame(before, tool) &&
      sameDefinition(before, tool)
    );
  }

  /** `isMissed`: whether the model gets the tool back when its server is back. */
  withdraw(tool: CatalogTool, isMissed = this.#pi.getActiveTools().includes(tool.name)): void {
    const isHidden = this.isWithdrawn(tool.name);
    this.#withdrawn.add(tool.name);
    if (isMissed) this.#missed.set(identity(tool), tool);
    else this.#missed.delete(identity(tool));
    if (!isHidden) this.#registerAs(tool, "hidden");
  }

  #registerAs(tool: CatalogTool, exposure: ToolExposure): void {
    this.#changes++;
    this.#pi.registerTool(createMcpTool(tool, this.#options.call, exposure));
  }
}
