/**
 * Adds all sources up: extensions, imports, then our own files; later ones win. A whole entry replaces the server
 * and inherits nothing, so that credentials stay with their URL; an entry without a target overrides a few keys. A project's
 * file is told what it asks for and does not get. Pure.
 */

import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem, RegisteredServer } from "../../../../src/shared/protocol/session.ts";
import {
  isProject,
  isUsersOwn,
  type Origin,
  type OwnRules,
  parseEntry,
  type ServerDefinition,
  withReplaced,
} from "../entry/definition.ts";
import { approvals, exposureOf, toExposure } from "../entry/exposure.ts";
import { lessInherited } from "../entry/inherit-env.ts";
import { type Mistake, warning } from "../entry/mistakes.ts";
import { withoutUsersOnly } from "../entry/oauth-keys.ts";
import { applyOverride, type Override } from "../entry/override.ts";
import { lessRoom } from "../entry/sandbox.ts";
import {
  asksLess,
  DEFAULT_SETTINGS,
  narrowSettings,
  type Settings,
  STRICTER,
  tighterGuard,
} from "../entry/settings.ts";
import { lessSkills, skillPolicy, stricterSkills } from "../entry/skill-policy.ts";
import type { Position } from "../files/document.ts";
import type { FileConfig, FileEntry, KeyPositions } from "../files/files.ts";

/** What a project's server gets of a key: no more than the settings give. */
const NARROWED = {
  inheritEnv: lessInherited,
  sandbox: lessRoom,
  skills: lessSkills,
  outputGuard: tighterGuard,
};

const SAID_OF_ANOTHER =
  "what your file says of a server of this name does not loosen it for a project's server";

/** A project's server without what only the user may set, and with limits not looser than those of the settings. */
function narrowServer(
  server: ServerDefinition,
  settings: Settings,
): { server: ServerDefinition; mistakes: Mistake[] } {
  const replaced = server.replaced && narrowServer(server.replaced, settings).server;
  const narrower = replaced ? { ...server, replaced } : { ...server };
  // A server that the project only enabled keeps what the user's own file says.
  if (isUsersOwn(server)) return { server: narrower, mistakes: [] };
  const mistakes: Mistake[] = [];
  const isSaid = (key: string): boolean => server.userKeys?.includes(key) ?? false;
  // What the user says of a package's server is about that package. Any clone may define another server of the same name.
  const isTheirs = (key: string): boolean => server.origin !== "package" || !isSaid(key);
  if (server.oauth !== false) {
    const { plan, left } = withoutUsersOnly(server.oauth);
    narrower.oauth = plan;
    const remedy = "Define the server in your own mcp.json if you want it.";
    for (const { key, why } of left)
      mistakes.push(warning(["oauth", key], `a project's file may not set this: ${why}`, remedy));
  }
  const loosened = (key: string): void =>
    void mistakes.push(
      isSaid(key)
        ? warning([key], SAID_OF_ANOTHER, "Define the server in your own mcp.json if you want it.")
        : warning([key], STRICTER, `Write ${key} into your own mcp.json.`),
    );
  if (server.approve !== undefined && isTheirs("approve")) {
    // The user's settings decide about a project's server, and its own entry may add to them.
    Object.assign(narrower, { approve: undefined, approveToo: [server.approve, ...server.approveToo] });
    if (asksLess(server.approve, approvals(settings.approve)[0])) loosened("approve");
  }
  if (server.shared && isTheirs("shared")) {
    narrower.shared = undefined;
    loosened("shared");
  }
  for (const key of Object.keys(NARROWED) as (keyof typeof NARROWED)[]) {
    const wanted = server[key];
    if (wanted === undefined || !isTheirs(key)) continue;
    const narrowed = NARROWED[key] as (own: unknown, wanted: unknown) => { value: never; isLooser: boolean };
    const { value, isLooser } = narrowed(settings[key], wanted);
    narrower[key] = value;
    if (isLooser) loosened(key);
  }
  return { server: narrower, mistakes };
}

const OWN_SERVERS_ONLY = "a project's file may set this for its own servers only";
const IS_HIDDEN = "your own file hides these tools, and a project's file cannot show them";

