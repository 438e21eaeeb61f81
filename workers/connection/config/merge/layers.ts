/**
 * Adds all sources up: extensions, imports, then our own files; later ones win. A whole entry replaces the server
 * and inherits nothing, so that credentials stay with their URL; an entry without a target overrides a few keys. Pure.
 */

import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { RegisteredServer } from "../../../../src/shared/protocol/session.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { canonical } from "../../../shared/json.ts";
import {
  type DefinitionSource,
  isProject,
  type Origin,
  parseEntry,
  type ServerDefinition,
} from "../entry/definition.ts";
import { type Approve, approvals, exposureOf, toExposure } from "../entry/exposure.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { OAuthPlan } from "../entry/oauth-values.ts";
import { applyOverride, idleMinutes, type Override } from "../entry/override.ts";
import {
  DEFAULT_GUARD,
  DEFAULT_SETTINGS,
  guardFrom,
  type SettingKey,
  type Settings,
} from "../entry/settings.ts";
import { APPROVE_WORDS } from "../entry/shape.ts";
import type { Position } from "../files/document.ts";
import type { FileConfig, FileEntry, KeyPositions } from "../files/files.ts";

/** Keys of `oauth` that no file of a project may set, each with the reason. */
const USERS_ONLY_OAUTH = {
  skipIssuerMetadataValidation: "it lets another authorization server get your sign-in",
  privateKeyFile: "it uses a file of yours",
  assertionFile: "it sends a file of yours",
} as const satisfies Partial<Record<keyof OAuthPlan, string>>;

const ignored = (path: string[], message: string, remedy: string): Mistake => ({
  severity: "warning",
  path,
  message,
  remedy,
});

const loosened = (key: string): Mistake => ignored([key], STRICTER, `Write ${key} into your own mcp.json.`);

type Guard = Settings["outputGuard"];

/** The stricter limits of both. `isLooser`: `wanted` asks for more than `own` allows. */
function tighterGuard(own: Guard, wanted: Guard): { guard: Guard; isLooser: boolean } {
  const most = guardFrom(own);
  const asked = guardFrom(own, wanted);
  if (most === false) return { guard: wanted, isLooser: false };
  if (asked === false) return { guard: own, isLooser: true };
  const maxBytes = Math.min(most.maxBytes, asked.maxBytes);
  const maxLines = Math.min(most.maxLines, asked.maxLines);
  const isSame = maxBytes === most.maxBytes && maxLines === most.maxLines;
  return {
    guard: isSame ? own : { maxBytes, maxLines },
    isLooser: asked.maxBytes > most.maxBytes || asked.maxLines > most.maxLines,
  };
}

/** Whether a project's file names a word that asks less often than the user's word. Rules cannot be compared so. */
const asksLess = (wanted: Approve, own: Approve | undefined): boolean =>
  typeof wanted === "string" &&
  typeof own === "string" &&
  APPROVE_WORDS.indexOf(wanted) < APPROVE_WORDS.indexOf(own);

/** What a project's file gets of a setting. `because`: why it does not get all that it asks for. */
interface Ruling<V> {
  value: V;
  because?: string;
}

type Rule<V> = (own: V, wanted: V, origin: Origin) => Ruling<V>;

const STRICTER = "a project's file may only make this stricter";

/** It decides neither what runs nor what the user's own servers may do. */
const free = <V>(_: V, value: V): Ruling<V> => ({ value });

const usersOnly =
  (why: string) =>
  <V>(own: V, wanted: V): Ruling<V> =>
    canonical(wanted) === canonical(own)
      ? { value: own }
      : { value: own, because: `a project's file may not decide this: ${why}` };

/** Also closed to .mcp.json, which needs no trust. */
const trustedOnly =
  (why: string) =>
  <V>(own: V, wanted: V, origin: Origin): Ruling<V> =>
    (origin === "project-pi" ? free : usersOnly(why))(own, wanted);

const looser = <V>(value: V, isLooser: boolean): Ruling<V> =>
  isLooser ? { value, because: STRICTER } : { value };

