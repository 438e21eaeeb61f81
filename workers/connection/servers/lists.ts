/**
 * What one server lists, as far as it is known: tools, resources, prompts and instructions, from the cache or as a
 * connection listed them. Lists them over the connection that it is handed; knows nothing of the server's phases.
 */

import { localSpellingsOf } from "../../../src/shared/naming.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json.ts";
import {
  type CachedPrompt,
  type CachedResources,
  type CachedTool,
  listMark,
  readList,
  type ToolList,
} from "../../shared/listed.ts";
import { abortable, during, settledWithin } from "../../shared/pace/abort.ts";
import { type CachedSkill, contentOf } from "../../shared/skills.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CallRequest, Connection, RememberedServer } from "../mcp/connection.ts";
import { FRESH_LEAST_MS } from "../mcp/modern/limits.ts";
import { MODERN_VERSION } from "../mcp/wire/wire.ts";
import type { ExpectedFile } from "../skills/check.ts";
import { fileOfSkill } from "../skills/load.ts";
import { type SkillTool, skillTools, skillWith } from "../skills/tools.ts";
import { allTools, mergeListed, NO_TOOLS, resourceTools } from "../tools/listed.ts";
import type { ServerLog } from "./log.ts";

/** What a cache entry says of a server. */
export interface KnownTools {
  tools: ToolList;
  instructions?: string | undefined;
  resources?: CachedResources | undefined;
  prompts?: CachedPrompt[] | undefined;
  skills?: CachedSkill[] | undefined;
  protocol?: StoredProtocol | undefined;
  /** As `CacheEntry` has them. */
  unattended?: true | undefined;
  cachedAt?: number | undefined;
}

/** A list of tools and when it was listed, in milliseconds since the epoch. */
type Dated = Pick<KnownTools, "tools" | "cachedAt">;

/**
 * Whether the server lists nothing at all, as far as it is known. That is as good as unknown: a gateway answers so while its
 * backends start.
 */
export const listsNothing = ({
  held,
  resources,
  prompts,
  skills,
}: Pick<ServerLists, "held" | "resources" | "prompts" | "skills">): boolean => {
  const counts = [resources?.resources, resources?.templates, prompts, skills].map(
    (list) => list?.length ?? 0,
  );
  return (held ? listMark(held).count : 0) === 0 && counts.every((count) => count === 0);
};

/** The server has trouble or too much to do, and may accept the same request later. */
const isBusy = ({ data }: ThreadsError): boolean => data?.reason === "busy";

/** For how long a server that refuses a list is left alone: as long as it asks for, like calls after a failed connect. */
export const busyMs = (error: unknown): number =>
  error instanceof ThreadsError
    ? Math.min(Number(error.data?.retryAfterMs ?? 0), LIMITS.retryAfterFailureMs)
    : 0;

/** What is known of the server holds although it has not listed its tools: it has connected, and may be slow or busy. */
const maySkip = (error: unknown, { transport }: Connection): boolean =>
  error instanceof ThreadsError &&
  (isBusy(error) || (error.code === "connect_timeout" && transport !== "stdio"));

/**
 * Both lists as one. Undefined: the second has nothing more, or one server may not list as much as that. A server whose tools have
 * other names in each session would have more of them after each.
 */
function withMissing(listed: readonly CachedTool[], { tools, cachedAt }: Dated): Dated | undefined {
  const known = readList(tools);
  const now = new Map(listed.map((tool) => [tool.name, tool]));
  if (known.every(({ name }) => now.has(name))) return undefined;
  const merged = new Map([...known.map((tool) => [tool.name, tool] as const), ...now]);
  if (merged.size > LIMITS.toolsPerServer) return undefined;
  const all = keepSame(known, [...merged.values()]);
  if (all !== known && JSON.stringify(all).length > LIMITS.listBytes) return undefined;
  return { tools: all === known ? tools : all, cachedAt };
}

