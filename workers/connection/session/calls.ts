/**
 * What a server gives the model: a tool's call, whose result is shaped and answered as bytes, and the prompt or resource that
 * a person hands to the model. Suggestions for a person who types start no server and never fail. Connects only where a
 * call, a prompt or a resource needs the server.
 */

import type {
  CallProgress,
  CallToolParams,
  ShownResource,
  SuggestedResource,
} from "../../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CachedResource, CachedTemplate } from "../../shared/listed.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { createProgressPacer } from "../../shared/pace/pace.ts";
import { isPage } from "../../shared/signs.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { heldIn } from "../messages/heavy.ts";
import { shapeAnywhere } from "../results/anywhere.ts";
import type { Results } from "../results/results.ts";
import type { Shaped } from "../results/shape.ts";
import { redactError } from "../secrets/redact.ts";
import { callTool } from "../servers/call.ts";
import { pageOfApp } from "../servers/status.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { changedFile, fileOfSkill } from "../skills/load.ts";
import { shownSkills, skillWith } from "../skills/tools.ts";
import type { SessionRequests } from "./first-request.ts";

interface CallContext {
  supervisor: Pick<Supervisor, "get" | "servers">;
  emit: (event: WorkerEvent) => void;
  signal: AbortSignal;
  results: Pick<Results, "store" | "settingsFor" | "called">;
}

/** Answers a msgpackr-encoded `CallResult`. Throws `ThreadsError` without secrets of the server's definition. */
export async function runCall(
  params: CallToolParams,
  context: CallContext,
): Promise<Uint8Array<ArrayBuffer>> {
  const { server, tool, callId } = params;
  const { supervisor, emit, signal, results } = context;
  const called = supervisor.get(server);
  const progress = createProgressPacer<CallProgress>(LIMITS.progressIntervalMs, (latest) =>
    emit({ type: "progress", callId, ...latest }),
  );
  let startedAt = performance.now();
  const onYes = (): void => {
    startedAt = performance.now();
  };
  const record = (result?: Shaped, error?: unknown): void => {
    const entry = {
      at: Date.now(),
      server,
      tool,
      failed: result?.isError ?? true,
      receivedBytes: result?.sizes?.received ?? 0,
      shownBytes: result?.sizes?.shown ?? 0,
      savedTextBytes: result?.sizes?.savedText ?? 0,
      durationMs: Math.round(performance.now() - startedAt),
    };
    results.called(entry, result ? undefined : toWireError(error).code);
  };
  try {
    const onProgress = progress.push;
    const { byPerson } = params;
    const asked = { callId, tool, args: params.args, signal, onProgress, ...(byPerson ? { byPerson } : {}) };
    const { result, file } = await callTool(called, asked, onYes);
    const durationMs = performance.now() - startedAt;
    const wantsStructured = params.wantsStructured === true;
    const shaped = await shapeAnywhere(result, {
      server,
      tool,
      durationMs,
      store: results.store,
      wantsStructured,
      redact: called.redact,
      secrets: called.secrets,
      ...results.settingsFor(called, supervisor.servers, called.nameOf(tool)),
      // A command of Pi makes a message of a skill, one of the shell prints it.
      ...(file && {
        file: { ...file, forPerson: wantsStructured && byPerson === true },
        asMessage: !wantsStructured && byPerson === true,
      }),
    });
    if (file) called.skillRead(file, shaped.problem === undefined);
    if (file && shaped.problem !== undefined) throw changedFile(server, file, shaped.problem);
    record(shaped);
    return shaped.bytes;
  } catch (error) {
    record(undefined, error);
    throw redactError(error, called.redact);
  } finally {
    progress.stop();
  }
}

interface HandOverParts {
  supervisor: Pick<Supervisor, "get" | "servers">;
  results: Pick<Results, "store" | "settingsFor">;
}

interface HandedOver {
  server: ReturnType<Supervisor["get"]>;
  /** Of the prompt or the resource. */
  name: string;
  /** Of `performance.now()`. */
  startedAt: number;
  /** The result also holds what the server sent, unchanged. */
  wantsStructured?: boolean;
}

/** Answers a msgpackr-encoded `CallResult`. */
async function handOver(
  result: CallToolResult,
  { server, name, startedAt, wantsStructured = false }: HandedOver,
  { supervisor, results }: HandOverParts,
): Promise<Uint8Array<ArrayBuffer>> {
  const { bytes } = await shapeAnywhere(result, {
    server: server.name,
    tool: name,
    durationMs: performance.now() - startedAt,
    store: results.store,
    wantsStructured,
    redact: server.redact,
    secrets: server.secrets,
    ...results.settingsFor(server, supervisor.servers),
    toon: false,
    asMessage: true,
  });
  return bytes;
}