const STRICTNESS: readonly Settings["hotReload"][] = ["on", "ask", "off"];

/** A limit so close that the user's own servers could not work any more. */
const tooClose = (floor: string): string =>
  `a project's file may not make this less than ${floor}: your own servers go by it too`;

/**
 * A decision for each setting: a new setting does not compile without one. Beside what writes, asks and runs, a project
 * must not narrow a limit until the user's own servers fail there.
 */
const RULES: { readonly [K in SettingKey]: Rule<Settings[K]> } = {
  captureStats: usersOnly("it writes files"),
  autoAuth: usersOnly("it opens your browser"),
  caFile: usersOnly("it decides which machines your servers are taken for"),
  // Extensions that allow or refuse tools go by names.
  toolPrefix: trustedOnly("it changes the names of your tools"),
  proxyTool: trustedOnly("it changes the names under which your tools are called"),
  hotReload: (own, wanted) => {
    const isLooser = STRICTNESS.indexOf(wanted) < STRICTNESS.indexOf(own);
    return looser(isLooser ? own : wanted, isLooser);
  },
  maxMessageBytes: (own, wanted) => {
    const least = Math.min(own, LIMITS.projectMessageBytes);
    if (wanted < least) return { value: least, because: tooClose(`${least.toLocaleString("en")} bytes`) };
    return looser(Math.min(own, wanted), wanted > own);
  },
  idleTimeout: (own, wanted) => {
    const minutes = idleMinutes(own, wanted);
    return looser(minutes, minutes !== wanted);
  },
  outputGuard: (own, wanted) => {
    const { guard, isLooser } = tighterGuard(own, wanted);
    const kept = guardFrom(own) || DEFAULT_GUARD;
    const maxBytes = Math.min(kept.maxBytes, LIMITS.projectGuardBytes);
    const maxLines = Math.min(kept.maxLines, LIMITS.projectGuardLines);
    if (guard === false || canonical(guard) === canonical(own)) return looser(guard, isLooser);
    const { maxBytes: bytes = maxBytes, maxLines: lines = maxLines } = guard;
    if (bytes >= maxBytes && lines >= maxLines) return looser(guard, isLooser);
    return {
      value: { maxBytes: Math.max(bytes, maxBytes), maxLines: Math.max(lines, maxLines) },
      because: tooClose(`${maxBytes.toLocaleString("en")} bytes and ${maxLines} lines`),
    };
  },
  approve: (own, wanted) => {
    const before = approvals(own);
    const [asked] = approvals(wanted);
    if (asked === undefined) return { value: own };
    return looser([...before, asked], asksLess(asked, before[0]));
  },
  // These decide how the model finds tools that it may use anyway, and in what form it reads a result.
  search: free,
  toonEncode: free,
  directTools: free,
  catalog: free,
};

function ruled<K extends SettingKey>(
  own: Settings,
  { key, wanted, origin }: { key: K; wanted: Settings[K]; origin: Origin },
): { changed: Pick<Settings, K>; mistakes: Mistake[] } {
  const { value, because } = RULES[key](own[key], wanted, origin);
  const remedy = `Write ${key} into your own mcp.json.`;
  const changed = { [key]: value } as Pick<Settings, K>;
  return { changed, mistakes: because === undefined ? [] : [ignored([key], because, remedy)] };
}

/** The user's settings with those of a project's file, as far as the project may change them. */
function narrowSettings(
  own: Settings,
  project: Partial<Settings>,
  { origin, file }: DefinitionSource,
): { settings: Settings; mistakes: Mistake[] } {
  const settings = { ...own };
  const mistakes: Mistake[] = [];
  for (const key of Object.keys(RULES) as SettingKey[]) {
    const wanted = project[key];
    if (wanted === undefined) continue;
    const result = ruled(own, { key, wanted, origin });
    Object.assign(settings, result.changed);
    mistakes.push(...result.mistakes);
  }
  if (settings.maxMessageBytes < own.maxMessageBytes) settings.messageLimitOf = file;
  return { settings, mistakes };
}

