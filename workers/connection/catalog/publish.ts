/**
 * Publications of the catalog: what the task of one holds, what it removed from the one before, and how a catalog gets
 * through although one server may be too much for the cache worker, because its tools take for ever, need more memory than
 * there is, or make the worker fail. Knows nothing of threads: a publication that fails answers undefined.
 */

import { hash } from "node:crypto";
import { basename } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CatalogSettings, RemovedTools, SessionLimits } from "../../../src/shared/protocol/session.ts";
import { type CachedPrompt, listMark, readList, withoutTools } from "../../shared/listed.ts";
import type {
  CatalogServer,
  PromptCommand,
  PublishedTool,
  PublishResult,
  PublishTask,
} from "../../shared/tasks.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/server.ts";
import { connectsShared } from "../servers/state.ts";
import { skillTools } from "../skills/tools.ts";
import { exposedTools, grantedWishes, NO_TOOLS, prefixOf, type ToolServer } from "../tools/listed.ts";
import type { CacheWorker } from "./cache-worker.ts";

const DESCRIPTION_CHARS = 250;
/** For codemode scripts and `tool_search`, which show or rank the whole text. */
const INSTRUCTIONS_CHARS = 4_000;
/** The index reads no more characters of `about`. */
const ABOUT_CHARS = 600;
/** The first line without its heading mark, because a server's instructions may be a Markdown page. */
const firstLine = (text: string | undefined): string | undefined =>
  text
    ?.trim()
    .split("\n", 1)[0]
    ?.replace(/^#+\s*/, "")
    .slice(0, DESCRIPTION_CHARS);

/** A server as a catalog has it. */
export type CatalogSource = ToolServer & Pick<Server, "prompts" | "instructions">;

/** The server as the next session may know it. */
export function asNext(server: Server): CatalogSource {
  const { name, definition, withLeftOut, resources, skills, prompts, instructions, redact } = server;
  if (!withLeftOut) return server;
  const { tools: held } = withLeftOut;
  return {
    ...{ name, definition, held, tools: readList(held), resources, skills, prompts, instructions, redact },
    excludes: (tool) => server.excludes(tool),
  };
}

const noPrompts: CachedPrompt[] = [];
const commandsMade = new WeakMap<object, { prompts: object; commands: PromptCommand[] }>();

/** The prompts and skills that become commands: the same list for the same lists, by which new ones are known. */
function commandsOf(server: CatalogSource): PromptCommand[] {
  const prompts = server.definition.exposePrompts ? (server.prompts ?? noPrompts) : noPrompts;
  if (!server.skills) return prompts;
  const skills = skillTools(server, server.tools ?? NO_TOOLS);
  if (skills.size === 0) return prompts;
  const before = commandsMade.get(skills);
  if (before?.prompts === prompts) return before.commands;
  const ofSkills = [...skills.values()].flatMap(({ skill, tool }) =>
    skill ? [{ name: skill.name, description: skill.description, skillTool: tool.name }] : [],
  );
  const commands = [...prompts, ...ofSkills];
  commandsMade.set(skills, { prompts, commands });
  return commands;
}

/** The name holds a hash of the code that decides which tools are published (esbuild, `chunkNames`). */
const CODE = basename(import.meta.url);

/** Everything that the tools of a server are made of, as a hash. */
function listedOf(
  { held, resources, skills, definition }: CatalogSource,
  { directTools }: Settings,
  wished: ReadonlySet<string> | undefined,
): string {
  const { userRules, exposure, toolExposure, includeTools, excludeTools, searchKeywords } = definition;
  const rules = { userRules, exposure, toolExposure, includeTools, excludeTools, searchKeywords };
  const { exposeResources, skillPolicy, directTools: own } = definition;
  const made = { resources: exposeResources && resources, skills, skillPolicy };
  const all = [CODE, held && listMark(held).hash, rules, own, directTools, made, [...(wished ?? [])]];
  return hash("sha256", JSON.stringify(all));
}

/** The tools as they are now, made when somebody reads them. */
function laterTools(
  { name, definition, held, resources, skills }: CatalogSource,
  settings: Settings,
  wished: ReadonlySet<string> | undefined,
): () => PublishedTool[] {
  let made: PublishedTool[] | undefined;
  return () => {
    made ??= exposedTools(
      { name, definition, tools: held && readList(held), resources, skills },
      settings,
      wished,
    );
    return made;
  };
}

function catalogServer(
  server: CatalogSource,
  settings: Settings,
  wished: ReadonlySet<string> | undefined,
): CatalogServer {
  const tools = laterTools(server, settings, wished);
  const instructions = server.instructions?.trim().slice(0, INSTRUCTIONS_CHARS);
  const words = [server.definition.description, server.instructions].filter(Boolean);
  const description = firstLine(words[0]);
  const commands = commandsOf(server);
  return {
    name: server.name,
    project: server.definition.project,
    toolsKnown: server.held !== undefined,
    ...(description ? { description } : {}),
    ...(words.length > 0 ? { about: words.join("\n").slice(0, ABOUT_CHARS) } : {}),
    ...(instructions ? { instructions } : {}),
    ...(commands.length > 0 ? { prompts: commands } : {}),
    ...(server.skills && server.definition.skillPolicy.use === "allow" ? { skillsRun: true as const } : {}),
    prefix: prefixOf(server, settings),
    listed: listedOf(server, settings, wished),
    get tools() {
      return tools();
    },
  };
}

/** `configFiles`: the files that the configuration was read from. */
export const publishTask = (
  servers: readonly CatalogSource[],
  settings: Settings,
  configFiles: readonly string[],
): PublishTask => {
  const wishes = grantedWishes(servers, settings);
  return {
    servers: servers.map((server) => catalogServer(server, settings, wishes.get(server.name))),
    settings: {
      ...catalogSettings(settings, configFiles),
      ...(servers.some(connectsShared) ? { shared: true as const } : {}),
    },
  };
};

/** `files`: the files that the configuration was read from. */
export const catalogSettings = (
  { search, catalog, proxyTool, autoAuth }: Settings,
  files: readonly string[],
): CatalogSettings => ({ search, catalog, proxyTool, autoAuth, files });

const sameMembers = (one: object, other: object): boolean => {
  const entries = Object.entries(one);
  const others = other as Record<string, unknown>;
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([key, value]) => Object.hasOwn(other, key) && Object.is(value, others[key]))
  );
};

