/**
 * Owns: one server entry, checked against the schema, as the definition that the rest of the worker reads. Values
 * stay as written: values.ts resolves variables and commands at connect. A mistake is a value. Pure.
 */

import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { TransportKind } from "../../../../src/shared/protocol/session.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { type AuthSettings, authOf, oauthOf } from "./auth.ts";
import type { ExposureRules, ServerApproval } from "./exposure.ts";
import { UNSAFE_KEY } from "./interpolate.ts";
import { check, kindOf, type Mistake, mistake, warning } from "./mistakes.ts";
import { type IdentityEntry, identityPlan, type OAuthPlan } from "./oauth-keys.ts";
import {
  type Entry,
  entryShape,
  type HeldValues,
  heldValues,
  inOneSpelling,
  inOrder,
  isToolList,
  PROTECTING_KEYS,
} from "./server-keys.ts";
import { type SkillPolicy, skillPolicy } from "./skill-policy.ts";

export type StdioTarget = {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | undefined;
  /** A file of more environment variables, read at connect; `env` wins over it. */
  envFile?: string | undefined;
  /** What the user's own server gets of an envFile that the session's folder decides, beside data. */
  envFileNames?: string[] | undefined;
};
/** A program that gives headers for each request. */
export interface HeadersCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
  timeoutMs: number;
}
export type SocketTarget = {
  /** A path, or the name of a pipe. */
  socket: string;
};
export type HttpTarget = {
  url: string;
  headers: Record<string, string>;
  /** How the address is spoken to: over SSE only, or over Streamable HTTP first. */
  type: Exclude<TransportKind, "stdio" | "socket">;
  /** A PEM file of further certificate authorities, read at connect. */
  caFile?: string | undefined;
  requestHeadersCommand?: HeadersCommand | undefined;
};

/** Who wrote a definition. The origin decides how far the definition is trusted. */
export type Origin =
  /** Another extension, for this session. */
  | "extension"
  /** A file of another program in the user's home. */
  | "import"
  | "user"
  /** A project's file outside `.pi/`: each server needs a consent of its own. */
  | "project-file"
  /** `.pi/mcp.json`: as trusted as the project. */
  | "project-pi"
  /** A package or plugin that the user installed, which is as untrusted as a clone: each server needs a consent of its own. */
  | "package";

/** Where a definition belongs, if that is not the session's folder. */
export interface Base {
  /** Absolute. A consent is bound to this folder if the session's folder decides nothing about what would run. */
  folder: string;
  /** A folder that is made before the server starts, and that the server may write. */
  data?: string | undefined;
}

/** A rule of the policy of this machine: all parts that it has must fit. */
export interface PolicyRule {
  name?: string;
  /** The program, or the program and its arguments; `**` as the last one: any further ones. */
  command?: string | string[];
  url?: string;
  line: number;
}

export interface PolicyRules {
  file: string;
  /** Absent: what no rule denies may run. */
  allow?: readonly PolicyRule[];
  deny: readonly PolicyRule[];
}

export interface OwnRules extends ExposureRules {
  enabled: boolean;
  skills: HeldValues["skills"];
}

