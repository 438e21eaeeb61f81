/**
 * Finds what one publication of the catalog removed from the one before. Values are compared by identity, because lists
 * of tools are replaced, never changed. Pure.
 */
import type { RemovedTools } from "../../../src/shared/protocol/catalog.ts";
import type { CatalogServer, PublishedTool, PublishTask } from "../../shared/tasks.ts";

const sameMembers = (one: object, other: object): boolean => {
  const entries = Object.entries(one);
  const others = other as Record<string, unknown>;
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([key, value]) => Object.hasOwn(other, key) && Object.is(value, others[key]))
  );
};

const sameButTools = (one: CatalogServer, other: CatalogServer): boolean =>
  sameMembers({ ...one, tools: undefined }, { ...other, tools: undefined });

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
    const gone = missingIn<PublishedTool>(server.tools, current.tools, sameMembers);
    if (!gone || !sameButTools(server, current)) return undefined;
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