const sameButTools = (one: CatalogServer, other: CatalogServer): boolean => {
  const none = { tools: undefined, listed: undefined };
  return sameMembers({ ...withoutTools(one), ...none }, { ...withoutTools(other), ...none });
};

const sameList = ({ listed }: CatalogServer, other: CatalogServer): boolean =>
  listed !== undefined && listed === other.listed;

/** Members of `before` that `after` lacks. Undefined if `after` has others, or has them in another order. */
function missingIn<T>(
  before: readonly T[],
  after: readonly T[],
  same: (one: T, other: T) => boolean,
): T[] | undefined {
  const gone: T[] = [];
  let at = 0;
  for (const one of before) {
    const other = after[at];
    if (other !== undefined && same(one, other)) at++;
    else gone.push(one);
  }
  return at === after.length ? gone : undefined;
}

/** The servers and tools that `after` lacks; undefined if anything else differs, too. Nothing: both are the same. */
export function removedSince(before: PublishTask, after: PublishTask): RemovedTools | undefined {
  if (!sameMembers(before.settings, after.settings)) return undefined;
  const servers = missingIn(before.servers, after.servers, (one, other) => one.name === other.name);
  if (!servers) return undefined;
  const now = new Map(after.servers.map((server) => [server.name, server]));
  const tools: RemovedTools["tools"] = [];
  for (const server of before.servers) {
    const current = now.get(server.name);
    if (!current) continue;
    if (!sameButTools(server, current)) return undefined;
    const gone = sameList(server, current)
      ? []
      : missingIn<PublishedTool>(server.tools, current.tools, sameMembers);
    if (!gone) return undefined;
    for (const { name } of gone) tools.push({ server: server.name, tool: name });
  }
  return { servers: servers.map(({ name }) => name), tools };
}

/** Whether a server of `after` has prompts that it did not have in `before`. */
export function offersNewPrompts(before: PublishTask | undefined, after: PublishTask): boolean {
  const known = new Map(before?.servers.map(({ name, prompts }) => [name, prompts]));
  return after.servers.some(({ name, prompts }) => prompts !== undefined && known.get(name) !== prompts);
}

export const isNothing = ({ servers, tools }: RemovedTools): boolean =>
  servers.length === 0 && tools.length === 0;

/** How long a publication may take, in milliseconds. */
export interface PublishTimes {
  /** For all servers together. */
  wholeMs: number;
  /** For one server alone. */
  aloneMs: number;
  /** For all servers together, if each alone can be published. */
  slowMs: number;
  /** The end of a session waits this long for a publication, because the next start shows its snapshot. */
  finishMs: number;
}

