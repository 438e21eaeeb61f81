/**
 * The requests of a person who hands a resource to the model: which resources are known, which of them fit what is
 * typed, and the content of one. Only reading it connects to a server.
 */

import { encode, type ShownResource, type SuggestedResource } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CachedResource, CachedTemplate } from "../../shared/listed.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { redactError } from "../secrets/redact.ts";
import { type HandOverParts, handOver } from "./calls.ts";
import type { SessionRequests } from "./first-request.ts";

export type ResourceRequests = Pick<SessionRequests, "listResources" | "readResource" | "suggestResources">;

interface ResourceParts extends HandOverParts {
  started: Promise<unknown>;
}

const titleOf = ({ name, title, description }: CachedResource | CachedTemplate): string => {
  const called = title ?? name;
  const says = description === undefined || description === called ? "" : `: ${description}`;
  return oneLine(`${called}${says}`, LIMITS.resourceTitleChars);
};

const uriOf = (item: CachedResource | CachedTemplate): string =>
  "uri" in item ? item.uri : item.uriTemplate;

const shown = (item: CachedResource | CachedTemplate): ShownResource => ({
  uri: oneLine(uriOf(item), LIMITS.mentionChars),
  title: titleOf(item),
});

/** A mention ends at white space, and a sign at its end may belong to the sentence. */
const canBeTyped = (mention: string): boolean =>
  mention.length <= LIMITS.mentionChars &&
  /^\S*[^\s.,;:!?)\]}>'"`]$/.test(mention) &&
  oneLine(mention, LIMITS.mentionChars) === mention;

/** 0: the mention begins with what is typed; 1 and 2: what is typed stands in the mention, or in the title. */
function rankOf({ mention, title }: SuggestedResource, typed: string): number | undefined {
  const at = mention.toLowerCase().indexOf(typed);
  if (at !== -1) return Math.min(at, 1);
  return title.toLowerCase().includes(typed) ? 2 : undefined;
}

export function createResourceRequests(parts: ResourceParts): ResourceRequests {
  const { started, supervisor } = parts;
  return {
    listResources: async ({ server: only }) => {
      await started;
      return supervisor.servers
        .filter(({ name }) => only === undefined || name === only)
        .map(({ name, resources }) => ({
          server: name,
          resources: resources?.resources.map(shown),
          templates: resources?.templates.map(shown) ?? [],
        }));
    },
    suggestResources: async ({ typed }) => {
      const wanted = typed.toLowerCase();
      const ranked = supervisor.servers.flatMap(({ name, resources }) =>
        (resources?.resources ?? []).flatMap((resource) => {
          const suggested = { mention: `${name}:${resource.uri}`, title: titleOf(resource) };
          const rank = rankOf(suggested, wanted);
          return rank !== undefined && canBeTyped(suggested.mention) ? [{ suggested, rank }] : [];
        }),
      );
      const best = ranked.sort((a, b) => a.rank - b.rank).slice(0, LIMITS.suggestedResources);
      return best.map(({ suggested }) => suggested);
    },
    readResource: async ({ server: name, uri, wantsStructured = false }, signal) => {
      await started;
      const server = supervisor.get(name);
      const startedAt = performance.now();
      const request = {
        tool: uri,
        uri,
        signal,
        timeoutMs: LIMITS.promptTimeoutMs,
        onProgress: () => undefined,
      };
      try {
        const result = await abortable(
          server.use((connection) => connection.readResource(request)),
          signal,
          `${name}/${oneLine(uri, LIMITS.resourceTitleChars)}`,
        );
        return encode(await handOver(result, { server, name: uri, startedAt, wantsStructured }, parts));
      } catch (error) {
        throw redactError(error, server.redact);
      }
    },
  };
}
