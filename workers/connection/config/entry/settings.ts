/**
 * The table of all settings. Its row says of a setting what it may hold, what it means, its default, and what a project's
 * file gets of it: a model can write such a file, which may narrow what the user's files allow and never lets anything be
 * written, shown or run that they do not allow. Nor may it narrow a limit until the user's own servers fail. To add a
 * setting: a row here, and its use; then `npm run schema`. Pure.
 */
import * as z from "zod";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { canonical } from "../../../shared/json.ts";
import { APPROVE_WORDS, type Approve, approvals, approveOf, type SettingsApproval } from "./exposure.ts";
import { type InheritEnv, inheritEnvShape } from "./inherit-env.ts";
import { isLate } from "./interpolate.ts";
import { check, kindOf, type Mistake, mistake, warning } from "./mistakes.ts";
import { type IdentityEntry, identityFindings, identityShape } from "./oauth-keys.ts";
import { sandboxShape, type WrittenSandbox } from "./sandbox.ts";
import {
  approve,
  approveTools,
  directTools,
  filled,
  flag,
  type Key,
  type Keys,
  names,
  outputGuard,
  shapeOf,
  TOOL_PREFIXES,
  text,
} from "./shape.ts";
import { lessSkills, skillsShape } from "./skill-policy.ts";

/** What a project's file gets of a setting. `because`: why it does not get all that it asks for. */
interface Ruling<V> {
  value: V;
  because?: string;
}

type Rule<V> = (own: V, wanted: V) => Ruling<V>;

interface Setting<S extends z.ZodType, V> extends Key<S> {
  readonly preset: V;
  readonly narrow: Rule<V>;
}

const setting = <S extends z.ZodType, V = z.infer<S>>(
  schema: () => S,
  about: Omit<Setting<S, NoInfer<V>>, "schema">,
): Setting<S, V> => ({ schema, ...about });

export const STRICTER = "a project's file may only make this stricter";

/** It decides neither what runs nor what the user's own servers may do. */
const free = <V>(_: V, value: V): Ruling<V> => ({ value });

const usersOnly =
  (why: string) =>
  <V>(own: V, wanted: V): Ruling<V> =>
    canonical(wanted) === canonical(own)
      ? { value: own }
      : { value: own, because: `a project's file may not decide this: ${why}` };

const looser = <V>(value: V, isLooser: boolean): Ruling<V> =>
  isLooser ? { value, because: STRICTER } : { value };

/** A limit so close that the user's own servers could not work any more. */
const tooClose = (floor: string): string =>
  `a project's file may not make this less than ${floor}: your own servers go by it too`;

/** Less would stop a server between two calls of one task, and a server with a state would lose it. */
const LEAST_IDLE_MINUTES = 1;

/** The minutes that a project gets if it wants `wanted` in place of `own`: never longer. 0: never stopped. */
export function idleMinutes(own: number, wanted: number): number {
  const comparable = (minutes: number): number => (minutes === 0 ? Number.POSITIVE_INFINITY : minutes);
  if (comparable(wanted) > comparable(own)) return own;
  return wanted === 0 ? 0 : Math.max(wanted, Math.min(comparable(own), LEAST_IDLE_MINUTES));
}

/** Whether a project's file names a word that asks less often than the user's word. Rules cannot be compared so. */
export const asksLess = (wanted: Approve, own: Approve | undefined): boolean =>
  typeof wanted === "string" &&
  typeof own === "string" &&
  APPROVE_WORDS.indexOf(wanted) < APPROVE_WORDS.indexOf(own);

export interface GuardLimits {
  maxBytes: number;
  maxLines: number;
}

type Guard = false | { maxBytes?: number | undefined; maxLines?: number | undefined };

export const DEFAULT_GUARD: GuardLimits = { maxBytes: LIMITS.resultBytes, maxLines: LIMITS.resultLines };

/** The limits that result from settings; later ones win, and `undefined` keeps the limits before it. */
export const guardFrom = (...settings: readonly (Guard | undefined)[]): GuardLimits | false =>
  guardOver(DEFAULT_GUARD, settings);

/**
 * The same for a tool whose server names the bytes of a result (shared/signs.ts): that is in place of the default, so a limit
 * that is written in a file wins. More bytes than the default have no limit of lines.
 */
export const guardForTool = (
  wantedBytes: number,
  ...settings: readonly (Guard | undefined)[]
): GuardLimits | false =>
  guardOver(
    {
      maxBytes: wantedBytes,
      maxLines: wantedBytes > DEFAULT_GUARD.maxBytes ? wantedBytes : DEFAULT_GUARD.maxLines,
    },
    settings,
  );

