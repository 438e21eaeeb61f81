/**
 * The table of all keys of a server. Its row says of a key what it may hold, what it means, what a definition holds for it,
 * and what a change of it does. To add a key: a row here, and its use; then `npm run schema`. Two more tables decide about
 * a key that a project may change in the user's own server: OVERRIDE_KEYS below, and WIDENED in merge/layers.ts. Pure.
 */
import * as z from "zod";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ServerStatus } from "../../../../src/shared/protocol/session.ts";
import { isKeyAsVariable } from "../../../../src/shared/text/key-shape.ts";
import { approveOf, EXPOSURES, type Exposure, toExposure } from "./exposure.ts";
import { type InheritEnv, inheritEnvShape, inheritEnvWords } from "./inherit-env.ts";
import { isLate } from "./interpolate.ts";
import { authShape, oauthShape } from "./oauth-keys.ts";
import { sandboxShape, sandboxWords, type WrittenSandbox } from "./sandbox.ts";
import {
  approve,
  approveTools,
  directTools,
  filled,
  flag,
  type Key,
  type Loose,
  names,
  outputGuard,
  shapeOf,
  strings,
  TOOL_PREFIXES,
  text,
} from "./shape.ts";
import { shown } from "./shown-text.ts";
import { skillsShape } from "./skill-policy.ts";

export type Lifecycle = ServerStatus["lifecycle"];
export const LIFECYCLES = ["lazy", "eager", "keep-alive"] as const satisfies readonly Lifecycle[];

/** Words of other programs that read the same files. */
const OTHER_TYPES = ["local", "remote", "streamableHttp"] as const;

/** Whether an entry of this type is a command's. */
export const isCommandType = (type: string | undefined): boolean => type === "stdio" || type === "local";

/** What GitHub Copilot writes for the tools to enable: a list of names, or all. */
export const isToolList = (tools: unknown): tools is string[] | "*" =>
  tools === "*" || (Array.isArray(tools) && tools.every((tool) => typeof tool === "string"));

/** pi-mcp-adapter's word for a lazy server that is never stopped. */
const LAZY_KEPT = "lazy-keep-alive";

/** Which revisions of MCP are spoken: auto begins with the handshake of older ones, unless the server is known to be newer. */
const PROTOCOLS = ["auto", "legacy", "2026-07-28"] as const;

/** Far more folders than a person lists, and few enough for each answer to a server. */
const ROOTS = 100;

/** What a change of the key does: the server gets another connection, or its tools and calls get other rules. */
type Part = "connection" | "rules";

/** A key that a definition holds as one value. */
interface Held<S extends z.ZodType, V> extends Key<S> {
  readonly part: Part;
  /** What a definition holds for what is written. */
  readonly read: (written: z.infer<S> | undefined) => V;
  /** What a person who is asked for consent reads of the value, which the consent then covers. */
  readonly words?: (value: NonNullable<V>) => string[];
  /** The order of the keys in the value is part of its meaning. */
  readonly isOrdered?: true;
}

type About<S extends z.ZodType, V> = Omit<Held<S, V>, "part" | "schema" | "read"> & {
  /** Absent: as it is written. */
  read?: Held<S, V>["read"];
};

const held =
  (part: Part) =>
  <S extends z.ZodType, V = z.infer<S> | undefined>(schema: () => S, about: About<S, V>): Held<S, V> => ({
    part,
    schema,
    read: (written) => written as V,
    ...about,
  });

const connection = held("connection");
const rules = held("rules");

/** A key that decides with others what the target, the sign-in or another key is: definition.ts and auth.ts read them. */
const joint = <S extends z.ZodType>(schema: () => S, about: Omit<Key<S>, "schema">): Key<S> => ({
  schema,
  ...about,
});

/** A URL with a variable, or a whole !command, is known only at connect; values.ts checks it then. */
const httpUrl = () =>
  z.string().refine((url) => isLate(url) || /^https?:$/.test(URL.parse(url)?.protocol ?? ""), {
    error: "expected an http or https URL",
  });