export interface ServerDefinition extends HeldValues, ServerApproval {
  name: string;
  /** The file that defines the server, or the path of the extension that registered it. */
  file: string;
  origin: Origin;
  /** What `skills` of the server and of the settings say together, since merging; before that, the defaults. */
  skillPolicy: SkillPolicy;
  base?: Base | undefined;
  /** A file of the project or of a package decides what runs, or whether it runs: the server needs trust or a consent. */
  project: boolean;
  /**
   * A file of the project names the command: then programs and packages of the project may run. Otherwise the folder
   * in which Pi runs decides nothing about what is started, even if a file of the project changed other keys.
   */
  definedByProject: boolean;
  /** Files that override some of its keys, lowest precedence first. */
  overrides: string[];
  /** The keys that the user's own files set over a definition that is not the user's own: these are not narrowed. */
  userKeys?: readonly string[] | undefined;
  /** The last of these files that holds `enabled` or `disabled`: a change in any other file has no effect. */
  enabledIn: string | undefined;
  target:
    | ({ kind: "stdio" } & StdioTarget)
    | ({ kind: "http" } & HttpTarget)
    | ({ kind: "socket" } & SocketTarget);
  /** Names of variables that its own program passes on: it inherits them whatever else is kept back. */
  passesOn?: readonly string[];
  auth: AuthSettings;
  /** False: no OAuth, whatever the server asks for. Values stay as written; `resolveOAuth` (values.ts) fills them in. */
  oauth: OAuthPlan | false;
  /** The entry as it stands in the file. The cache hashes it. */
  raw: Record<string, unknown>;
  /**
   * The rules of the user's own files, if a file of a project changed them: a project may narrow the rules, never
   * widen them.
   */
  userRules: OwnRules | undefined;
  /** The project's file that enabled a server which the user's own files disable: it needs a consent in any case. */
  enabledByProject: string | undefined;
  /** Hash of the envFile's content that the user agreed to. A project's server is started with no other content. */
  agreedEnvFile?: string | undefined;
  /** Hash of the project's files that it names, as the user agreed to them. */
  agreedScripts?: string | undefined;
  /** The policy of this machine defines it: no file, no word of the person and no option takes it away. */
  isRequired?: true | undefined;
  /** The rules that judge it when it is connected: what it runs is known only then. */
  policy?: PolicyRules | undefined;
  /** The person has switched it off for this session. `enabled` is false then. */
  isOff?: true | undefined;
  /** The server that a project's definition replaced. It counts again if the project's server may not run. */
  replaced: ServerDefinition | undefined;
}

export interface DefinitionSource {
  file: string;
  origin: Origin;
  base?: Base | undefined;
}

/** Whether nobody has agreed yet to what the file says: it may narrow, and its servers need the user's trust. */
export const isProject = (origin: Origin): boolean =>
  origin === "project-file" || origin === "project-pi" || origin === "package";

/** Whether the user's own files define the server, even if a project enabled it. */
export const isUsersOwn = ({ project, enabledByProject }: ServerDefinition): boolean =>
  !project || enabledByProject !== undefined;

/** The server, and those that it replaced. */
export const withReplaced = (server: ServerDefinition): ServerDefinition[] => [
  server,
  ...(server.replaced ? withReplaced(server.replaced) : []),
];

/**
 * Whether what the user's own file says of that name decides about this server. A project's file comes after it, and the policy
 * of the machine beats it: a rule there would be about another server of the name, or about none.
 */
export const obeysUsersFile = ({ definedByProject, isRequired }: ServerDefinition): boolean =>
  !definedByProject && !isRequired;

export const transportOf = ({ target }: ServerDefinition): TransportKind =>
  target.kind === "http" ? target.type : target.kind;

/** All of a definition for comparing by `canonical`, as `inOrder` gives it. */
export const comparable = (definition: ServerDefinition): object => {
  const { userRules, replaced } = definition;
  return {
    ...inOrder(definition),
    userRules: userRules && inOrder(userRules),
    replaced: replaced && comparable(replaced),
  };
};

/** What is spoken to an address, by the written `type`: clients have several words for Streamable HTTP. */
const SPOKEN = {
  ...{ http: "http", "streamable-http": "http", sse: "sse" },
  ...{ remote: "http", streamableHttp: "http" },
} as const satisfies Record<
  Exclude<NonNullable<Entry["type"]>, "stdio" | "local">,
  Exclude<TransportKind, "stdio" | "socket">
>;

const SHAPE =
  'Write {"command": "...", "args": [...]} for a local server or {"url": "https://..."} for a remote one.';

