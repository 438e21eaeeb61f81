/**
 * The book of what Pi has been told about our tools: registered, and withdrawn. The only place that registers an MCP
 * tool in Pi. Pi cannot take a tool back, so a withdrawn tool stays registered as `hidden`, where nobody reaches it.
 */
import { type CatalogTool, sameDefinition } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import type { ToolExposure } from "../../pi/tools.ts";
import { type CallTool, createMcpTool } from "../definition/definition.ts";
import type { DirectRule } from "./direct.ts";
import { createFreeNames, type WithFreeName } from "./free-name.ts";

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
  /** Name of a withdrawn tool -> whether the model had it and gets it back when its server is back. */
  readonly #withdrawn = new Map<string, boolean>();
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

  get hasMissed(): boolean {
    return [...this.#withdrawn.values()].includes(true);
  }

  /** The withdrawn tools that the model had, in the order of their withdrawal. The book may change meanwhile. */
  *missed(): Generator<CatalogTool> {
    for (const [name, isMissed] of this.#withdrawn) {
      const tool = this.#registered.get(name);
      if (isMissed && tool) yield tool;
    }
  }

  /** The model gets this withdrawn tool under another name, or not again. */
  forget(name: string): void {
    this.#withdrawn.set(name, false);
  }

  register(tool: CatalogTool): void {
    this.#registered.set(tool.name, tool);
    this.#withdrawn.delete(tool.name);
    this.#registerAs(tool, this.#options.direct.isDirect(tool) ? "direct" : "deferred");
  }

  /** Answers the tool under the name that it has in Pi. */
  registerIfNew(tool: CatalogTool): CatalogTool {
    const named = this.withFreeName(tool);
    if (!this.isCurrent(named)) this.register(named);
    return named;
  }

  /**
   * Whether Pi knows this very definition. The exposure may differ: telling it would change the declaration of a tool
   * that the model has, and cost the user their prompt cache.
   */
  isCurrent(tool: CatalogTool): boolean {
    const before = this.#registered.get(tool.name);
    return before !== undefined && !this.isWithdrawn(tool.name) && sameDefinition(before, tool);
  }

  /** `isMissed`: whether the model gets the tool back when its server is back. */
  withdraw(tool: CatalogTool, isMissed = this.#pi.getActiveTools().includes(tool.name)): void {
    this.#withdrawn.set(tool.name, isMissed);
    this.#registerAs(tool, "hidden");
  }

  #registerAs(tool: CatalogTool, exposure: ToolExposure): void {
    this.#changes++;
    this.#pi.registerTool(createMcpTool(tool, this.#options.call, exposure));
  }
}