function guardOver(preset: GuardLimits, settings: readonly (Guard | undefined)[]): GuardLimits | false {
  let limits: GuardLimits | false = preset;
  for (const setting of settings) {
    if (setting === undefined) continue;
    const before: GuardLimits = limits || preset;
    limits = setting && {
      maxBytes: setting.maxBytes ?? before.maxBytes,
      maxLines: setting.maxLines ?? before.maxLines,
    };
  }
  return limits;
}

/** The stricter limits of both. `isLooser`: `wanted` asks for more than `own` allows. */
export function tighterGuard(own: Guard, wanted: Guard): { value: Guard; isLooser: boolean } {
  const most = guardFrom(own);
  const asked = guardFrom(own, wanted);
  if (most === false) return { value: wanted, isLooser: false };
  if (asked === false) return { value: own, isLooser: true };
  const maxBytes = Math.min(most.maxBytes, asked.maxBytes);
  const maxLines = Math.min(most.maxLines, asked.maxLines);
  const isSame = maxBytes === most.maxBytes && maxLines === most.maxLines;
  return {
    value: isSame ? own : { maxBytes, maxLines },
    isLooser: asked.maxBytes > most.maxBytes || asked.maxLines > most.maxLines,
  };
}

/**
 * Address of the package's own client metadata document, oauth-client.json. Empty as long as nobody publishes the document.
 * A fork writes the address here and as `client_id` into the document.
 */
export const CLIENT_METADATA_URL = "";

const HOT_RELOAD = ["on", "ask", "off"] as const;

