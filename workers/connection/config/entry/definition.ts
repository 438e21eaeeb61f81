/**
 * One server entry: checked against the schema, and what the rest of the worker reads of it. Values are
 * as written: variables and commands are resolved at connect (resolve.ts). A mistake is a value.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { TransportKind } from "../../../../src/shared/protocol/status.ts";
import { type ExposureRules, toExposure } from "./exposure.ts";
import { check, kindOf, type Mistake } from "./mistakes.ts";
import { type Entry, entryShape, type Lifecycle, type OAuthSettings, type ToolPrefix } from "./schema.ts";
import type { Settings } from "./settings.ts";
import { UNSAFE_KEY } from "./unsafe-key.ts";

export type StdioTarget = {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | undefined;
  /** File of more environment variables, read at connect; `env` wins over it. */
  envFile?: string | undefined;
};
export type HttpTarget = { url: string; headers: Record<string, string>; sseOnly: boolean };

/** Who wrote a definition, which decides how far it is trusted. */
export type Origin =
  /** Another extension, for this session. */
  | "extension"
  /** A file of another program in the user's home. */
  | "import"
  | "user"
  /** A project's file outside `.pi/`: needs a consent of its own. */
  | "project-file"
  /** `.pi/mcp.json`: as trusted as the project. */
  | "project-pi";

export interface AuthSettings {
  /** `auto`: a token if one is given, else OAuth where the server asks for it. */
  scheme: "auto" | "bearer" | "oauth" | "none";
  /** As written; resolved at connect. */
  token: string | undefined;
  tokenEnv: string | undefined;
}

export interface OwnRules extends ExposureRules {
  enabled: boolean;
}

export interface ServerDefinition extends ExposureRules {
  name: string;
  /** File that defines it, or the path of the extension that registered it. */
  file: string;
  origin: Origin;
  /** A file of the project has a say in what runs, or in whether it runs: it needs the project's trust. */
  project: boolean;
  /**
   * A file of the project names the command: then programs and packages of the project may run. Otherwise the folder
   * in which Pi runs decides nothing of what is started, also where a file of the project changed other keys.
   */
  definedByProject: boolean;
  /** Files that override some keys of it, lowest precedence first. */
  overrides: string[];
  /** The last of them that holds `enabled` or `disabled`: it alone can switch the server. */
  enabledIn: string | undefined;
  enabled: boolean;
  description: string | undefined;
  target: ({ kind: "stdio" } & StdioTarget) | ({ kind: "http" } & HttpTarget);
  auth: AuthSettings;
  oauth: OAuthSettings | false | undefined;
  lifecycle: Lifecycle;
  /** Undefined: the settings' or, for `eager`, none. 0: never. */
  idleTimeoutMinutes: number | undefined;
  requestTimeoutMs: number | undefined;
  startupTimeoutMs: number | undefined;
  exposeResources: boolean;
  toolPrefix: ToolPrefix | undefined;
  /** Over the settings' own, key by key. */
  outputGuard: Settings["outputGuard"] | undefined;
  debug: boolean;
  /** The entry as it stands in the file: what is hashed. */
  raw: Record<string, unknown>;
  /** What the user's own files say, where a file of a project changed the rules: it may narrow them, not widen. */
  userRules: OwnRules | undefined;
  /** The project's file that switched on what the user's own files switch off: it needs a consent in any case. */
  enabledByProject: string | undefined;
  /** Hash of the content of the envFile that the user agreed to: a project's server is started with no other. */
  agreedEnvFile?: string | undefined;
  /** What a project's definition took the place of; it counts again where the project's may not. */
  replaced: ServerDefinition | undefined;
}

export interface DefinitionSource {
  file: string;
  origin: Origin;
}

export const isProject = (origin: Origin): boolean => origin === "project-file" || origin === "project-pi";

export const transportOf = (definition: ServerDefinition): TransportKind => {
  if (definition.target.kind === "stdio") return "stdio";
  return definition.target.sseOnly ? "sse" : "http";
};

const SHAPE =
  'Write {"command": "...", "args": [...]} for a local server or {"url": "https://..."} for a remote one.';

const mistake = (path: string[], message: string, remedy: string): Mistake => ({
  severity: "error",
  path,
  message,
  remedy,
});

function targetOf(entry: Entry): ServerDefinition["target"] | Mistake {
  const { command, url, type } = entry;
  if (command !== undefined && url !== undefined && type === undefined) {
    return mistake(["url"], "both command and url are given", 'Remove one, or say which with "type".');
  }
  if (type === "stdio" || (type === undefined && command !== undefined)) {
    if (command === undefined) return mistake([], "command is missing", SHAPE);
    const { args = [], env = {}, cwd, envFile } = entry;
    return { kind: "stdio", command, args, env, cwd, ...(envFile === undefined ? {} : { envFile }) };
  }
  if (url === undefined) {
    return type === undefined
      ? mistake([], "neither command nor url is given", SHAPE)
      : mistake(["type"], "url is missing", SHAPE);
  }
  return { kind: "http", url, headers: entry.headers ?? {}, sseOnly: type === "sse" };
}

const warning = (key: string, message: string, remedy: string): Mistake => ({
  severity: "warning",
  path: [key],
  message,
  remedy,
});

