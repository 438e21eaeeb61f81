/**
 * The requests by which a person sets servers up: look at an entry, try it, add it, remove a server, and take over what
 * other programs have configured. What is written is applied like any edit.
 */

import { basename } from "node:path";
import { IMPORTS } from "../../../src/shared/import-names.ts";
import { isFromRegistry } from "../../../src/shared/pasted.ts";
import type { SetupRequests, WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type {
  DefinedIn,
  EntryMistake,
  FoundFile,
  FoundImports,
  FoundServer,
  Launch,
  ProposedServer,
  RemovedServer,
  ServerPreview,
  TakeImports,
  TakenImports,
} from "../../../src/shared/protocol/person.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { variableText } from "../../../src/shared/text/key-shape.ts";
import { cleanText } from "../../../src/shared/text/unprintable.ts";
import { advice, commandFor } from "../../shared/commands.ts";
import { sameJson } from "../../shared/json.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { editableFile, realFile, textOf } from "../config/edit/edit.ts";
import { editAdded, editImports, editRemoved, type NewEntry, namesIn } from "../config/edit/entries.ts";
import { dropValues, keepValue } from "../config/edit/keep-value.ts";
import { type Origin, parseEntry, type ServerDefinition, transportOf } from "../config/entry/definition.ts";
import { sandboxOf } from "../config/entry/sandbox.ts";
import { parseConfigText } from "../config/files/files.ts";
import { type ConfigSource, configSources, npxCacheFile, readText } from "../config/files/sources.ts";
import { findHosts, foundId, type HostFound, titleOf } from "../config/found/found.ts";
import { boundProblems, underSettings } from "../config/merge/layers.ts";
import { describeTarget, leastChars } from "../config/trust/question.ts";
import { missingVariables } from "../config/values/missing.ts";
import { secretsOf } from "../secrets/find.ts";
import { createRedactor } from "../secrets/redact.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { explainAbsent, isRequired } from "./explain-server.ts";
import type { SessionRequests } from "./first-request.ts";
import { unnamed, withoutItsValues } from "./typed-values.ts";
import { writeOwn } from "./user-edits.ts";

const OWNERS: Readonly<Record<Origin, DefinedIn["by"]>> = {
  user: "user",
  "project-pi": "project",
  "project-file": "project",
  import: "import",
  package: "package",
  extension: "extension",
};

const definedIn = ({ file, origin }: Pick<ServerDefinition, "file" | "origin">): DefinedIn => ({
  file,
  by: OWNERS[origin],
});

/** Without the values of arguments and of the URL that are secret by their name or their form. */
function masked(definition: ServerDefinition): ServerDefinition {
  const { target } = definition;
  const redact = createRedactor(secretsOf(target, target));
  if (target.kind === "http") return { ...definition, target: { ...target, url: redact(target.url) } };
  if (target.kind === "socket") return definition;
  const env = Object.fromEntries(Object.entries(target.env).map(([name, value]) => [name, redact(value)]));
  return {
    ...definition,
    target: { ...target, command: redact(target.command), args: target.args.map(redact), env },
  };
}

/**
 * All that would run or be sent, in one line, as the question for consent shows it. `masks`: takes secrets out, which
 * nothing of a project's file may hide behind. Undefined: the line would be too long to be read.
 */
export function shownLine(definition: ServerDefinition, masks: boolean): string | undefined {
  if (leastChars(definition) > LIMITS.consentChars) return undefined;
  const line = describeTarget(masks ? masked(definition) : definition);
  return line.length > LIMITS.consentChars ? undefined : line;
}

interface Proposed {
  file: string;
  mistakes: EntryMistake[];
  /** Undefined: there is an error among the mistakes. */
  definition: ServerDefinition | undefined;
}

/** Throws `bad_config` if the file of the project does not count. */
async function parseProposed(
  { name, entry, project }: ProposedServer,
  running: RunningConfiguration,
): Promise<Proposed> {
  const file = editableFile(running.facts, project);
  const { definition, mistakes } = parseEntry(name, isObject(entry) ? entry : undefined, {
    file,
    origin: project ? "project-pi" : "user",
  });
  const told = mistakes.map(
    ({ severity, path, message, remedy }): EntryMistake => ({
      severity,
      key: path.join("."),
      message,
      remedy,
    }),
  );
  const policy = running.applied.policy;
  const wanted = definition && underSettings(definition, running.now.settings);
  const judged = policy && wanted && (await import("../config/policy/policy.ts")).judge(policy, wanted);
  if (judged?.reason !== undefined)
    told.push({ severity: "error", key: "", message: judged.reason, remedy: "Ask your administrator." });
  const isError = ({ severity }: EntryMistake): boolean => severity === "error";
  return {
    file,
    definition: judged?.server ?? wanted,
    mistakes: told.sort((a, b) => Number(isError(b)) - Number(isError(a))),
  };
}

/** The definition. Throws `bad_config` with the first mistake. */
function checkedDefinition(proposed: Proposed, name: string): ServerDefinition {
  if (proposed.definition) return proposed.definition;
  const [first] = proposed.mistakes;
  const at = first?.key ? `${first.key}: ` : "";
  throw new ThreadsError("bad_config", `The entry of ${name} cannot be used: ${at}${first?.message}.`, {
    remedy: first?.remedy,
  });
}

/** Only where there can be a room (room/room.ts). */
const lacksRoom = ({ target, sandbox }: ServerDefinition): boolean =>
  (process.platform === "linux" || process.platform === "darwin") &&
  sandboxOf(sandbox) === undefined &&
  target.kind === "stdio" &&
  isFromRegistry([target.command, ...target.args]);

/**
 * Throws `bad_config` if the file could not take the entry, so that nothing is tried in vain; and if a broken file of the user
 * counts as its strictest, in which the trial would fail for a reason that nobody has written.
 */
async function previewServer(
  proposal: ProposedServer,
  running: RunningConfiguration,
): Promise<ServerPreview> {
  const { file, mistakes, definition } = await parseProposed(proposal, running);
  const { name, entry } = proposal;
  const own = configSources(running.facts).filter(({ origin }) => origin === "user");
  const looked = definition ? new Set([file, ...own.map((source) => source.file)]) : [];
  for (const one of looked) editAdded(await textOf(one), [{ name, entry }], { file: one, replace: true });
  const line = definition && shownLine(definition, true);
  const existing = running.configured(proposal.name);
  return {
    file,
    mistakes,
    ...(definition ? { transport: transportOf(definition) } : {}),
    ...(line === undefined ? {} : { line }),
    ...(existing ? { exists: definedIn(existing) } : {}),
    ...(definition && lacksRoom(definition) ? { lacksRoom: true } : {}),
  };
}

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
    ...(lacksRoom(underSettings(server, running.now.settings)) ? { lacksRoom: true } : {}),
  };
}