const SETTINGS = {
  toolPrefix: setting(() => z.enum(TOOL_PREFIXES), {
    description: "Names of tools: server__tool, a shorter server, the tool alone, or mcp__server__tool.",
    examples: ["server"],
    preset: "server",
    // Extensions that allow or refuse tools go by names.
    narrow: usersOnly("it changes the names of your tools"),
  }),
  /** In minutes. */
  idleTimeout: setting(() => z.number().min(0), {
    description: "Minutes until an unused server is stopped; 0 for never.",
    examples: [10],
    preset: 10,
    narrow: (own, wanted) => {
      const minutes = idleMinutes(own, wanted);
      return looser(minutes, minutes !== wanted);
    },
  }),
  shared: setting(flag, {
    description: "Default of every local server's shared: all your sessions use one process of it.",
    examples: [true],
    preset: false,
    narrow: (own, wanted) => looser(own && wanted, wanted && !own),
  }),
  inheritEnv: setting<ReturnType<typeof inheritEnvShape>, InheritEnv>(inheritEnvShape, {
    description: "Default of every local server's inheritEnv.",
    examples: [false],
    preset: true,
    narrow: usersOnly("your own servers may need their variables"),
  }),
  /** As written. */
  sandbox: setting<ReturnType<typeof sandboxShape>, WrittenSandbox>(sandboxShape, {
    description: "Default of every local server's sandbox; a project's server gets no more room than this.",
    examples: [true],
    preset: false,
    narrow: usersOnly("your own servers may need their room"),
  }),
  /** As written. */
  skills: setting(skillsShape, {
    description: "Default of every server's skills: ask, allow or false.",
    examples: ["ask"],
    preset: "ask",
    narrow: (own, wanted) => {
      const { value, isLooser } = lessSkills(own, wanted);
      return looser(value, isLooser);
    },
  }),
  outputGuard: setting(outputGuard, {
    description: "How much of a result the model sees; the whole is kept in a file. false for all of it.",
    examples: [{ maxBytes: 50_000, maxLines: 2_000 }],
    preset: {},
    narrow: (own, wanted) => {
      const { value: guard, isLooser } = tighterGuard(own, wanted);
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
  }),
  search: setting(() => z.enum(["ranked", "weighted"]), {
    description: "How ToolSearch scores: by relevance, or by fixed weights.",
    examples: ["ranked"],
    preset: "ranked",
    narrow: free,
  }),
  proxyTool: setting(flag, {
    description: "Offer the single tool mcp in place of ToolSearch, for the smallest prompt.",
    examples: [true],
    preset: false,
    narrow: usersOnly("it changes the names under which your tools are called"),
  }),
  toonEncode: setting(() => z.union([flag(), names()]), {
    description: "Encode JSON results as TOON where that is shorter: all servers or these.",
    examples: [true],
    preset: false,
    narrow: free,
  }),
  captureStats: setting(
    () =>
      z.union([
        flag(),
        z.looseObject(
          shapeOf({
            path: {
              schema: text,
              description: "File for the counts, from the agent folder.",
              examples: ["mcp-stats.jsonl"],
            },
          }),
        ),
      ]),
    {
      description:
        "Count calls, errors, bytes and times of each tool, on this machine alone, for /mcp stats.",
      examples: [false],
      preset: true,
      narrow: usersOnly("it writes files"),
    },
  ),
  /** Undefined: no file says anything, so a server's own wish counts (shared/signs.ts). */
  directTools: setting<ReturnType<typeof directTools>, boolean | string[] | undefined>(directTools, {
    description: "Default of every server's directTools. false: servers' own wishes do not count either.",
    examples: [false],
    preset: undefined,
    narrow: free,
  }),
  approve: setting<ReturnType<typeof approve>, SettingsApproval>(approve, {
    description:
      "Default of every server's approve; its rules count for tools that no rule of their server fits.",
    examples: ["destructive"],
    preset: "never",
    narrow: (own, wanted) => {
      const before = approvals(own);
      const [asked] = approvals(wanted);
      if (asked === undefined) return { value: own };
      return looser([...before, asked], asksLess(asked, before[0]));
    },
  }),
  autoAuth: setting(flag, {
    description: "A call to a server that needs a sign-in begins the sign-in and waits for it.",
    examples: [true],
    preset: false,
    narrow: usersOnly("it opens your browser"),
  }),
  tokenStore: setting(() => z.enum(["file", "system"]), {
    description:
      "Where the tokens of new sign-ins are kept: in private files, or in the system's credential store.",
    examples: ["system"],
    preset: "file",
    narrow: usersOnly("it decides where your tokens are kept"),
  }),
  /** Empty: none. */
  clientMetadataUrl: setting(
    // Client ID Metadata Document, section 3.
    () => z.string().regex(/^(?:https:\/\/[^\s/?#@]+\/[^\s#]+)?$/, "is not an https URL with a path"),
    {
      description: "https address of a client metadata document for servers without one of their own.",
      examples: ["https://example.com/oauth-client.json"],
      preset: CLIENT_METADATA_URL,
      narrow: usersOnly("it decides as whom you sign in"),
    },
  ),
  /** As written. Empty: no further certificate authorities. */
  caFile: setting(filled, {
    description: "PEM file of further certificate authorities for all servers.",
    examples: ["~/certificates/company.pem"],
    preset: "",
    narrow: usersOnly("it decides which machines your servers are taken for"),
  }),
  /** As written. */
  identityProvider: setting<ReturnType<typeof identityShape>, IdentityEntry | undefined>(identityShape, {
    description:
      "Your company's identity provider: one sign-in there for all servers whose oauth.grantType is identity_provider. Its keys are those of oauth.",
    examples: [{ issuer: "https://company.example.com", clientId: "pi" }],
    preset: undefined,
    narrow: usersOnly("it says who you are"),
  }),
  maxMessageBytes: setting(() => z.int().min(1_024), {
    description: "Longest message that a server may send, in bytes.",
    examples: [67_108_864],
    preset: LIMITS.messageBytes,
    narrow: (own, wanted) => {
      const least = Math.min(own, LIMITS.projectMessageBytes);
      if (wanted < least) return { value: least, because: tooClose(`${least.toLocaleString("en")} bytes`) };
      return looser(Math.min(own, wanted), wanted > own);
    },
  }),
  hotReload: setting(() => z.enum(HOT_RELOAD), {
    description: "Whether an edited file takes effect at once.",
    examples: ["on"],
    preset: "on",
    narrow: (own, wanted) => {
      const isLooser = HOT_RELOAD.indexOf(wanted) < HOT_RELOAD.indexOf(own);
      return looser(isLooser ? own : wanted, isLooser);
    },
  }),
  /** As written. */
  ancestorConfigRoots: setting(names, {
    description:
      "Folders of yours in whose repositories .mcp.json also counts in the folders above the session's, up to the repository's root.",
    examples: [["~/work"]],
    preset: [],
    narrow: usersOnly("it lets more files name servers"),
  }),
  catalog: setting(() => z.enum(["tools", "servers", "off"]), {
    description: "What ToolSearch's description lists.",
    examples: ["tools"],
    preset: "tools",
    narrow: free,
  }),
};

/** Spellings of other programs: `parseSettings` gives them as the settings that mean the same. */
const SPELLINGS = {
  approveTools: {
    schema: approveTools,
    description: "Another spelling of approve: true for always, or a list of tools that ask.",
    examples: [["github_delete_*"]],
  },
} satisfies Keys;

export const settingsShape = shapeOf({ ...SETTINGS, ...SPELLINGS });

export type SettingKey = keyof typeof SETTINGS;
export type Settings = {
  [K in SettingKey]: (typeof SETTINGS)[K] extends Setting<z.ZodType, infer V> ? V : never;
} & {
  /** The project's file that lowered `maxMessageBytes`. */
  messageLimitOf?: string | undefined;
};

export const SETTING_KEYS = Object.keys(SETTINGS) as SettingKey[];

export const DEFAULT_SETTINGS = Object.fromEntries(
  Object.entries(SETTINGS).map(([key, { preset }]) => [key, preset]),
) as Settings;

/** What a user wanted who wrote one of these wrong: protection, however much of it. */
export const STRICTEST: Partial<Settings> = {
  sandbox: true,
  approve: "always",
  inheritEnv: false,
  skills: false,
  hotReload: "ask",
};

/** The settings of `STRICTEST`, in each spelling. */
export const STRICT_KEYS: readonly string[] = [...Object.keys(STRICTEST), "approveTools"];

/** What errors about all settings of a user's file say. */
export const UNTIL_ALL =
  "Until then the settings count as their strictest: servers run in a sandbox without your environment, each call asks, no skill is offered, and edits ask.";

/** The setting that a mistake is about. */
const settingOf = ({ path, meant }: Mistake): string => meant ?? path[0] ?? "";

/** The strictest values of the wrong keys, and the mistakes that say so. */
function strictly(wrong: ReadonlySet<string>, mistakes: readonly Mistake[]) {
  const strict = Object.fromEntries(Object.entries(STRICTEST).filter(([key]) => wrong.has(key)));
  const told = mistakes.map((one): Mistake => {
    const written = settingOf(one);
    const key = written === "approveTools" ? "approve" : written;
    if (one.severity !== "error" || !Object.hasOwn(strict, key)) return one;
    const until = `Until then ${key} counts as ${JSON.stringify(strict[key])}.`;
    return { ...one, remedy: `${one.remedy} ${until}` };
  });
  return { strict, told };
}

/**
 * Checks the settings of one file. A wrong key is left out; the others count. `isUsers`: a wrong key that protects the user
 * counts as the strictest. `others`: mistakes about its keys that the text alone shows.
 */
export function parseSettings(
  raw: unknown,
  isUsers = false,
  others: readonly Mistake[] = [],
): { settings: Partial<Settings>; mistakes: Mistake[] } {
  if (!isObject(raw)) {
    const message = `expected an object, found ${kindOf(raw)}`;
    const strict = isUsers ? STRICTEST : {};
    const until = isUsers ? ` ${UNTIL_ALL}` : "";
    return {
      settings: strict,
      mistakes: [mistake([], message, `Write {"toolPrefix": "server"}.${until}`)],
    };
  }
  const mistakes = [...check(settingsShape, raw, isUsers ? STRICT_KEYS : []).mistakes, ...others];
  const wrong = new Set(mistakes.filter(({ severity }) => severity === "error").map(settingOf));
  if (raw.identityProvider !== undefined && !wrong.has("identityProvider")) {
    const written = raw.identityProvider as IdentityEntry;
    const found = identityFindings(written, (text) => !isLate(text));
    if (found.length > 0) wrong.add("identityProvider");
    for (const { path, message, remedy } of found)
      mistakes.push(mistake(["identityProvider", ...path], message, remedy));
  }
  const sound = SETTING_KEYS.filter((key) => Object.hasOwn(raw, key) && !wrong.has(key));
  const settings: Partial<Settings> = Object.fromEntries(sound.map((key) => [key, raw[key]]));
  if (raw.directTools === "search") settings.directTools = false;
  if (wrong.has("approveTools")) {
    if (settings.approve === undefined) wrong.add("approve");
  } else if (raw.approveTools !== undefined)
    settings.approve ??= approveOf(raw.approveTools as boolean | string[]);
  if (!isUsers) return { settings, mistakes };
  const { strict, told } = strictly(wrong, mistakes);
  return { settings: { ...settings, ...strict }, mistakes: told };
}

/** The user's settings with those of a project's file, as far as the project may change them. */
export function narrowSettings(
  own: Settings,
  project: Partial<Settings>,
  file: string,
): { settings: Settings; mistakes: Mistake[] } {
  const settings = { ...own };
  const mistakes: Mistake[] = [];
  const narrow = <K extends SettingKey>(key: K): void => {
    const wanted = project[key];
    if (wanted === undefined) return;
    const { narrow: rule } = SETTINGS[key] as unknown as Setting<z.ZodType, Settings[K]>;
    const { value, because } = rule(own[key], wanted);
    settings[key] = value;
    if (because !== undefined) mistakes.push(warning([key], because, `Write ${key} into your own mcp.json.`));
  };
  SETTING_KEYS.forEach(narrow);
  if (settings.maxMessageBytes < own.maxMessageBytes) settings.messageLimitOf = file;
  return { settings, mistakes };
}