/** A time as timers take it: whole milliseconds, and no more than fit. A longer one would fire at once, a fraction throws. */
const timerMs = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.min(Math.max(1, Math.round(ms)), LIMITS.longestTimerMs);

const exposures = (written: Record<string, (typeof EXPOSURES)[number]> = {}): Record<string, Exposure> =>
  Object.fromEntries(Object.entries(written).map(([tool, to]) => [tool, toExposure(to)]));

/** Milliseconds for one run of the program that signs requests. */
const LONGEST_SIGNING_MS = 60_000;

const HEADERS_COMMAND = {
  command: { schema: filled, description: "The program; no shell.", examples: ["sign-request"] },
  args: {
    schema: names,
    description: "Its arguments. Values may hold ${VAR}, or be a whole !command.",
    examples: [["--profile", "work"]],
  },
  env: {
    schema: strings,
    description: "Environment variables, beside those of Pi.",
    examples: [{ AWS_PROFILE: "work" }],
  },
  timeoutMs: {
    schema: () => z.int().min(1).max(LONGEST_SIGNING_MS),
    description: "Milliseconds that one run may take; 10000 without it.",
    examples: [10_000],
  },
};

/** Far more than a system takes, before variables are filled in. */
const SOCKET_CHARS = 4_096;

export const SERVER_KEYS = {
  type: joint(() => z.enum(["stdio", "http", "streamable-http", "sse", ...OTHER_TYPES]), {
    description:
      "How to talk to the server. Derived from command or url. local is stdio, the last two are http.",
    examples: ["http"],
  }),
  command: joint(filled, { description: "Program of a local server; no shell.", examples: ["npx"] }),
  args: joint(names, {
    description: "Arguments of the command. Values may hold ${VAR}, or be a whole !command.",
    examples: [["-y", "@modelcontextprotocol/server-filesystem", "."]],
  }),
  env: joint(strings, {
    description: "Environment variables. Values may hold ${VAR}, or be a whole !command.",
    examples: [{ TOKEN: "${TOKEN}" }],
  }),
  envFile: joint(filled, {
    description: "File of NAME=value lines, from the session's folder; env wins over it.",
    examples: [".env"],
  }),
  envFileNames: joint(names, {
    description:
      "Names that your own server gets from an envFile in the session's folder, beside those that are known for data, such as *_TOKEN and *_KEY.",
    examples: [["API_URL"]],
  }),
  socket: joint(() => filled().max(SOCKET_CHARS), {
    description:
      "A socket of this machine at which a server speaks as over stdio: a path, or the name of a pipe of Windows. In place of command or url; it must belong to you or to root.",
    examples: ["~/.run/notes.sock"],
  }),
  cwd: joint(text, {
    description: "Working folder, from the session's; ~/ is the home folder.",
    examples: ["~/project"],
  }),
  url: joint(httpUrl, { description: "Endpoint of a remote server.", examples: ["https://example.com/mcp"] }),
  headers: joint(strings, {
    description: "HTTP headers. Values may hold ${VAR}, or be a whole !command.",
    examples: [{ Authorization: "Bearer ${TOKEN}" }],
  }),
  requestHeadersCommand: joint(() => z.looseObject(shapeOf(HEADERS_COMMAND)), {
    description:
      "Program that signs each request: it reads the request as JSON, and prints headers as JSON. Not in a project's file.",
    examples: [{ command: "sign-request" }],
  }),
  auth: joint(() => z.union([z.enum(["oauth", "bearer", "none"]), z.literal(false), authShape()]), {
    description:
      "How to sign in: bearer sends the token, none sends nothing, oauth signs in even beside an Authorization header. Without it: OAuth, if there is no such header and the server asks for it.",
    examples: ["bearer"],
  }),
  bearerToken: joint(filled, {
    description: "Token of the Authorization header.",
    examples: ["${DOCS_TOKEN}"],
  }),
  bearerTokenEnv: joint(
    () =>
      z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
          error: "expected the name of an environment variable",
          abort: true,
        })
        .refine((name) => !isKeyAsVariable(name), {
          error: "expected the name of an environment variable, not the token",
        }),
    { description: "Environment variable that holds the token.", examples: ["DOCS_TOKEN"] },
  ),
  oauth: joint(() => z.union([oauthShape(), z.literal(false)]), {
    description: "How to sign in with OAuth, or false for no sign-in.",
    examples: [{ clientId: "my-client" }],
  }),
  caFile: joint(filled, {
    description:
      "PEM file of further certificate authorities that this server may use; ~/ and ${VAR} are filled in.",
    examples: ["~/certificates/gateway.pem"],
  }),
  enabled: connection(flag, {
    description: "false keeps the entry without using it.",
    examples: [false],
    read: (isEnabled = true) => isEnabled,
  }),
  disabled: joint(flag, { description: "The same, the other way round.", examples: [true] }),
  lifecycle: rules(() => z.enum([...LIFECYCLES, LAZY_KEPT]), {
    description:
      "When the server runs: on its first call, from the start, or always; lazy-keep-alive is lazy with idleTimeout 0.",
    examples: ["lazy"],
    read: (written): Lifecycle => (written === undefined || written === LAZY_KEPT ? "lazy" : written),
  }),
  /** Absent: the value of the settings or, for `eager`, never. */
  idleTimeout: rules(() => z.number().min(0), {
    description: "Minutes without a call until it is stopped; 0 for never.",
    examples: [10],
  }),
  /** Merging lays it over the setting: then it says whether sessions share the server. */
  shared: connection(flag, {
    description:
      "Whether all your sessions use one process of it, which outlives them. Not for a server that keeps a state, such as a browser.",
    examples: [true],
  }),
  /** Merging lays it over the setting. Undefined: all. */
  inheritEnv: connection(inheritEnvShape, {
    description:
      "Which variables of your environment a local server gets beside env: true for all, false for what every program needs (PATH, HOME, language, proxies), or a list of these too; * matches any characters.",
    examples: [["AWS_*", "KUBECONFIG"]],
    read: (rule): InheritEnv | undefined => rule,
    words: inheritEnvWords,
  }),
  /** Merging lays it over the setting. Undefined: none. */
  sandbox: connection(sandboxShape, {
    description:
      "A sandbox for a local server: true for one that hides keys and sign-ins and lets it write only its own files, or an object with more. Needs bubblewrap on Linux; without it the server does not start.",
    examples: [true],
    read: (written): WrittenSandbox | undefined => written,
    words: sandboxWords,
  }),
  startupTimeoutMs: rules(() => z.number().positive(), {
    description: "Milliseconds to start and list its tools.",
    examples: [30_000],
    read: timerMs,
  }),
  timeout: rules(() => z.number().positive(), {
    description: "Seconds a call may take; progress renews it.",
    examples: [60],
    read: (seconds) => timerMs(seconds && seconds * 1_000),
  }),
  requestTimeoutMs: joint(() => z.number().min(0), {
    description: "The same in milliseconds; 0 for the default.",
    examples: [60_000],
  }),
  exposeResources: rules(flag, {
    description: "Offer its resources as tools.",
    examples: [true],
    read: (isWanted = true) => isWanted,
  }),
  exposePrompts: rules(flag, {
    description: "Offer its prompts as commands.",
    examples: [true],
    read: (isWanted = true) => isWanted,
  }),
  /** Merging lays it over the setting: `skillPolicy` of the definition. */
  skills: rules(skillsShape, {
    description:
      "Whether skills that it offers can be loaded: ask (each after your yes), allow (also without a yes, and with the commands that they lead to), or false for none.",
    examples: ["ask"],
  }),
  directTools: rules(directTools, {
    description: "Tools that the model always sees: all, none or these. search is another word for false.",
    examples: [["search_code"]],
    read: (written): boolean | string[] | undefined => (written === "search" ? false : written),
  }),
  exposure: rules(() => z.enum(EXPOSURES), {
    description:
      "How its tools reach the model: direct ones are declared from the first request on, hidden ones never; the others are found by ToolSearch and by codemode scripts.",
    examples: ["deferred"],
    read: (written) => written && toExposure(written),
  }),
  /** The first pattern that fits wins. */
  toolExposure: rules(() => z.record(z.string(), z.enum(EXPOSURES)), {
    description: "The same for single tools; * matches any characters.",
    examples: [{ "get_*": "direct", "delete_*": "hidden" }],
    read: exposures,
    isOrdered: true,
  }),
  includeTools: rules(names, {
    description: "Only these tools; * matches any characters.",
    examples: [["get_*"]],
  }),
  tools: joint(() => z.unknown(), {
    description: "Another spelling of includeTools; * among them is for all.",
    examples: [["get_*"]],
  }),
  excludeTools: rules(names, {
    description: "Never these tools; * matches any characters.",
    examples: [["delete_*"]],
    read: (patterns = []) => patterns,
  }),
  approve: rules(approve, {
    description:
      "Which calls of its tools ask you: never, destructive (tools that the server does not call read-only), always, or a rule for each tool or pattern, of which the most specific counts; tool(argument=pattern) is a rule about an argument.",
    examples: [{ "read_*": "allow", "delete_*": "deny", "*": "ask" }],
  }),
  approveTools: joint(approveTools, {
    description: "Another spelling of approve: true for always, or a list of tools that ask.",
    examples: [["delete_*"]],
  }),
  searchKeywords: rules(
    () => z.record(z.string(), z.array(filled().max(LIMITS.searchKeywordChars)).max(LIMITS.searchKeywords)),
    {
      description:
        "Your own words for its tools, by tool or pattern: ToolSearch finds a tool by them as by its name, and shows them to nobody.",
      examples: [{ list_issues: ["ticket", "bug"], "*": ["jira"] }],
    },
  ),
  toolPrefix: rules(() => z.enum(TOOL_PREFIXES), {
    description: "How its tools are named; see settings.toolPrefix.",
    examples: ["short"],
  }),
  description: rules(text, {
    description: "What the server is for, in a sentence.",
    examples: ["Search the docs"],
  }),
  elicitation: connection(flag, {
    description:
      "Whether the server may ask you questions while it works. false: it is told that nobody answers.",
    examples: [false],
    read: (mayAsk = true) => mayAsk,
  }),
  sampling: connection(flag, {
    description:
      "Whether the server may ask Pi's current model something, after your yes to each prompt. It costs tokens of yours. Not in a project's file.",
    examples: [true],
    read: (maySample = false) => maySample,
  }),
  protocol: connection(() => z.enum(PROTOCOLS), {
    description:
      "Revision of MCP: auto finds it out, legacy is 2025-11-25 and older, 2026-07-28 the one without a handshake.",
    examples: ["auto"],
    read: (revision = "auto") => revision,
  }),
  /** As written; true: the session's folder. Undefined: the server is told none. */
  roots: connection(() => z.union([flag(), z.array(filled()).max(ROOTS)]), {
    description:
      "Folders that the server is told to work in, if it asks: true for the session's, or a list of paths. Some servers then use these in place of the folders in their arguments.",
    examples: [["~/notes"]],
    read: (roots): true | readonly string[] | undefined =>
      roots === false || (Array.isArray(roots) && roots.length === 0) ? undefined : roots,
    words: (roots) => [
      roots === true
        ? "is told the folder in which Pi runs"
        : `is told the folders ${roots.map(shown).join(", ")}`,
    ],
  }),
  /** Its keys win over those of the settings' `outputGuard`. */
  outputGuard: rules(outputGuard, {
    description: "How much of a result the model sees; the whole is kept in a file. false for all of it.",
    examples: [{ maxBytes: 50_000, maxLines: 2_000 }],
  }),
  debug: connection(flag, {
    description: "Ask the server for its debug messages and write them and its stderr to the log.",
    examples: [true],
    read: (isWanted = false) => isWanted,
  }),
  trace: connection(flag, {
    description:
      "Write a line for each message to mcp-trace.jsonl: names, ids, sizes and times, never what it holds.",
    examples: [true],
    read: (isWanted = false) => isWanted,
  }),
};