export abstract class ServerLists {
  /** The tools, which may not have been read yet. Undefined until a list came from the server or the cache. */
  held: ToolList | undefined;
  instructions: string | undefined;
  /** Undefined until they are known. Shown as tools if the definition says so. */
  resources: CachedResources | undefined;
  /** Undefined until they are known. Shown as commands if the definition says so. */
  prompts: CachedPrompt[] | undefined;
  /** Undefined: the server serves none, or they are not known yet. */
  skills: CachedSkill[] | undefined;
  /** Until when they count by the server's own words, in milliseconds since the epoch. */
  protected skillsFreshUntil = 0;
  /** What the next connection, and the next session, may rely on. Undefined: an old era, or nothing is known. */
  protocol: StoredProtocol | undefined;
  /** Whether the lists are this definition's own, and not inherited from the server that it replaced. */
  hasOwnLists = false;
  /** When its tools were listed, in this session or an earlier one, in milliseconds since the epoch. */
  listedAt: number | undefined;
  #isUnattended = false;
  readonly #mayAsk: boolean;
  /** What sessions with a person know, in one that can ask nobody. */
  #attended: Dated | undefined;
  /** `withLeftOut` of these lists. */
  #merged: { held: ToolList; attended: Dated; made: Dated | undefined } | undefined;
  protected readonly lifetime = new AbortController();
  /** When the tools were asked for that the server listed last, by `performance.now`. */
  #listedAtMs = Number.NEGATIVE_INFINITY;
  /** The list is older than what the server has, as far as its answers tell. */
  #isDoubted = false;
  /** False: a request that relied on what is remembered has failed. */
  #isTrusted = true;
  /** What the server listed itself beside its tools: the cache's answer may come later, and is older. */
  readonly #listed: Pick<KnownTools, "resources" | "prompts" | "skills"> = {};
  /** Connections over which the server has listed its tools. */
  readonly #listedOver = new WeakSet<Connection>();
  /** Settles when the open connection's resources are listed. Never rejects. */
  #resourcesListed: Promise<void> = Promise.resolve();

  /** The definition that holds now: an edit may change it. */
  abstract readonly definition: ServerDefinition;
  abstract readonly log: ServerLog;
  /** False for a connection that was replaced: its lists no longer count. */
  protected abstract isHeld(connection: Connection): boolean;
  /** A list arrived after nobody waited for it any longer. */
  protected abstract onLateList(): void;

  /** `mayAsk`: a person can be asked in this session. */
  constructor(mayAsk: boolean) {
    this.#mayAsk = mayAsk;
  }