type PromptRequests = Pick<SessionRequests, "getPrompt" | "completePrompt">;

interface PromptParts extends HandOverParts {
  started: Promise<unknown>;
}

/** Suggestions that are kept, because a person types on and goes back, and for how long: a server may have others later. */
const KEPT = 50;
const KEPT_MS = 20_000;

async function getPrompt(
  { server: name, prompt, args, wantsStructured = false }: Parameters<PromptRequests["getPrompt"]>[0],
  signal: AbortSignal,
  { supervisor, results }: PromptParts,
): Promise<Uint8Array<ArrayBuffer>> {
  const server = supervisor.get(name);
  const startedAt = performance.now();
  try {
    const result = await abortable(
      server.use((connection) => connection.getPrompt({ prompt, args, signal })),
      signal,
      `${name}/${prompt}`,
    );
    if (result.content.length === 0 && !heldIn(result)) {
      throw new ThreadsError(
        "call_rejected",
        `${name} answered the prompt ${oneLine(prompt, 200)} without messages.`,
      );
    }
    return await handOver(
      result,
      { server, name: prompt, startedAt, wantsStructured },
      { supervisor, results },
    );
  } catch (error) {
    throw redactError(error, server.redact);
  }
}

export function createPromptRequests(parts: PromptParts): PromptRequests {
  const kept = new Map<string, { values: string[]; untilMs: number }>();
  let newest: AbortController | undefined;
  return {
    getPrompt: async (params, signal) => {
      await parts.started;
      return getPrompt(params, signal, parts);
    },
    completePrompt: async (params) => {
      const key = JSON.stringify(params);
      const before = kept.get(key);
      if (before && performance.now() < before.untilMs) return before.values;
      // The person has typed on: nobody needs the answer to what was typed before.
      newest?.abort();
      newest = new AbortController();
      const { server: name, ...request } = params;
      const server = parts.supervisor.servers.find((one) => one.name === name);
      const { signal } = newest;
      const values = await server
        ?.ifConnected((connection) => connection.complete({ ...request, signal }))
        // The server does not complete this, or is slow: the person types on.
        ?.catch(() => undefined);
      if (!values) return [];
      const shown = values.filter((value) => oneLine(value, LIMITS.completionChars) === value);
      kept.delete(key);
      if (shown.length > 0) kept.set(key, { values: shown, untilMs: performance.now() + KEPT_MS });
      for (const oldest of kept.keys()) if (kept.size > KEPT) kept.delete(oldest);
      return shown;
    },
  };
}

type ResourceRequests = Pick<
  SessionRequests,
  "listSkills" | "listResources" | "readResource" | "suggestResources"
>;

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

/** Of all servers those are meant that may run. */
const isMeant = ({ name, definition }: Supervisor["servers"][number], only: string | undefined): boolean =>
  only === undefined ? definition.enabled : name === only;

export function createResourceRequests(parts: ResourceParts): ResourceRequests {
  const { started, supervisor } = parts;
  return {
    listResources: async ({ server: only }) => {
      await started;
      return supervisor.servers
        .filter((server) => isMeant(server, only))
        .map(({ name, resources }) => ({
          server: name,
          resources: resources?.resources.map(shown),
          templates: resources?.templates.map(shown) ?? [],
        }));
    },
    listSkills: async ({ server: only }) => {
      await started;
      return supervisor.servers
        .filter((server) => isMeant(server, only))
        .map((server) => ({
          server: server.name,
          policy: server.definition.skillPolicy.use,
          skills: server.skills && shownSkills(server),
        }));
    },
    suggestResources: async ({ typed }) => {
      const wanted = typed.toLowerCase();
      const servers = supervisor.servers.filter((server) => isMeant(server, undefined));
      const ranked = servers.flatMap((server) =>
        (server.resources?.resources ?? []).flatMap((resource) => {
          if (skillWith(server, resource.uri)) return [];
          const { name } = server;
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
      if (isPage(uri)) throw redactError(pageOfApp(name, uri), server.redact);
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
          server.use(async (connection) => {
            // A mention brings the text to the model, and a skill's text comes there checked and with its gate alone. Not sooner:
            // the server may have told of its skills only now.
            const skill = wantsStructured ? undefined : skillWith(server, uri);
            if (skill) throw fileOfSkill(name, skill);
            return connection.readResource(request);
          }),
          signal,
          `${name}/${oneLine(uri, LIMITS.resourceTitleChars)}`,
        );
        return await handOver(result, { server, name: uri, startedAt, wantsStructured }, parts);
      } catch (error) {
        throw redactError(error, server.redact);
      }
    },
  };
}