export const entryShape = shapeOf(SERVER_KEYS);

/** An entry as it is written, checked. */
export type Entry = Loose<typeof entryShape>;

/** The keys that an override may change. */
export const OVERRIDE_KEYS = [
  "enabled",
  "disabled",
  "lifecycle",
  "idleTimeout",
  "directTools",
  "exposure",
  "toolExposure",
  "excludeTools",
  "approve",
  "approveTools",
  "shared",
  "inheritEnv",
  "sandbox",
  "skills",
] as const satisfies readonly (keyof Entry)[];

/** What protects the user from a server, in each spelling: what is meant by a slip in one of these keys must not be lost. */
export const PROTECTING_KEYS: readonly string[] = [
  "sandbox",
  "approve",
  "approveTools",
  "inheritEnv",
  "skills",
  "excludeTools",
  "includeTools",
  "tools",
] satisfies (keyof Entry)[];

/** An entry in one spelling: keys and words of other programs as those that mean the same here. */
export function inOneSpelling({
  disabled,
  requestTimeoutMs = 0,
  approveTools,
  tools,
  ...entry
}: Entry): Entry {
  if (disabled !== undefined) entry.enabled ??= !disabled;
  if (requestTimeoutMs > 0) entry.timeout = requestTimeoutMs / 1_000;
  if (approveTools !== undefined) entry.approve ??= approveOf(approveTools);
  if (Array.isArray(tools) && isToolList(tools) && !tools.includes("*")) entry.includeTools ??= tools;
  if (entry.lifecycle === LAZY_KEPT) {
    entry.lifecycle = "lazy";
    entry.idleTimeout ??= 0;
  }
  return entry;
}

