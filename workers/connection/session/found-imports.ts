/**
 * The servers of other programs, for the person who chooses among them, and what the person chose: names of programs in
 * `imports`, or copies of entries. A copy is made of exactly what was shown.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type {
  FoundFile,
  FoundImports,
  FoundServer,
  TakeImports,
  TakenImports,
} from "../../../src/shared/protocol/setup.ts";
import { cleanText } from "../../../src/shared/text/unprintable.ts";
import { sameJson } from "../../shared/json.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { editableFile, textOf, writeAdded, writeImports } from "../config/edit/edit.ts";
import { editAdded, editImports, type NewEntry, namesIn } from "../config/edit/entries.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { findHosts, foundId, type HostFound } from "../config/found/found.ts";
import { DIALECTS } from "../config/hosts/dialects.ts";
import { boundProblems } from "../config/merge/merge.ts";
import { shownLine } from "./proposed.ts";

/** Applies the new text of a file that has been written. */
export type Applied = (file: string, edit: (text: string | undefined) => string) => Promise<void>;

const isSame = (a: ServerDefinition, b: ServerDefinition): boolean =>
  sameJson([a.target, a.auth, a.oauth], [b.target, b.auth, b.oauth]);

function standingOf(server: ServerDefinition, running: RunningConfiguration): FoundServer["standing"] {
  const configured = running.configured(server.name);
  if (!configured) return "new";
  return isSame(server, configured) ? "same" : "other";
}

/** What is left of the limits while the list is made. */
interface Room {
  servers: number;
  chars: number;
}

function foundServer(server: ServerDefinition, running: RunningConfiguration, room: Room): FoundServer {
  const { name, enabled, project } = server;
  const line = shownLine(server, !project);
  const isFit = line !== undefined && line.length <= room.chars;
  room.servers--;
  room.chars -= isFit ? line.length : 0;
  return {
    name,
    standing: standingOf(server, running),
    ...(isFit ? { line, id: foundId(server) } : { unusable: "what it would run is too long to be shown" }),
    ...(enabled ? {} : { disabled: true as const }),
  };
}

function foundFiles({ files }: HostFound, running: RunningConfiguration, room: Room): FoundFile[] {
  return files.map(({ source, servers }) => {
    const shown = servers.slice(0, Math.max(room.servers, 0));
    return {
      file: source.file,
      ofProject: source.origin === "project-file",
      servers: shown.map((server) => foundServer(server, running, room)),
      more: servers.length - shown.length,
    };
  });
}

/** Names of programs in `imports` of the files that run. */
const importedHosts = (running: RunningConfiguration): ReadonlySet<string> =>
  new Set(running.applied.imports);

export async function findImports(running: RunningConfiguration): Promise<FoundImports> {
  const hosts = await findHosts(running.facts);
  const room: Room = { servers: LIMITS.foundServers, chars: LIMITS.foundChars };
  const imported = importedHosts(running);
  return {
    hosts: hosts.map((found) => ({
      host: found.host,
      title: DIALECTS[found.host].title,
      imported: imported.has(found.host),
      files: foundFiles(found, running, room),
    })),
    problems: boundProblems(hosts.flatMap(({ problems }) => problems)).map((problem) => ({
      ...problem,
      message: cleanText(problem.message),
    })),
    file: editableFile(running.facts, false),
  };
}

interface Chosen {
  servers: ServerDefinition[];
  left: TakenImports["left"];
}

/** The servers of these ids, as far as the files still say what was shown. */
async function chosenOf(ids: readonly string[], running: RunningConfiguration): Promise<Chosen> {
  const hosts = await findHosts(running.facts);
  const byId = new Map(
    hosts.flatMap(({ files }) =>
      files.flatMap(({ servers }) => servers.map((one) => [foundId(one), one] as const)),
    ),
  );
  const servers: ServerDefinition[] = [];
  let changed = 0;
  for (const id of new Set(ids)) {
    const server = byId.get(id);
    if (server) servers.push(server);
    else changed++;
  }
  const reason = "its file has changed since it was shown";
  return { servers, left: changed === 0 ? [] : [{ name: `${changed} of the chosen`, reason }] };
}

/** Why a server is not copied; undefined: it is. */
function whyLeft(
  server: ServerDefinition,
  {
    running,
    names,
    taken,
    replace,
  }: {
    running: RunningConfiguration;
    /** Names in the file that is written. */
    names: ReadonlySet<string>;
    taken: ReadonlySet<string>;
    replace: boolean;
  },
): string | undefined {
  if (taken.has(server.name)) return "another program's server of this name was chosen too";
  if (replace) return undefined;
  if (names.has(server.name)) return "the file has an entry of this name already";
  const standing = standingOf(server, running);
  return standing === "other"
    ? `${running.configured(server.name)?.file} has another server of this name`
    : undefined;
}

async function copy(
  { ids, replace = false }: Extract<TakeImports, { how: "copy" }>,
  running: RunningConfiguration,
  applied: Applied,
): Promise<TakenImports> {
  const file = editableFile(running.facts, false);
  const names = namesIn(await textOf(file));
  const { servers, left } = await chosenOf(ids.slice(0, LIMITS.copiedServers), running);
  if (ids.length > LIMITS.copiedServers) {
    const reason = `at most ${LIMITS.copiedServers} are copied at once`;
    left.push({ name: `${ids.length - LIMITS.copiedServers} of the chosen`, reason });
  }
  const taken = new Map<string, ServerDefinition>();
  for (const server of servers) {
    const reason = whyLeft(server, { running, names, taken: new Set(taken.keys()), replace });
    if (reason === undefined) taken.set(server.name, server);
    else left.push({ name: server.name, reason });
  }
  const entries = [...taken.values()].map(({ name, raw }) => ({ name, entry: raw as NewEntry["entry"] }));
  if (entries.length > 0) {
    await writeAdded(file, entries, replace);
    await applied(file, (text) => editAdded(text, entries, { file, replace: true }));
  }
  return { file, taken: [...taken.keys()], left };
}

export async function takeImports(
  wish: TakeImports,
  running: RunningConfiguration,
  applied: Applied,
): Promise<TakenImports> {
  if (wish.how === "copy") return copy(wish, running, applied);
  const file = editableFile(running.facts, false);
  const imported = importedHosts(running);
  const left: TakenImports["left"] = [];
  const taken: string[] = [];
  for (const host of new Set(wish.hosts)) {
    if (!Object.hasOwn(DIALECTS, host)) left.push({ name: host, reason: "no such program is known" });
    else if (imported.has(host)) left.push({ name: host, reason: "it is imported already" });
    else taken.push(host);
  }
  if (taken.length > 0) {
    await writeImports(file, taken);
    await applied(file, (text) => editImports(text, taken, file));
  }
  return { file, taken, left };
}