  /** A server that can ask nobody may leave out the tools for which it would. */
  get #mayOfferLess(): boolean {
    return !this.#mayAsk && (this.definition.elicitation || this.definition.sampling);
  }

  /** As `CacheEntry` has it. */
  get isUnattended(): boolean {
    return this.#isUnattended && !this.#attended;
  }

  /**
   * What the next session may know, if the server has listed less than sessions with a person know: nobody can tell whether it leaves
   * a tool out or has it no longer, so these go as they would without this session, by their age. The same list for the same lists.
   */
  get withLeftOut(): Dated | undefined {
    const { held } = this;
    const attended = this.#attended;
    if (!attended || !held || held === attended.tools) return undefined;
    if (this.#merged?.held !== held || this.#merged.attended !== attended)
      this.#merged = { held, attended, made: withMissing(readList(held), attended) };
    return this.#merged.made;
  }

  /** Undefined until a list came from the server or the cache. The same list stays the same object. */
  get tools(): CachedTool[] | undefined {
    return this.held && readList(this.held);
  }

  /** Counted without reading them. */
  get toolCount(): number {
    return this.held ? listMark(this.held).count : 0;
  }

  /**
   * The server listed its tools. Those that are known and the same need not be read, nor compared value by value, which takes ten
   * times as long as their hash: only of a list that differs, which may be in the order of its keys alone.
   */
  #take(listed: CachedTool[]): void {
    if (this.held && listMark(this.held).hash === listMark(listed).hash) return;
    const same = keepSame(this.tools, listed);
    if (same !== this.tools) this.held = same;
  }

  #noteListed(connection: Connection, askedAtMs: number): void {
    this.#listedOver.add(connection);
    this.#listedAtMs = askedAtMs;
    this.listedAt = Date.now();
    this.#isUnattended = this.#mayOfferLess;
    this.#isDoubted = false;
  }

  /**
   * The server refuses a tool of its list as it would one that it does not have. It may mean the arguments as well, so a list that has
   * just come is not doubted: some gateways send theirs in a hundred pages.
   */
  doubtList(): void {
    this.#isDoubted ||= performance.now() - this.#listedAtMs >= LIMITS.refreshLongestMs;
  }

  /** `isUrgent`: a call waits, which need not ask the server first. */
  protected remembered(isUrgent: boolean): RememberedServer | undefined {
    const { protocol, held, instructions } = this;
    if (!this.hasOwnLists || !held || protocol?.version !== MODERN_VERSION) return undefined;
    return { protocol, tools: readList(held), instructions, isTrusted: isUrgent && this.#isTrusted };
  }

  /** What is remembered did not hold for a request. `isWrong`: the server is of another era. */
  protected distrustMemory(isWrong: boolean): void {
    this.#isTrusted = false;
    if (isWrong) this.protocol = undefined;
  }

  /** The server may have been called, and have listed something itself, while the cache was read. */
  protected restoreLists(known: KnownTools): void {
    if (this.#mayOfferLess && !known.unattended) this.#attended = known;
    if (this.hasOwnLists) return;
    this.inherit({ ...known, held: known.tools, ...this.#listed });
    this.protocol = known.protocol;
    this.listedAt = known.cachedAt;
    this.#isUnattended = known.unattended === true;
    this.hasOwnLists = true;
  }

  /** Shows the lists of the server that this one replaces, until this one has listed its own. */
  inherit({
    held,
    instructions,
    resources,
    prompts,
    skills,
  }: Omit<KnownTools, "tools"> & Pick<ServerLists, "held">): void {
    this.held = held;
    this.instructions = instructions;
    this.resources = resources;
    this.prompts = prompts;
    this.skills = skills;
  }

  /**
   * Lists everything over a new connection. Where the server is too busy or too slow to list its tools, those that are known
   * stay, and can be called, and `again` gets the time to wait before they are asked for. Throws what listing the tools throws,
   * or the signal's reason.
   */
  protected async list(
    connection: Connection,
    signal: AbortSignal,
    again: (leastMs: number) => void,
  ): Promise<void> {
    const askedAtMs = performance.now();
    const beside = this.#listBeside(connection);
    const listed = await connection.listTools(signal).catch((error: unknown) => {
      if (!this.hasOwnLists || !maySkip(error, connection) || signal.aborted) throw error;
      again(busyMs(error));
      this.log.note(`cannot list its tools now, and keeps those of before: ${messageOf(error)}`);
    });
    await beside;
    if (listed) this.#take(listed);
    this.instructions = connection.instructions;
    signal.throwIfAborted();
    if (!listed) return;
    this.#noteListed(connection, askedAtMs);
    this.hasOwnLists = true;
    this.#isTrusted = true;
    this.protocol = connection.memory();
  }

  /** Whether the server has listed its tools over this connection: else what is known is as old as it was. */
  protected hasListed(connection: Connection): boolean {
    return this.#listedOver.has(connection);
  }

  /**
   * Lists everything once more over an open connection. Answers false if the connection was replaced meanwhile. Throws
   * what listing the tools throws.
   */
  protected async listAgain(connection: Connection): Promise<boolean> {
    const askedAtMs = performance.now();
    const beside = this.#listBeside(connection);
    const tools = await during(this.lifetime.signal, (signal) => connection.listTools(signal));
    await beside;
    if (!this.isHeld(connection)) return false;
    this.#noteListed(connection, askedAtMs);
    this.#take(tools);
    this.instructions = connection.instructions;
    this.protocol = connection.memory();
    return true;
  }

  /**
   * Lists resources and prompts. Settles when both are known, or after a moment: a server that is slow with them has its
   * tools anyway.
   */
  async #listBeside(connection: Connection): Promise<void> {
    const { note } = this.log;
    let isLate = false;
    const list = async <T>(lists: (signal: AbortSignal) => Promise<T>, take: (listed: T) => void) => {
      const listed = await during(this.lifetime.signal, lists);
      if (!this.isHeld(connection)) return;
      take(listed);
      if (isLate && this.hasListed(connection)) this.onLateList();
    };
    if (this.definition.exposeResources) {
      this.#resourcesListed = list(connection.listResources, (listed) => {
        this.resources = mergeListed(this.resources, listed, note);
        this.#listed.resources = this.resources;
      });
    }
    const promptsListed = list(connection.listPrompts, (listed) => {
      if (!listed) return;
      this.prompts = keepSame(this.prompts, listed);
      this.#listed.prompts = this.prompts;
    }).catch((error) => note(`its prompts could not be kept: ${messageOf(error)}`));
    const isWanted = this.definition.skillPolicy.use !== false;
    const skillsListed =
      isWanted && connection.skills
        ? list(connection.listSkills, (listed) => {
            // A list that fails leaves the tool that takes an address: the server may serve skills that it cannot list.
            if (!listed) this.skills ??= [];
            if (!listed) return;
            this.skills = keepSame(this.skills, listed.skills);
            this.#listed.skills = this.skills;
            this.skillsFreshUntil = listed.freshUntil;
            this.#toldSkills.clear();
          }).catch((error) => note(`its skills could not be kept: ${messageOf(error)}`))
        : undefined;
    if (!skillsListed) this.skills = undefined;
    await settledWithin(
      Promise.all([this.#resourcesListed, promptsListed, skillsListed]),
      LIMITS.resourcesWaitMs,
    );
    isLate = true;
  }

  /**
   * The server's name of a tool. A resumed session without a snapshot knows a tool by its name in Pi, which may be
   * shortened or have other characters.
   */
  nameOf(written: string): string {
    const offered = allTools(this);
    if (offered.some(({ name }) => name === written)) return written;
    const meant = offered.filter(({ name }) =>
      localSpellingsOf(this.definition.name, name).includes(written),
    );
    return meant.length === 1 && meant[0] ? meant[0].name : written;
  }

  /** Entries that the server told one by one, which are newer than its list, and until when each counts. */
  readonly #toldSkills = new Map<string, { skill: CachedSkill; until: number }>();

  heldSkill(uri: string): { skill: CachedSkill; isStale: boolean } | undefined {
    const told = this.#toldSkills.get(uri);
    if (told) return { skill: told.skill, isStale: Date.now() >= told.until };
    const skill = this.skills?.find((one) => one.uri === uri);
    return skill && { skill, isStale: Date.now() >= this.skillsFreshUntil };
  }

  /** Whether there is doubt, or the list of skills is older than the server said that it counts. A list from the cache has no time. */
  protected get areListsStale(): boolean {
    return this.#isDoubted || (this.skillsFreshUntil > 0 && Date.now() >= this.skillsFreshUntil);
  }

  holdSkill(skill: CachedSkill): void {
    this.#toldSkills.delete(skill.uri);
    this.#toldSkills.set(skill.uri, { skill, until: Date.now() + FRESH_LEAST_MS });
    for (const oldest of this.#toldSkills.keys())
      if (this.#toldSkills.size > LIMITS.skillsPerServer) this.#toldSkills.delete(oldest);
  }

  /** Skills of which a file was not what was listed -> the content that was listed. */
  readonly #brokenSkills = new Map<string, string>();

  /**
   * A file of the skill was read, and was what was listed, or not: then the server is asked anew at the next load, and nothing
   * but its SKILL.md is read before that has been found sound.
   */
  skillRead({ uri: read, skill: { uri, content } }: ExpectedFile, isSound: boolean): void {
    if (isSound && read === uri) this.#brokenSkills.delete(uri);
    if (isSound) return;
    this.#brokenSkills.set(uri, content);
    const held = this.heldSkill(uri);
    if (held) this.#toldSkills.set(uri, { skill: held.skill, until: 0 });
  }

  /** Whether a file of just this content was not what was listed. */
  isBrokenSkill(skill: CachedSkill): boolean {
    return this.#brokenSkills.get(skill.uri) === contentOf(skill);
  }

  /** The tool of that name that loads a skill; undefined for any other tool. */
  skillTool(tool: string): SkillTool | undefined {
    return skillTools(this, this.tools ?? NO_TOOLS).get(tool);
  }

  /** The URI that a tool for a resource reads; undefined for any other tool. */
  async uriOf({ tool, args, signal }: Omit<CallRequest, "timeoutMs">): Promise<string | undefined> {
    const { name, exposeResources } = this.definition;
    if (!exposeResources) return undefined;
    await abortable(this.#resourcesListed, signal, `${name}/${tool}`);
    const uri = resourceTools(this.resources, this.tools ?? [])
      .get(tool)
      ?.uriOf(args);
    // A file of a skill is read as a part of the skill alone, which checks it.
    const skill = uri === undefined ? undefined : skillWith(this, uri);
    if (skill) throw fileOfSkill(name, skill);
    return uri;
  }
}