/** The names in a definition of keys that it holds in a unit of its own. */
const HELD_AS = { idleTimeout: "idleTimeoutMinutes", timeout: "requestTimeoutMs" } as const;

type Rows = typeof SERVER_KEYS;
type HeldAs<K> = K extends keyof typeof HELD_AS ? (typeof HELD_AS)[K] : K;
/** What a definition holds for its keys. */
export type HeldValues = {
  [K in keyof Rows as Rows[K] extends { part: Part } ? HeldAs<K> : never]: Rows[K] extends {
    read: (written: never) => infer V;
  }
    ? V
    : never;
};

/** The keys that a definition holds, each with its row and its name there. */
export const HELD: readonly (Held<z.ZodType, unknown> & { key: string; name: keyof HeldValues })[] =
  Object.entries(SERVER_KEYS as Readonly<Record<string, Key | Held<z.ZodType, unknown>>>).flatMap(
    ([key, row]) =>
      "part" in row
        ? [
            {
              ...row,
              key,
              name: (Object.hasOwn(HELD_AS, key) ? Reflect.get(HELD_AS, key) : key) as keyof HeldValues,
            },
          ]
        : [],
  );

const ORDERED = HELD.filter(({ isOrdered }) => isOrdered);

/** For comparing by `canonical`, which sorts keys: a value whose order is part of its meaning becomes its entries. */
export const inOrder = <T extends Partial<HeldValues>>(values: T) => ({
  ...values,
  ...Object.fromEntries(ORDERED.map(({ name }) => [name, Object.entries(values[name] ?? {})])),
});

export const heldValues = (entry: Entry): HeldValues =>
  Object.fromEntries(HELD.map(({ key, name, read }) => [name, read(entry[key])])) as HeldValues;

/** The words of the keys that a consent covers, each with its value. */
export const consentedKeys = (values: HeldValues): { key: string; value: unknown; words: string[] }[] =>
  HELD.flatMap(({ key, name, words }) => {
    const value = values[name];
    return words ? [{ key, value, words: value === undefined ? [] : words(value) }] : [];
  });
