/**
 * What one server offers, as far as it is known: tools, resources, prompts and instructions, remembered or as a
 * connection listed them. Lists them over the connection that the server hands it; knows nothing of its states.
 */

import { localSpellingsOf } from "../../../src/shared/naming/names.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json/same.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import { abortable, during, settledWithin } from "../../shared/pace/abort.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CallRequest, Connection } from "../mcp/mcp.ts";
import { mergeListed, offeredTools, resourceTools } from "../offers/offers.ts";

/** What a cache entry tells of a server. */
export interface KnownTools {
  tools: CachedTool[];
  instructions?: string | undefined;
  resources?: CachedResources | undefined;
}

export interface OfferContext {
  /** As it is now: an edit may change it. */
  definition: () => ServerDefinition;
  /** Of the server: what is being listed is given up with it. */
  lifetime: AbortSignal;
  /** False for a connection that was replaced: what it listed does not count any more. */
  isOpen: (connection: Connection) => boolean;
  /** A list came when nobody waited for it any longer. */
  onLate: () => void;
  onNote: (note: string) => void;
}

export class ServerOffer {
  readonly #context: OfferContext;
  #tools: CachedTool[] | undefined;
  #isOwn = false;
  #instructions: string | undefined;
  #resources: CachedResources | undefined;
  #prompts: CachedPrompt[] | undefined;
  /** Settles when the open connection's resources are listed; never rejects. */
  #resourcesListed: Promise<void> = Promise.resolve();

  constructor(context: OfferContext) {
    this.#context = context;
  }

  /** Undefined until a list came from the server or the cache. The same list stays the same object. */
  get tools(): CachedTool[] | undefined {
    return this.#tools;
  }

  /** Whether the tools are this definition's, not those of the one it replaced. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  get instructions(): string | undefined {
    return this.#instructions;
  }

  /** Undefined until they are known. Offered as tools where the definition says so. */
  get resources(): CachedResources | undefined {
    return this.#resources;
  }

  /** As the open connection listed them; undefined where it did not. */
  get prompts(): CachedPrompt[] | undefined {
    return this.#prompts;
  }

  /** Takes what a valid cache entry tells. */
  restore({ tools, instructions, resources }: KnownTools): void {
    this.#tools = tools;
    this.#resources = resources;
    this.#instructions = instructions;
    this.#isOwn = true;
  }

  /** Shows what the server that this one replaces offered, until this one has listed its own. */
  inherit({ tools, instructions, resources }: ServerOffer): void {
    this.#tools = tools;
    this.#resources = resources;
    this.#instructions = instructions;
  }

  /** Over a new connection. Throws what listing the tools throws, or the signal's reason. */
  async list(connection: Connection, signal: AbortSignal): Promise<void> {
    const beside = this.#listBeside(connection);
    this.#tools = keepSame(this.#tools, await connection.listTools(signal));
    await beside;
    this.#isOwn = true;
    this.#instructions = connection.instructions;
    signal.throwIfAborted();
  }

  /** Once more over an open connection. Answers whether it counts. Throws what listing the tools throws. */
  async listAgain(connection: Connection): Promise<boolean> {
    const beside = this.#listBeside(connection);
    const tools = await during(this.#context.lifetime, (signal) => connection.listTools(signal));
    await beside;
    if (!this.#context.isOpen(connection)) return false;
    this.#tools = keepSame(this.#tools, tools);
    return true;
  }

  /** Settles when they are known, or soon: a server that is slow with them has its tools anyway. */
  async #listBeside(connection: Connection): Promise<void> {
    const { definition, lifetime, isOpen, onLate, onNote } = this.#context;
    let isLate = false;
    const list = async <T>(lists: (signal: AbortSignal) => Promise<T>, take: (listed: T) => void) => {
      const listed = await during(lifetime, lists);
      if (!isOpen(connection)) return;
      take(listed);
      if (isLate) onLate();
    };
    if (definition().exposeResources) {
      this.#resourcesListed = list(connection.listResources, (listed) => {
        this.#resources = mergeListed(this.#resources, listed, onNote);
      });
    }
    // Only the cache holds them: no tool waits for these.
    list(connection.listPrompts, (listed) => {
      this.#prompts = listed;
    }).catch((error) => onNote(`its prompts could not be kept: ${messageOf(error)}`));
    await settledWithin(this.#resourcesListed, LIMITS.resourcesWaitMs);
    isLate = true;
  }

  /** A resumed session without a snapshot knows a tool by what Pi called it, which may be cut or mended. */
  nameOf(written: string): string {
    const { tools, resources } = this;
    const definition = this.#context.definition();
    const offered = offeredTools({ definition, tools, resources });
    if (offered.some(({ name }) => name === written)) return written;
    const meant = offered.filter(({ name }) => localSpellingsOf(definition.name, name).includes(written));
    return meant.length === 1 && meant[0] ? meant[0].name : written;
  }

  /** What a tool that stands for a resource reads; undefined for any other. */
  async uriOf({ tool, args, signal }: Omit<CallRequest, "timeoutMs">): Promise<string | undefined> {
    const { name, exposeResources } = this.#context.definition();
    if (!exposeResources) return undefined;
    await abortable(this.#resourcesListed, signal, `${name}/${tool}`);
    return resourceTools(this.#resources, this.#tools ?? [])
      .get(tool)
      ?.uriOf(args);
  }
}