/** The plan for OAuth of a project's server, without the keys that only the user may set. */
function narrowOAuth(oauth: OAuthPlan | false): { oauth: OAuthPlan | false; mistakes: Mistake[] } {
  if (oauth === false) return { oauth, mistakes: [] };
  const kept = { ...oauth };
  const mistakes: Mistake[] = [];
  for (const [key, why] of Object.entries(USERS_ONLY_OAUTH)) {
    const name = key as keyof typeof USERS_ONLY_OAUTH;
    if (kept[name] === undefined) continue;
    delete kept[name];
    const remedy = "Define the server in your own mcp.json if you want it.";
    mistakes.push(ignored(["oauth", key], `a project's file may not set this: ${why}`, remedy));
  }
  return { oauth: kept, mistakes };
}

/** The user's settings decide about a project's server, and its own entry may add to them. */
const narrowApproval = ({ approve, approveToo }: ServerDefinition) => ({
  approve: undefined,
  approveToo: approve === undefined ? approveToo : [approve, ...approveToo],
});

/** A project's server without what only the user may set, and with limits not looser than those of the settings. */
function narrowServer(
  server: ServerDefinition,
  settings: Settings,
): { server: ServerDefinition; mistakes: Mistake[] } {
  const replaced = server.replaced && narrowServer(server.replaced, settings).server;
  const below = replaced ? { ...server, replaced } : server;
  // A server that the project only enabled keeps what the user's own file says.
  if (!server.project || server.enabledByProject !== undefined) return { server: below, mistakes: [] };
  const { oauth, mistakes } = narrowOAuth(server.oauth);
  const approval = narrowApproval(server);
  if (server.approve !== undefined && asksLess(server.approve, approvals(settings.approve)[0]))
    mistakes.push(loosened("approve"));
  if (server.outputGuard === undefined) return { server: { ...below, oauth, ...approval }, mistakes };
  const { guard, isLooser } = tighterGuard(settings.outputGuard, server.outputGuard);
  if (isLooser) mistakes.push(loosened("outputGuard"));
  return { server: { ...below, oauth, ...approval, outputGuard: guard }, mistakes };
}

/**
 * A mistake for each thing that a project's override asks for and does not get. The definition is the result of the
 * override.
 */
function wideningMistakes(override: Override, definition: ServerDefinition): Mistake[] {
  const { userRules, approve, lifecycle, idleTimeoutMinutes } = definition;
  if (!userRules) return [];
  const mistakes: Mistake[] = [];
  const add = (path: string[], what: string): void => {
    mistakes.push(ignored(path, what, "Change your own file if you want it."));
  };
  if (override.approve !== undefined && asksLess(override.approve, approve)) add(["approve"], STRICTER);
  if (override.lifecycle !== undefined && override.lifecycle !== lifecycle)
    add(["lifecycle"], "a project's file may only let your server run less");
  if (override.idleTimeout !== undefined && override.idleTimeout !== idleTimeoutMinutes)
    add(["idleTimeout"], "a project's file may only make this shorter, and not shorter than a minute");
  if (override.excludeTools?.length === 0 && userRules.excludeTools.length > 0)
    add(["excludeTools"], "a project's list adds to yours; it cannot allow what your own file excludes");
  const isHidden = "your own file hides these tools, and a project's file cannot show them";
  if (userRules.exposure === "hidden") {
    if (override.exposure !== undefined && toExposure(override.exposure) !== "hidden")
      add(["exposure"], isHidden);
    const direct = override.directTools;
    if (direct === true || (Array.isArray(direct) && direct.length > 0)) add(["directTools"], isHidden);
  }
  const lifted = Object.entries(override.toolExposure ?? {}).filter(
    ([tool, to]) =>
      toExposure(to) !== "hidden" &&
      (userRules.toolExposure[tool] === "hidden" || exposureOf(tool, userRules) === "hidden"),
  );
  if (lifted.length > 0) add(["toolExposure"], isHidden);
  return mistakes;
}