function targetOf(entry: Entry): ServerDefinition["target"] | Mistake {
  const { command, url, type, socket } = entry;
  if (socket !== undefined) {
    const other = (["command", "url", "type"] as const).find((key) => entry[key] !== undefined);
    if (other === undefined) return { kind: "socket", socket };
    return mistake([other], `both socket and ${other} are given`, "Remove one of the two.");
  }
  if (command !== undefined && url !== undefined && type === undefined) {
    return mistake(["url"], "both command and url are given", 'Remove one, or say which with "type".');
  }
  if (type === "stdio" || type === "local" || (type === undefined && command !== undefined)) {
    if (command === undefined) return mistake([], "command is missing", SHAPE);
    const { args = [], env = {}, cwd, envFile, envFileNames } = entry;
    const file = envFile === undefined ? {} : { envFile, ...(envFileNames && { envFileNames }) };
    return { kind: "stdio", command, args, env, cwd, ...file };
  }
  if (url === undefined) {
    return type === undefined
      ? mistake([], "neither command nor url is given", SHAPE)
      : mistake(["type"], "url is missing", SHAPE);
  }
  if (type === "sse" && entry.protocol === "2026-07-28") {
    return mistake(["protocol"], "no server speaks this revision over sse", "Remove type or protocol.");
  }
  const { headers = {}, caFile } = entry;
  return {
    kind: "http",
    url,
    headers,
    type: SPOKEN[type ?? "http"],
    ...(caFile === undefined ? {} : { caFile }),
    ...headersCommandOf(entry),
  };
}

/** The name of what stands for the company's identity provider. */
const IDENTITY_PROVIDER = "settings.identityProvider";

/** What is wrong with a server name. Undefined if the name can be a key everywhere. */
export function checkName(name: string): Mistake | undefined {
  if (name.trim() === "" || name === UNSAFE_KEY || name === IDENTITY_PROVIDER)
    return mistake([], "this is not a usable server name", "Rename the server.");
  if (name.length <= LIMITS.serverNameChars) return undefined;
  const length = `${name.length.toLocaleString("en")} characters, at most ${LIMITS.serverNameChars} are possible`;
  return mistake([], `this server name has ${length}`, "Rename the server.");
}

/** Keys of a local server -> why they do nothing for a remote one. */
const NO_EFFECT = {
  shared: "has no effect: every session has its own connection to a remote server",
  inheritEnv: "has no effect: a remote server gets no environment",
  sandbox: "has no effect: a remote server does not run here",
} as const satisfies Partial<Record<keyof Entry, string>>;
/** Keys of other servers -> why they do nothing for one behind a socket. */
const AT_A_SOCKET: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    (["sandbox", "inheritEnv", "args", "env", "envFile", "cwd", "shared"] as const).map((key) => [
      key,
      "has no effect: whoever has started a server behind a socket decides that",
    ]),
  ),
  ...Object.fromEntries(
    (["headers", "bearerToken", "bearerTokenEnv", "auth", "oauth", "caFile"] as const).map((key) => [
      key,
      "has no effect: a socket has no HTTP",
    ]),
  ),
};
const IDLE: Readonly<Record<ServerDefinition["target"]["kind"], Readonly<Record<string, string>>>> = {
  stdio: {},
  http: NO_EFFECT,
  socket: AT_A_SOCKET,
};

/**
 * The company's identity provider in the place of a server, as sign-ins see it: its url is its issuer. Its name, which no
 * server can have, is in texts, and names the folder of its sign-in.
 */
export function identityDefinition(written: IdentityEntry, file: string): ServerDefinition {
  const raw = { url: written.issuer, auth: "oauth" };
  const { definition } = parseEntry("it", raw, { file, origin: "user" });
  if (!definition) throw new TypeError("an identity provider was not checked");
  return { ...definition, name: IDENTITY_PROVIDER, oauth: identityPlan(written) };
}

const SIGNING_MS = 10_000;

const headersCommandOf = ({ requestHeadersCommand: written }: Entry): Partial<HttpTarget> => {
  if (written?.command === undefined) return {};
  const { command, args = [], env = {}, timeoutMs = SIGNING_MS } = written;
  return { requestHeadersCommand: { command, args, env, timeoutMs } };
};