function foundFiles({ files }: HostFound, running: RunningConfiguration, room: Room): FoundFile[] {
  return files.map(({ source, servers }) => {
    const shown = servers.slice(0, Math.max(room.servers, 0));
    return {
      file: source.file,
      ofProject: source.origin === "project-file",
      ...(source.origin === "package" && { ofPackage: true as const }),
      servers: shown.map((server) => foundServer(server, running, room)),
      more: servers.length - shown.length,
    };
  });
}

/** Names of programs in `imports` of the files that run. */
const importedHosts = (running: RunningConfiguration): ReadonlySet<string> =>
  new Set(running.applied.imports);

async function findImports(running: RunningConfiguration): Promise<FoundImports> {
  const hosts = await findHosts(running.facts);
  const room: Room = { servers: LIMITS.foundServers, chars: LIMITS.foundChars };
  const imported = importedHosts(running);
  return {
    hosts: hosts.map((found) => ({
      host: found.host,
      title: titleOf(found.host),
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
  { ids, replace = false, sandbox = false }: Extract<TakeImports, { how: "copy" }>,
  running: RunningConfiguration,
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
  const entries = [...taken.values()].map((server) => {
    const ready = underSettings(server, running.now.settings);
    const { passesOn, inheritEnv } = ready;
    const entry = {
      ...(server.raw as NewEntry["entry"]),
      ...(passesOn && Array.isArray(inheritEnv) && { inheritEnv }),
      ...(sandbox && lacksRoom(ready) && { sandbox: true }),
    };
    return { name: server.name, entry };
  });
  if (entries.length > 0) {
    await writeEntries(running, file, { entries, replace });
  }
  const notes = [...taken.values()].flatMap((server) => notesOn(server, running.facts.cwd));
  return { file, taken: [...taken.keys()], left, ...(notes.length > 0 ? { notes } : {}) };
}

/** Throws `bad_config` if the file has one of the names and may not replace it. In the text that runs, the name may be older. */
const writeEntries = (
  running: RunningConfiguration,
  file: string,
  { entries, replace }: { entries: readonly NewEntry[]; replace: boolean },
): Promise<void> =>
  writeOwn(running, file, (text) => editAdded(text, entries, { file, replace }), {
    ofRunning: (text) => editAdded(text, entries, { file, replace: true }),
  });

/** What a person must know of a copy: variables that are to be set, and a folder that was one of many in its program. */
function notesOn({ name, target, auth, raw, project }: ServerDefinition, cwd: string): string[] {
  const missing = [...missingVariables({ target, auth }, process).keys()];
  const isAre = missing.length === 1 ? "is" : "are";
  const variables =
    missing.length === 0
      ? []
      : [
          `${name} needs ${missing.map(variableText).join(" and ")}, which ${isAre} not set: set it in the shell before Pi starts.`,
        ];
  // Only `${workspaceFolder}` of a user's file can have become this folder, or a path that means it anyway.
  const holdsFolder =
    !project && cwd.length > 1 && JSON.stringify(raw).includes(JSON.stringify(cwd).slice(1, -1));
  const folder = holdsFolder
    ? [
        `${name} holds the folder ${cwd}, also when Pi runs elsewhere: write . or \${PWD} in its place for the folder of each session.`,
      ]
    : [];
  return [...variables, ...folder];
}

async function takeImports(wish: TakeImports, running: RunningConfiguration): Promise<TakenImports> {
  if (wish.how === "copy") return copy(wish, running);
  const file = editableFile(running.facts, false);
  const imported = importedHosts(running);
  const left: TakenImports["left"] = [];
  const taken: string[] = [];
  for (const host of new Set(wish.hosts)) {
    if (!IMPORTS.some((known) => known === host))
      left.push({ name: host, reason: "no such program is known" });
    else if (imported.has(host)) left.push({ name: host, reason: "it is imported already" });
    else taken.push(host);
  }
  if (taken.length > 0) {
    await writeOwn(running, file, (text) => editImports(text, taken, file));
  }
  return { file, taken, left };
}

export interface OwnFile {
  source: ConfigSource;
  /** Undefined: there is no such file, or it cannot be read. */
  text: string | undefined;
}

/** Whether the text holds a whole entry of this name, and no mere override. */
const defines = ({ source, text = "" }: OwnFile, name: string): boolean =>
  parseConfigText(text, source).entries.some(
    (entry) => entry.kind === "server" && entry.definition.name === name,
  );

/**
 * The user's own file comes before one of the project, which the person may not even have looked at. `own`: lowest
 * precedence first. `wanted`: the file that the person was shown. `inEffect`: the file of the server that counts now.
 * Undefined: no file of ours names the server. An entry with a mistake defines no server, and can be removed all the same.
 */
export function removedFrom(
  name: string,
  own: readonly OwnFile[],
  { wanted, inEffect }: { wanted?: string | undefined; inEffect?: string | undefined },
): string | undefined {
  const naming = own.filter(({ text }) => namesIn(text).has(name));
  const isNamed = (file: string | undefined) => naming.some(({ source }) => source.file === file);
  if (isNamed(wanted)) return wanted;
  const users = naming.findLast((file) => file.source.origin === "user" && defines(file, name));
  if (users) return users.source.file;
  return isNamed(inEffect) ? inEffect : naming.at(-1)?.source.file;
}

type SetupHandlers = Pick<SessionRequests, keyof SetupRequests>;

interface SetupParts {
  started: Promise<RunningConfiguration>;
  supervisor: Pick<Supervisor, "servers" | "tryServer">;
  emit: (event: WorkerEvent) => void;
}

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
  const proposed = await parseProposed(proposal, running);
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
  await withoutItsValues(running, () => writeEntries(running, file, { entries, replace }));
  if (unsaved) throw unsaved;
  const but = whyIdle(name, file, { supervisor, running });
  return { file: written, ...(but === undefined ? {} : { but }) };
}

const nameTaken = (name: string, file: string): ThreadsError =>
  new ThreadsError("bad_config", `A server named ${name} is configured in ${file} already.`, {
    remedy: "Choose another name, or replace it with --replace.",
    data: { file },
  });

/** Who defines a server that is in no file of ours, and what else than to disable it helps. */
const NOT_OURS = {
  extension: (file: string) => [`The extension ${file} registers`, ""],
  import: (file: string) => [
    `${file}, a file of another program, defines`,
    " Or take the program out of imports in your mcp.json.",
  ],
  package: (file: string) => [
    `${file}, a file of a package, defines`,
    " Or remove the package, or the plugin from plugins in your mcp.json.",
  ],
} as const satisfies Record<string, (file: string) => [string, string]>;

/** Why a server that is in no file of ours cannot be removed. */
function notOurs({ name, origin, file }: ServerDefinition): ThreadsError {
  const [whose, or] = NOT_OURS[origin === "extension" || origin === "package" ? origin : "import"](file);
  const remedy = `Disable it: ${commandFor("disable", name)}.${or}`;
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
  if (definition?.isRequired) throw isRequired(definition);
  if (definition && !sources.some(({ file }) => file === definition.file)) throw notOurs(definition);
  const own = await Promise.all(
    sources.map(async (source) => {
      const read = await readText(source.file);
      return { source, text: read.kind === "text" ? read.text : undefined };
    }),
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
  const remove = async (from: string): Promise<string> => {
    const real = await realFile(from, running.facts);
    const edit = (text: string | undefined): string => editRemoved(text, name, from);
    await writeOwn(running, from, edit, { ofRunning: (text) => (text === undefined ? "" : edit(text)) });
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

/** What the program's process would be as a server of this definition. Rejects with `spawn_failed` if there can be no room. */
async function byHand(
  definition: ServerDefinition,
  { facts: { agentDir, cwd, configPath } }: RunningConfiguration,
  emit: SetupParts["emit"],
  signal: AbortSignal,
): Promise<Launch> {
  const { name: server, target } = definition;
  if (target.kind !== "stdio" || sandboxOf(definition.sandbox) === undefined)
    throw new ThreadsError("bad_config", "Only a command with a sandbox is run by hand.");
  const { launchOfServer } = await import("../transports/stdio/stdio.ts");
  return launchOfServer(target, {
    definition,
    cwd,
    npxCacheFile: npxCacheFile(agentDir),
    configPath,
    signal,
    triesRoom: true,
    onSpawn: (pid) => emit({ type: "spawned", pid, server }),
    onExit: (pid) => emit({ type: "exited", pid, server }),
    onNote: (text) => emit({ type: "notice", text: `${server} ${text}`, level: "info" }),
    onWait: (waits) => emit({ type: "trying", server, ...(waits === undefined ? {} : { waits }) }),
  });
}

export function createSetupRequests({ started, supervisor, emit }: SetupParts): SetupHandlers {
  let open: { signal: AbortSignal; ended: Promise<unknown> } | undefined;
  return {
    previewServer: async (proposal) => previewServer(proposal, await started),
    tryServer: async (proposal, signal) => {
      const running = await started;
      const definition = checkedDefinition(await parseProposed(proposal, running), proposal.name);
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
    launchByHand: async (proposal, signal) => {
      const running = await started;
      const definition = checkedDefinition(await parseProposed(proposal, running), proposal.name);
      return byHand(definition, running, emit, signal);
    },
    addServer: async (proposal) => addServer(proposal, await started, supervisor),
    keepValue: async (value) => keepValue((await started).facts.agentDir, value),
    dropValues: async ({ files }) => {
      const names = files.map((file) => basename(file));
      const running = await started;
      await dropValues(running.facts.agentDir, await unnamed(running, names));
      return undefined;
    },
    removeServer: async ({ server, file }) => {
      const running = await started;
      const { done, values, kept } = await withoutItsValues(running, () =>
        removeServer(server, running, file),
      );
      return { ...done, ...(values > 0 && { values }), ...(kept.length > 0 && { kept }) };
    },
    findImports: async () => findImports(await started),
    takeImports: async (wish) => {
      const running = await started;
      return takeImports(wish, running);
    },
  };
}
