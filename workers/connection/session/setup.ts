/**
 * The requests by which a person sets servers up: look at an entry, try it, add it, remove a server, and take over what
 * other programs have configured. What is written is applied like any edit. Called by: requests.ts.
 */

import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { ProposedServer, RemovedServer, SetupRequests } from "../../../src/shared/protocol/setup.ts";
import { advice, commandFor } from "../../shared/commands.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { realFile, textOf, writeAdded, writeRemoved } from "../config/edit/edit.ts";
import { editAdded, editRemoved, type NewEntry } from "../config/edit/entries.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { configSources } from "../config/files/sources.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { explainAbsent } from "./explain-server.ts";
import { type Applied, findImports, takeImports } from "./found-imports.ts";
import type { SessionRequests } from "./handler.ts";
import { checkedDefinition, definedIn, parseProposed, previewServer } from "./proposed.ts";
import { removedFrom } from "./removed-from.ts";

export type SetupHandlers = Pick<SessionRequests, keyof SetupRequests>;

export interface SetupParts {
  started: Promise<RunningConfiguration>;
  supervisor: Pick<Supervisor, "servers" | "tryServer">;
}

/** Applies an own write: the text that runs with this change alone, or the whole file if that text cannot be edited. */
const appliedBy =
  (running: RunningConfiguration): Applied =>
  async (file, edit) => {
    let text: string;
    try {
      text = edit(running.applied.texts.get(file));
    } catch (error) {
      if (!(error instanceof ThreadsError)) throw error;
      text = (await textOf(file)) ?? "";
    }
    await running.written({ file, text });
  };

/** Why the server that was written does not run; undefined if it may. */
function whyIdle(
  name: string,
  file: string,
  { supervisor, running }: { supervisor: SetupParts["supervisor"]; running: RunningConfiguration },
): string | undefined {
  const counts = running.configured(name);
  if (counts && counts.file !== file) return `The server ${name} of ${counts.file} counts in its place.`;
  if (supervisor.servers.some((server) => server.name === name)) return undefined;
  return explainAbsent(name, running.state)?.message;
}

async function addServer(
  proposal: ProposedServer & { replace?: boolean },
  running: RunningConfiguration,
  supervisor: SetupParts["supervisor"],
): ReturnType<SetupHandlers["addServer"]> {
  const { name, entry, project, replace = false } = proposal;
  const proposed = parseProposed(proposal, running);
  const definition = checkedDefinition(proposed, name);
  const { file } = proposed;
  const existing = running.configured(name);
  if (existing && !replace) throw nameTaken(name, existing.file);
  const written = await realFile(file, running.facts);
  const entries = [{ name, entry: entry as NewEntry["entry"] }];
  // The person who adds a server to the project has seen it: nothing is asked once more. The yes comes before the file,
  // which is followed and applied as soon as it is written.
  const unsaved = project
    ? await running.allowAsUser(definition).catch((error: unknown) => error)
    : undefined;
  await writeAdded(file, entries, replace);
  await appliedBy(running)(file, (text) => editAdded(text, entries, { file, replace: true }));
  if (unsaved) throw unsaved;
  const but = whyIdle(name, file, { supervisor, running });
  return { file: written, ...(but === undefined ? {} : { but }) };
}

const nameTaken = (name: string, file: string): ThreadsError =>
  new ThreadsError("bad_config", `A server named ${name} is configured in ${file} already.`, {
    remedy: "Choose another name, or replace it with --replace.",
    data: { file },
  });

/** Why a server that is in no file of ours cannot be removed. */
function notOurs({ name, origin, file }: ServerDefinition): ThreadsError {
  const whose =
    origin === "extension"
      ? `The extension ${file} registers`
      : `${file}, a file of another program, defines`;
  const remedy =
    origin === "extension"
      ? `Disable it: ${commandFor("disable", name)}.`
      : `Disable it: ${commandFor("disable", name)}. Or take the program out of imports in your mcp.json.`;
  return new ThreadsError("bad_config", `${whose} the server ${name}, so it cannot be removed here.`, {
    remedy,
    data: { file, server: name },
  });
}

/** The file of ours from which the server is removed. Throws what explains that there is none. */
async function fileOf(
  name: string,
  running: RunningConfiguration,
  wanted: string | undefined,
): Promise<string> {
  const sources = configSources(running.facts);
  const definition = running.configured(name);
  if (definition && !sources.some(({ file }) => file === definition.file)) throw notOurs(definition);
  const own = await Promise.all(
    sources.map(async (source) => ({ source, text: await textOf(source.file).catch(() => undefined) })),
  );
  const file = removedFrom(name, own, { wanted, inEffect: definition?.file });
  if (file !== undefined) return file;
  throw (
    explainAbsent(name, running.state) ??
    new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
      remedy: advice("lists"),
      data: { known: [] },
    })
  );
}

async function removeServer(
  name: string,
  running: RunningConfiguration,
  wanted: string | undefined,
): Promise<RemovedServer> {
  const file = await fileOf(name, running, wanted);
  const overrides = running.configured(name)?.overrides ?? [];
  const applied = appliedBy(running);
  const remove = async (from: string): Promise<string> => {
    const real = await realFile(from, running.facts);
    await writeRemoved(from, name);
    await applied(from, (text) => (text === undefined ? "" : editRemoved(text, name, from)));
    return real;
  };
  const real = await remove(file);
  const still = running.configured(name);
  if (still) return { file: real, still: definedIn(still) };
  // What other files change of the server is a mistake without it.
  const also = overrides.filter((from) => from !== file);
  for (const from of also) await remove(from);
  return { file: real, ...(also.length === 0 ? {} : { also }) };
}

export function createSetupRequests({ started, supervisor }: SetupParts): SetupHandlers {
  let open: { signal: AbortSignal; ended: Promise<unknown> } | undefined;
  return {
    previewServer: async (proposal) => previewServer(proposal, await started),
    tryServer: async (proposal, signal) => {
      const running = await started;
      const definition = checkedDefinition(parseProposed(proposal, running), proposal.name);
      // One that was cancelled is ending, and is waited for.
      while (open?.signal.aborted) await open.ended;
      if (open) {
        throw new ThreadsError("bad_config", "Another server is being tried.", {
          remedy: "Wait for its end, or cancel it.",
        });
      }
      const trial = supervisor.tryServer(definition, signal);
      const ended = trial.then(
        () => undefined,
        () => undefined,
      );
      open = { signal, ended };
      try {
        return await trial;
      } finally {
        open = undefined;
      }
    },
    addServer: async (proposal) => addServer(proposal, await started, supervisor),
    removeServer: async ({ server, file }) => removeServer(server, await started, file),
    findImports: async () => findImports(await started),
    takeImports: async (wish) => {
      const running = await started;
      return takeImports(wish, running, appliedBy(running));
    },
  };
}