type Asked<K extends keyof Override> = (
  wanted: NonNullable<Override[K]>,
  got: ServerDefinition,
  own: OwnRules,
) => string | undefined;

/** What a project's override asks for and does not get, by key. `got`: the result of the override. */
const WIDENED: { readonly [K in keyof Override]: Asked<K> } = {
  enabled: (wanted, { enabled }) =>
    wanted && !enabled
      ? "your own file switches this server off, and only your own file switches it on"
      : undefined,
  approve: (wanted, { approve }) => (asksLess(wanted, approve) ? STRICTER : undefined),
  lifecycle: (wanted, { lifecycle }) =>
    wanted === lifecycle ? undefined : "a project's file may only let your server run less",
  shared: (wanted, { shared }) => (wanted && !shared ? STRICTER : undefined),
  inheritEnv: () => OWN_SERVERS_ONLY,
  sandbox: () => OWN_SERVERS_ONLY,
  skills: (wanted, _, { skills }) => (lessSkills(skills, wanted).isLooser ? STRICTER : undefined),
  idleTimeout: (wanted, { idleTimeoutMinutes }) =>
    wanted === idleTimeoutMinutes
      ? undefined
      : "a project's file may only make this shorter, and not shorter than a minute",
  excludeTools: (wanted, _, own) =>
    wanted.length === 0 && own.excludeTools.length > 0
      ? "a project's list adds to yours; it cannot allow what your own file excludes"
      : undefined,
  exposure: (wanted, _, own) =>
    own.exposure === "hidden" && toExposure(wanted) !== "hidden" ? IS_HIDDEN : undefined,
  directTools: (wanted, _, own) =>
    own.exposure === "hidden" && (wanted === true || (Array.isArray(wanted) && wanted.length > 0))
      ? IS_HIDDEN
      : undefined,
  toolExposure: (wanted, _, own) => {
    const isHidden = (tool: string): boolean =>
      own.toolExposure[tool] === "hidden" || exposureOf(tool, own) === "hidden";
    const isLifted = Object.entries(wanted).some(
      ([tool, to]) => toExposure(to) !== "hidden" && isHidden(tool),
    );
    return isLifted ? IS_HIDDEN : undefined;
  },
};

/** A mistake for each thing that a project's override asks for and does not get. */
function wideningMistakes(override: Override, got: ServerDefinition): Mistake[] {
  const { userRules } = got;
  if (!userRules) return [];
  return Object.entries(WIDENED).flatMap(([key, asked]) => {
    const wanted = override[key as keyof Override];
    const why = wanted === undefined ? undefined : (asked as Asked<keyof Override>)(wanted, got, userRules);
    return why === undefined ? [] : [warning([key], why, "Change your own file if you want it.")];
  });
}

