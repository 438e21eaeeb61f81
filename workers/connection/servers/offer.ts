/**
 * What one server offers, as far as it is known: tools, resources, prompts and instructions, from the cache or as a
 * connection listed them. Lists them over the connection that the server hands it; knows nothing of the server's phases.
 */

import { localSpellingsOf } from "../../../src/shared/naming/names.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json/same.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import { abortable, during, settledWithin } from "../../shared/pace/abort.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CallRequest, Connection, RememberedServer } from "../mcp/connection.ts";
import { MODERN_VERSION } from "../mcp/wire/wire.ts";
import { mergeListed, offeredTools, resourceTools } from "../offers/offers.ts";

/** What a cache entry says of a server. */
export interface KnownTools {
  tools: CachedTool[];
  instructions?: string | undefined;
  resources?: CachedResources | undefined;
  prompts?: CachedPrompt[] | undefined;
  protocol?: StoredProtocol | undefined;
}

export interface OfferContext {
  /** The definition that holds now: an edit may change it. */
  definition: () => ServerDefinition;
  /** Fires when the server is closed: a list that is under way is given up then. */
  lifetime: AbortSignal;
  /** False for a connection that was replaced: its lists no longer count. */
  isOpen: (connection: Connection) => boolean;
  /** A list arrived after nobody waited for it any longer. */
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
  #protocol: StoredProtocol | undefined;
  /** False: a request that relied on what is remembered has failed. */
  #isTrusted = true;
  /** Settles when the open connection's resources are listed. Never rejects. */
  #resourcesListed: Promise<void> = Promise.resolve();

  constructor(context: OfferContext) {
    this.#context = context;
  }

  /** Undefined until a list came from the server or the cache. The same list stays the same object. */
  get tools(): CachedTool[] | undefined {
    return this.#tools;
  }

  /** Whether the tools are this definition's own, and not inherited from the server that it replaced. */
  get isOwn(): boolean {
    return this.#isOwn;
  }

  get instructions(): string | undefined {
    return this.#instructions;
  }

  /** Undefined until they are known. Offered as tools if the definition says so. */
  get resources(): CachedResources | undefined {
    return this.#resources;
  }

  /** Undefined until they are known. Offered as commands if the definition says so. */
  get prompts(): CachedPrompt[] | undefined {
    return this.#prompts;
  }

  /** What the next connection may rely on. Undefined: the server is of the old era, or nothing is known. */
  get protocol(): StoredProtocol | undefined {
    return this.#protocol;
  }

  /** `isUrgent`: a call waits, which need not ask the server first. */
  remembered(isUrgent: boolean): RememberedServer | undefined {
    const protocol = this.#protocol;
    if (!this.#isOwn || !this.#tools || protocol?.version !== MODERN_VERSION) return undefined;
    const isTrusted = isUrgent && this.#isTrusted;
    return { protocol, tools: this.#tools, instructions: this.#instructions, isTrusted };
  }

  /** What is remembered did not hold for a request. `isWrong`: the server is of another era. */
  distrust(isWrong: boolean): void {
    this.#isTrusted = false;
    if (isWrong) this.#protocol = undefined;
  }

  /** Takes what a valid cache entry says of the server. */
  restore({ tools, instructions, resources, prompts, protocol }: KnownTools): void {
    this.#protocol = protocol;
    this.#tools = tools;
    this.#resources = resources;
    this.#prompts = prompts;
    this.#instructions = instructions;
    this.#isOwn = true;
  }

  /** Shows the offer of the server that this one replaces, until this one has listed its own. */
  inherit({ tools, instructions, resources, prompts }: ServerOffer): void {
    this.#tools = tools;
    this.#resources = resources;
    this.#prompts = prompts;
    this.#instructions = instructions;
  }

  /** Lists everything over a new connection. Throws what listing the tools throws, or the signal's reason. */
  async list(connection: Connection, signal: AbortSignal): Promise<void> {
    const beside = this.#listBeside(connection);
    this.#tools = keepSame(this.#tools, await connection.listTools(signal));
    await beside;
    this.#isOwn = true;
    this.#isTrusted = true;
    this.#protocol = connection.memory();
    this.#instructions = connection.instructions;
    signal.throwIfAborted();
  }

  /**
   * Lists everything once more over an open connection. Answers false if the connection was replaced meanwhile. Throws
   * what listing the tools throws.
   */
  async listAgain(connection: Connection): Promise<boolean> {
    const beside = this.#listBeside(connection);
    const tools = await during(this.#context.lifetime, (signal) => connection.listTools(signal));
    await beside;
    if (!this.#context.isOpen(connection)) return false;
    this.#tools = keepSame(this.#tools, tools);
    this.#protocol = connection.memory();
    return true;
  }

  /**
   * Lists resources and prompts. Settles when both are known, or after a moment: a server that is slow with them has its
   * tools anyway.
   */
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
    const promptsListed = list(connection.listPrompts, (listed) => {
      if (listed) this.#prompts = keepSame(this.#prompts, listed);
    }).catch((error) => onNote(`its prompts could not be kept: ${messageOf(error)}`));
    await settledWithin(Promise.all([this.#resourcesListed, promptsListed]), LIMITS.resourcesWaitMs);
    isLate = true;
  }

  /**
   * The server's name of a tool. A resumed session without a snapshot knows a tool by its name in Pi, which may be
   * shortened or have other characters.
   */
  nameOf(written: string): string {
    const { tools, resources } = this;
    const definition = this.#context.definition();
    const offered = offeredTools({ definition, tools, resources });
    if (offered.some(({ name }) => name === written)) return written;
    const meant = offered.filter(({ name }) => localSpellingsOf(definition.name, name).includes(written));
    return meant.length === 1 && meant[0] ? meant[0].name : written;
  }

  /** The URI that a tool for a resource reads; undefined for any other tool. */
  async uriOf({ tool, args, signal }: Omit<CallRequest, "timeoutMs">): Promise<string | undefined> {
    const { name, exposeResources } = this.#context.definition();
    if (!exposeResources) return undefined;
    await abortable(this.#resourcesListed, signal, `${name}/${tool}`);
    return resourceTools(this.#resources, this.#tools ?? [])
      .get(tool)
      ?.uriOf(args);
  }
}