export const publishTimes = ({
  publishMs,
  publishAloneMs,
}: Pick<SessionLimits, "publishMs" | "publishAloneMs"> = LIMITS): PublishTimes => ({
  wholeMs: publishMs,
  aloneMs: publishAloneMs,
  slowMs: LIMITS.publishSlowMs,
  finishMs: LIMITS.publishFinishMs,
});

const withNoTools = (server: CatalogServer): CatalogServer => ({
  ...withoutTools(server),
  ...(server.listed === undefined ? {} : { listed: "" }),
  tools: [],
});

/** The same task, in which the named servers have no tools. */
export const withoutToolsOf = (task: PublishTask, names: ReadonlySet<string>): PublishTask =>
  names.size === 0
    ? task
    : {
        ...task,
        servers: task.servers.map((server) => (names.has(server.name) ? withNoTools(server) : server)),
      };

/** Names of the largest servers that together have at least half of all tools. */
function largestHalf({ servers }: PublishTask): string[] {
  const bySize = servers
    .filter(({ tools }) => tools.length > 0)
    .sort((a, b) => b.tools.length - a.tools.length);
  let left = bySize.reduce((sum, { tools }) => sum + tools.length, 0) / 2;
  return bySize
    .filter(({ tools }) => {
      const isAmong = left > 0;
      left -= tools.length;
      return isAmong;
    })
    .map(({ name }) => name);
}

/**
 * Tries each server alone if the catalog as a whole fails, and leaves the tools of those out that failed: `leftOut`. No
 * `result`: nothing could be published, or the signal has fired because nobody waits any longer.
 */
export async function publishApart(
  task: PublishTask,
  { publish }: Pick<CacheWorker, "publish">,
  times: PublishTimes,
  signal: AbortSignal,
): Promise<{ result: PublishResult | undefined; leftOut: string[] }> {
  const nothing = { result: undefined, leftOut: [] };
  const whole = await publish(task, { limitMs: times.wholeMs, signal });
  if (whole) return { result: whole, leftOut: [] };
  const { stored: _stored, ...unstored } = task;
  const alone = (servers: PublishTask["servers"]): Promise<PublishResult | undefined> =>
    publish({ ...unstored, servers }, { limitMs: times.aloneMs, signal });
  // If a catalog without any server fails too, no server is to blame.
  if (signal.aborted || !(await alone([]))) return nothing;
  const leftOut = new Set<string>();
  for (const server of task.servers) {
    if (signal.aborted) return nothing;
    if (server.tools.length > 0 && !(await alone([server]))) leftOut.add(server.name);
  }
  // Each server alone can be published, and all together take long, so they get the time. If they still fail, the
  // largest servers are left out.
  for (;;) {
    if (signal.aborted) return nothing;
    const rest = withoutToolsOf(task, leftOut);
    const result = await publish(rest, { limitMs: times.slowMs, signal });
    if (result) return { result, leftOut: [...leftOut] };
    const more = largestHalf(rest);
    if (more.length === 0) return nothing;
    for (const name of more) leftOut.add(name);
  }
}

/**
 * Decides when the catalog is published: changes are gathered for a moment, one publication runs at a time, and changes
 * during it lead to one more.
 */
export class PublishLoop {
  readonly #publish: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  /** Changes that were requested, and those of them that a publication has dealt with. */
  readonly #changes = { requested: 0, done: 0 };
  #onDone = Promise.withResolvers<void>();

  /** `publish`: publishes everything that was requested before it started. */
  constructor(publish: () => Promise<void>) {
    this.#publish = publish;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Something changed: it is published soon. */
  request(): void {
    this.#changes.requested++;
    this.#timer ??= setTimeout(() => this.#start(), LIMITS.catalogDebounceMs);
  }

  /**
   * Publishes at once and settles when everything requested so far is published, or could not be. Later requests do not
   * count, because a server may report changes for ever.
   */
  async flush(): Promise<void> {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#start();
    }
    const { requested } = this.#changes;
    while (this.#running && this.#changes.done < requested) await this.#onDone.promise;
  }

  /** Publishes what waits, if `isWorthIt`, and settles when no publication runs. */
  async finish(isWorthIt: boolean): Promise<void> {
    const isDue = this.#timer !== undefined && isWorthIt;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (isDue) this.#start();
    while (this.#running) await this.#running;
  }

  #start(): void {
    this.#timer = undefined;
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const { requested } = this.#changes;
      try {
        await this.#publish();
      } finally {
        this.#changes.done = requested;
        this.#onDone.resolve();
        this.#onDone = Promise.withResolvers<void>();
      }
    } while (this.#again);
  }
}