interface Layers {
  registered: readonly RegisteredServer[];
  /**
   * The servers of each host, in the order of `imports`. The first host that has a name wins; within a host, the last
   * file.
   */
  hosts: readonly (readonly ServerDefinition[])[];
  /** Lowest precedence first. */
  files: readonly FileConfig[];
}

export interface Merged {
  servers: ServerDefinition[];
  settings: Settings;
  problems: ConfigProblem[];
}

type Servers = Map<string, ServerDefinition>;

/** A project's entry keeps the server that it replaces, because the project's server may turn out not to be allowed. */
function put(servers: Servers, definition: ServerDefinition): void {
  const below = servers.get(definition.name);
  servers.set(
    definition.name,
    definition.project ? { ...definition, replaced: definition.replaced ?? below } : definition,
  );
}

function mergeHosts(hosts: Layers["hosts"]): Servers {
  const imported: Servers = new Map();
  for (const definitions of hosts) {
    const ofHost: Servers = new Map();
    for (const definition of definitions) put(ofHost, definition);
    for (const [name, definition] of ofHost) if (!imported.has(name)) imported.set(name, definition);
  }
  return imported;
}

function registeredServers(registered: Layers["registered"]): Pick<Merged, "servers" | "problems"> {
  const servers: ServerDefinition[] = [];
  const problems: ConfigProblem[] = [];
  for (const { name, config, extensionPath: file } of registered) {
    const { definition, mistakes } = parseEntry(name, config, { file, origin: "extension" });
    if (definition) servers.push(definition);
    for (const { severity, path, message, remedy } of mistakes) {
      problems.push({ severity, file, line: 1, column: 1, key: [name, ...path].join("."), message, remedy });
    }
  }
  return { servers, problems };
}

/** Mistakes in a file of ours, each at the position of its key. */
const problemsAt = (file: FileConfig, at: Where, mistakes: readonly Mistake[]): ConfigProblem[] =>
  mistakes.map(({ severity, path, message, remedy }) => {
    const [first = ""] = path;
    // A key may have the name of a property that every object has, for example `toString`.
    const position = Object.hasOwn(at.positions, first) ? at.positions[first] : at.at;
    const key = [at.key, ...path].join(".");
    return { severity, file: file.source.file, ...position, key, message, remedy };
  });

/** The position of an entry and of its keys. */
interface Where {
  key: string;
  at?: Position;
  positions: KeyPositions;
}

function applyEntry(
  servers: Servers,
  entry: FileEntry,
  { file, idleTimeout }: { file: FileConfig; idleTimeout: number },
): ConfigProblem[] {
  if (entry.kind === "server") {
    put(servers, entry.definition);
    return [];
  }
  const base = servers.get(entry.name);
  if (base) {
    const result = applyOverride(base, entry.override, file.source, idleTimeout);
    servers.set(entry.name, result);
    return isProject(file.source.origin)
      ? problemsAt(file, entry, wideningMistakes(entry.override, result))
      : [];
  }
  const own = isProject(file.source.origin) ? "your own files" : "a file before this one";
  return [
    {
      severity: "error",
      file: file.source.file,
      ...entry.at,
      key: entry.key,
      message: `there is no server of this name in ${own} to override`,
      remedy: 'Add "command" or "url", or correct the name.',
    },
  ];
}

/** Servers as they are after all files. A mistake is reported at the entry of the last file that defines the server. */
function narrowed(servers: Servers, settings: Settings, files: readonly FileConfig[]): Merged {
  const merged: Merged = { servers: [], settings, problems: [] };
  const byFile = new Map(
    files.map((file) => [
      file.source.file,
      {
        file,
        entries: new Map(
          file.entries.flatMap((entry) =>
            entry.kind === "server" ? [[entry.definition.name, entry] as const] : [],
          ),
        ),
      },
    ]),
  );
  for (const definition of servers.values()) {
    const { server, mistakes } = narrowServer(definition, settings);
    merged.servers.push(server);
    const found = byFile.get(server.file);
    const entry = found?.entries.get(server.name);
    if (found && entry) merged.problems.push(...problemsAt(found.file, entry, mistakes));
  }
  return merged;
}