/** What is accepted, since other programs know it, and has no effect here. */
function ineffective({ auth, oauth, bearerToken, bearerTokenEnv, command }: Entry): Mistake[] {
  const found: Mistake[] = [];
  const remedy = "Give the server a token or headers.";
  if (command?.startsWith("!")) {
    const instead = 'Write the program itself, or "command": "sh" with "args": ["-c", "..."].';
    found.push(warning("command", "a !command is not run here: this is taken for a program's name", instead));
  }
  if (auth === "oauth") {
    found.push(warning("auth", 'there is no OAuth sign-in yet, so "oauth" sends no token', remedy));
    for (const [key, value] of Object.entries({ bearerToken, bearerTokenEnv })) {
      if (value !== undefined)
        found.push(warning(key, 'is not sent with "auth": "oauth"', 'Write "auth": "bearer".'));
    }
  }
  if (typeof oauth === "object")
    found.push(warning("oauth", "has no effect: there is no OAuth sign-in yet", remedy));
  if (typeof auth === "object") {
    const instead = 'Write "bearerTokenEnv", or give the server headers.';
    found.push(warning("auth", "the sign-in of a Pi provider cannot be used here", instead));
  }
  return found;
}

function authOf(entry: Entry): { auth: AuthSettings; mistakes: Mistake[] } {
  const { auth, bearerToken: token, bearerTokenEnv: tokenEnv } = entry;
  const settings = (scheme: AuthSettings["scheme"]): AuthSettings => ({ scheme, token, tokenEnv });
  const mistakes = ineffective(entry);
  if (auth === false || auth === "none") return { auth: settings("none"), mistakes };
  if (typeof auth === "object") return { auth: settings("auto"), mistakes };
  if (auth === "bearer" && token === undefined && tokenEnv === undefined) {
    const missing = mistake(
      ["auth"],
      "there is no bearer token",
      'Write "bearerTokenEnv": "NAME_OF_VARIABLE" beside it.',
    );
    return { auth: settings("bearer"), mistakes: [...mistakes, missing] };
  }
  return { auth: settings(auth ?? "auto"), mistakes };
}

function toDefinition(
  name: string,
  entry: Entry,
  parts: Pick<ServerDefinition, "target" | "auth" | "raw"> & { source: DefinitionSource },
): ServerDefinition {
  const { source, ...rest } = parts;
  const timeoutMs = entry.timeout === undefined ? undefined : entry.timeout * 1_000;
  const toolExposure = Object.entries(entry.toolExposure ?? {}).map(([tool, to]) => [tool, toExposure(to)]);
  return {
    name,
    ...source,
    ...rest,
    project: isProject(source.origin),
    definedByProject: isProject(source.origin),
    overrides: [],
    enabledIn: undefined,
    enabled: entry.enabled ?? !(entry.disabled ?? false),
    description: entry.description,
    oauth: entry.oauth,
    lifecycle: entry.lifecycle ?? "lazy",
    idleTimeoutMinutes: entry.idleTimeout,
    requestTimeoutMs: entry.requestTimeoutMs ?? timeoutMs,
    startupTimeoutMs: entry.startupTimeoutMs,
    exposeResources: entry.exposeResources ?? true,
    directTools: entry.directTools,
    exposure: entry.exposure === undefined ? undefined : toExposure(entry.exposure),
    toolExposure: Object.fromEntries(toolExposure),
    includeTools: entry.includeTools,
    excludeTools: entry.excludeTools ?? [],
    toolPrefix: entry.toolPrefix,
    outputGuard: entry.outputGuard,
    debug: entry.debug ?? false,
    userRules: undefined,
    enabledByProject: undefined,
    replaced: undefined,
  };
}

/** A name that can be a key everywhere, or what is wrong with it. */
export function checkName(name: string): Mistake | undefined {
  if (name.trim() === "" || name === UNSAFE_KEY)
    return mistake([], "this is not a usable server name", "Rename the server.");
  if (name.length <= LIMITS.serverNameChars) return undefined;
  const length = `${name.length.toLocaleString("en")} characters, at most ${LIMITS.serverNameChars} are possible`;
  return mistake([], `this server name has ${length}`, "Rename the server.");
}

/** Checks one entry. `raw` is what the file gave. Without a definition there is at least one error. */
export function parseEntry(
  name: string,
  raw: unknown,
  source: DefinitionSource,
): { definition: ServerDefinition | undefined; mistakes: Mistake[] } {
  const badName = checkName(name);
  if (badName) return { definition: undefined, mistakes: [badName] };
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    return {
      definition: undefined,
      mistakes: [mistake([], `expected an object, found ${kindOf(raw)}`, SHAPE)],
    };
  }
  const { data: entry, mistakes } = check(entryShape, raw);
  if (!entry) return { definition: undefined, mistakes };
  const target = targetOf(entry);
  const { auth, mistakes: authMistakes } = authOf(entry);
  const all = [...mistakes, ...authMistakes, ...("message" in target ? [target] : [])];
  if ("message" in target || all.some(({ severity }) => severity === "error"))
    return { definition: undefined, mistakes: all };
  const parts = { source, target, auth, raw: raw as Record<string, unknown> };
  return { definition: toDefinition(name, entry, parts), mistakes: all };
}