interface Layers {
  registered: readonly RegisteredServer[];
  /** The servers of packages and plugins, each with a name of its own. */
  packages?: readonly ServerDefinition[];
  /**
   * The servers of each host, in the order of `imports`. The first host of the user that has a name wins; within a host, the
   * last file.
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

const isUsers = ({ project }: ServerDefinition): boolean => !project;

/** The servers of a project, with one of the user below them. */
const above = (project: ServerDefinition, below: ServerDefinition): ServerDefinition => ({
  ...project,
  replaced: project.replaced ? above(project.replaced, below) : below,
});

function mergeHosts(hosts: Layers["hosts"]): Servers {
  const imported: Servers = new Map();
  for (const definitions of hosts) {
    const ofHost: Servers = new Map();
    for (const definition of definitions) put(ofHost, definition);
    for (const [name, definition] of ofHost) {
      const first = imported.get(name);
      const users = withReplaced(definition).find(isUsers);
      if (!first) imported.set(name, definition);
      // A clone's file of one host decides nothing about what the user has in another.
      else if (users && !withReplaced(first).some(isUsers)) imported.set(name, above(first, users));
    }
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

/** What the user's own files say of servers that others define, by name, in the order of the files. */
type Said = Map<string, { override: Override; source: FileConfig["source"] }[]>;

function applyEntry(
  servers: Servers,
  entry: FileEntry,
  { file, idleTimeout, said }: { file: FileConfig; idleTimeout: number; said: Said },
): ConfigProblem[] {
  if (entry.kind === "server") {
    const { definition } = entry;
    const below = servers.get(definition.name);
    // It would run unasked if it is the server to which the user said yes: his rules for that name go on.
    const rules = definition.project && below?.project ? (said.get(definition.name) ?? []) : [];
    put(
      servers,
      rules.reduce((server, { override, source }) => applyOverride(server, override, source), definition),
    );
    return [];
  }
  const base = servers.get(entry.name);
  if (base) {
    const { override } = entry;
    const { source } = file;
    const result = applyOverride(base, override, source, idleTimeout);
    servers.set(entry.name, result);
    if (base.project && !isProject(source.origin))
      said.set(entry.name, [...(said.get(entry.name) ?? []), { override, source }]);
    return isProject(file.source.origin)
      ? problemsAt(file, entry, wideningMistakes(entry.override, result))
      : [];
  }
  if (entry.isWrong) return [];
  const own = isProject(file.source.origin) ? "your own files" : "a file before this one";
  return [
    {
      severity: "error",
      file: file.source.file,
      ...entry.at,
      key: entry.key,
      message: `there is no server of this name in ${own} to override`,
      remedy: 'Add "command", "url" or "socket", or correct the name.',
    },
  ];
}

/**
 * The settings count for servers that say nothing themselves. `shared`, `inheritEnv` and `sandbox` are for local servers: a remote one is shared by its
 * nature.
 */
function withSettings(server: ServerDefinition, settings: Settings): ServerDefinition {
  const isLocal = server.target.kind === "stdio";
  const isShared = isLocal && (server.shared ?? settings.shared);
  const { replaced, userRules, passesOn = [] } = server;
  const written = isLocal ? (server.inheritEnv ?? settings.inheritEnv) : true;
  const isNarrow = written !== true && passesOn.length > 0;
  const inheritEnv = isNarrow ? [...new Set([...(written || []), ...passesOn])] : written;
  const preset = skillPolicy(settings.skills);
  const skills = skillPolicy(server.skills, preset);
  return {
    ...server,
    shared: isShared,
    sandbox: (isLocal && (server.sandbox ?? settings.sandbox)) || undefined,
    inheritEnv: inheritEnv === true ? undefined : inheritEnv,
    // A project's file may narrow what the user's own files say, never widen.
    skillPolicy: userRules ? stricterSkills(skillPolicy(userRules.skills, preset), skills).policy : skills,
    replaced: replaced && withSettings(replaced, settings),
  };
}

/** A server that no file has yet, as it would be if one had it. */
export const underSettings = (server: ServerDefinition, settings: Settings): ServerDefinition =>
  withSettings(narrowServer(server, settings).server, settings);

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
    merged.servers.push(withSettings(server, settings));
    const found = byFile.get(server.file);
    const entry = found?.entries.get(server.name);
    if (found && entry) merged.problems.push(...problemsAt(found.file, entry, mistakes));
  }
  return merged;
}

/** If there are too many servers, the sources keep theirs in this order. */
const RANKS: readonly Origin[] = ["user", "extension", "import", "project-pi", "project-file", "package"];

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

export function mergeLayers({ registered, packages = [], hosts, files }: Layers): Merged {
  const lowest = registeredServers(registered);
  // A package replaces nothing: whoever else has the name wins.
  const servers: Servers = new Map(packages.map((definition) => [definition.name, definition]));
  for (const definition of lowest.servers) put(servers, definition);
  for (const definition of mergeHosts(hosts).values()) put(servers, definition);
  const problems = [...lowest.problems];
  let settings = DEFAULT_SETTINGS;
  const said: Said = new Map();
  for (const file of files) {
    for (const entry of file.entries) {
      problems.push(...applyEntry(servers, entry, { file, idleTimeout: settings.idleTimeout, said }));
    }
    if (isProject(file.source.origin)) {
      const narrower = narrowSettings(settings, file.settings, file.source.file);
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
    remedy: "Correct these first; the others are reported then.",
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