/** If there are too many servers, the sources keep theirs in this order. */
const RANKS: readonly Origin[] = ["user", "extension", "import", "project-pi", "project-file"];

/** A project's server has the rank of the user's server that it replaces, so that the user's is not lost with it. */
function rankOf({ origin, replaced }: ServerDefinition): number {
  const rank = RANKS.indexOf(origin);
  return replaced ? Math.min(rank, rankOf(replaced)) : rank;
}

/** As many servers as are allowed, in their order. */
function bounded(servers: readonly ServerDefinition[]): Pick<Merged, "servers" | "problems"> {
  if (servers.length <= LIMITS.servers) return { servers: [...servers], problems: [] };
  const ranked = servers.toSorted((a, b) => rankOf(a) - rankOf(b));
  const kept = new Set(ranked.slice(0, LIMITS.servers));
  const byFile = Map.groupBy(
    servers.filter((server) => !kept.has(server)),
    ({ file }) => file,
  );
  const most = LIMITS.servers.toLocaleString("en");
  const problems = [...byFile].map(
    ([file, leftOut]): ConfigProblem => ({
      severity: "error",
      file,
      message: `${leftOut.length.toLocaleString("en")} of its servers are left out, the first is ${leftOut[0]?.name}: more than ${most} are configured in all`,
      remedy: "Remove servers that you do not need.",
    }),
  );
  return { servers: servers.filter((server) => kept.has(server)), problems };
}

export function mergeLayers({ registered, hosts, files }: Layers): Merged {
  const lowest = registeredServers(registered);
  const servers: Servers = new Map();
  for (const definition of lowest.servers) put(servers, definition);
  for (const definition of mergeHosts(hosts).values()) put(servers, definition);
  const problems = [...lowest.problems];
  let settings = DEFAULT_SETTINGS;
  for (const file of files) {
    for (const entry of file.entries) {
      problems.push(...applyEntry(servers, entry, { file, idleTimeout: settings.idleTimeout }));
    }
    if (isProject(file.source.origin)) {
      const narrower = narrowSettings(settings, file.settings, file.source);
      settings = narrower.settings;
      const at = { key: "settings", positions: file.settingPositions };
      problems.push(...problemsAt(file, at, narrower.mistakes));
    } else settings = { ...settings, ...file.settings };
  }
  const merged = narrowed(servers, settings, files);
  const { servers: kept, problems: leftOut } = bounded(merged.servers);
  return { servers: kept, settings, problems: [...problems, ...merged.problems, ...leftOut] };
}

/** The problems of one file. Errors count before warnings, because they leave something out; the order stays. */
function ofFile(file: string, problems: readonly ConfigProblem[], most: number): ConfigProblem[] {
  if (problems.length <= most) return [...problems];
  const errors = problems.filter(({ severity }) => severity === "error");
  const warnings = problems.filter(({ severity }) => severity === "warning");
  const reported = new Set([...errors, ...warnings].slice(0, most));
  const count = problems.length - reported.size;
  const more: ConfigProblem = {
    severity: errors.length > most ? "error" : "warning",
    file,
    message: `and ${count.toLocaleString("en")} more ${count === 1 ? "mistake" : "mistakes"}`,
    remedy: "Correct these first; the others are told then.",
  };
  return [...problems.filter((problem) => reported.has(problem)), more];
}

/** At most `most` problems of each file, in the order of the files, and one more that counts the others. */
export function boundProblems(
  problems: readonly ConfigProblem[],
  most: number = LIMITS.problemsPerFile,
): ConfigProblem[] {
  const byFile = Map.groupBy(problems, ({ file }) => file);
  return [...byFile].flatMap(([file, its]) => ofFile(file, its, most));
}