/** A program that sees and signs each request is the user's own choice. */
function signingMistakes({ requestHeadersCommand, url }: Entry, project: boolean): Mistake[] {
  if (requestHeadersCommand === undefined) return [];
  const path = ["requestHeadersCommand"];
  if (project) {
    const why = "a project's file may not name a program that signs requests";
    return [mistake(path, why, "Define the server in your own mcp.json if you want it.")];
  }
  if (requestHeadersCommand.command === undefined)
    return [mistake(path, "has no command", 'Write for example {"command": "sign-request"}.')];
  return url === undefined
    ? [warning(path, "has no effect: a local server gets no requests", "Remove it.")]
    : [];
}

/** Tokens are spent for the servers that the user has chosen. */
const samplingMistakes = ({ sampling }: Entry, project: boolean): Mistake[] =>
  sampling && project
    ? [
        warning(
          ["sampling"],
          "has no effect in a project's file: it would let the server use your model",
          "Define the server in your own mcp.json if you want it.",
        ),
      ]
    : [];

/** Other programs write milliseconds into this key, and nobody means thousands of whole seconds with it. */
const MS_FROM = 1_000;

function timeoutMistakes({ timeout, requestTimeoutMs }: Entry): Mistake[] {
  if (timeout === undefined || requestTimeoutMs !== undefined || timeout % MS_FROM !== 0) return [];
  const minutes = Math.round(timeout / 60).toLocaleString("en");
  return [
    warning(
      ["timeout"],
      `is in seconds here, so a call may take ${minutes} minutes; most programs write milliseconds`,
      `Write "requestTimeoutMs": ${timeout} beside it if it is milliseconds; only that counts here then.`,
    ),
  ];
}

const toolsMistakes = ({ tools }: Entry): Mistake[] =>
  tools === undefined || isToolList(tools)
    ? []
    : [
        warning(
          ["tools"],
          "is no list of names, so it has no effect: the tools to enable are includeTools here",
          'Write for example "includeTools": ["get_*"]; until then all tools are there.',
        ),
      ];

/** Checks one entry. `raw` is the value in the file. Without a definition there is at least one error. */
export function parseEntry(
  name: string,
  raw: unknown,
  source: DefinitionSource,
): { definition: ServerDefinition | undefined; mistakes: Mistake[] } {
  const refused = (...mistakes: Mistake[]) => ({ definition: undefined, mistakes });
  const badName = checkName(name);
  if (badName) return refused(badName);
  if (!isObject(raw)) return refused(mistake([], `expected an object, found ${kindOf(raw)}`, SHAPE));
  const { data, mistakes } = check(entryShape, raw, source.origin === "user" ? PROTECTING_KEYS : []);
  if (!data) return refused(...mistakes);
  const entry = inOneSpelling(data);
  const target = targetOf(entry);
  const project = isProject(source.origin);
  const { auth, mistakes: authMistakes } = authOf(entry, project);
  const { oauth, mistakes: oauthMistakes } = oauthOf(entry, { scheme: auth.scheme, project });
  const idle = Object.entries("message" in target ? {} : IDLE[target.kind]).filter(
    ([key]) => entry[key as keyof Entry],
  );
  const all = [
    ...mistakes,
    ...idle.map(([key, why]) => warning([key], why, "Remove it.")),
    ...authMistakes,
    ...oauthMistakes,
    ...signingMistakes(entry, project),
    ...samplingMistakes(entry, project),
    ...timeoutMistakes(data),
    ...toolsMistakes(data),
    ...("message" in target ? [target] : []),
  ];
  if ("message" in target || all.some(({ severity }) => severity === "error")) return refused(...all);
  const definition: ServerDefinition = {
    name,
    ...source,
    ...heldValues(entry),
    target,
    auth,
    oauth,
    raw,
    project,
    definedByProject: project && source.origin !== "package",
    overrides: [],
    enabledIn: undefined,
    approveToo: [],
    skillPolicy: skillPolicy(entry.skills),
    userRules: undefined,
    enabledByProject: undefined,
    replaced: undefined,
  };
  return { definition, mistakes: all };
}
