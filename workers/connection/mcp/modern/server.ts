/**
 * What a server says of itself when it is asked (MCP 2026-07-28, server/discover), how a later session remembers it, how
 * long a list of its tools counts (`ttlMs`), and what every request carries in turn (basic, `_meta`). Pure.
 */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { declaredSkills, SKILLS_EXTENSION } from "../../../shared/skills.ts";
import { MODERN_VERSION } from "../wire/wire.ts";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "./limits.ts";
import { quoted } from "./rounds.ts";

/** Times are in milliseconds since the epoch. */
export interface Freshness {
  until: number;
  /** When the tools were listed over this connection; undefined: not yet. */
  listedAt: number | undefined;
  /** Whether the list is the same for whoever asks, whatever the credentials (`cacheScope`). */
  isPublic: boolean;
}

interface Page {
  isFirst: boolean;
  ttlMs: unknown;
  cacheScope: unknown;
  sentAt: number;
}

/** The freshness after one page of the list. Each page counts from its request, and the first one begins a new list. */
export function afterPage(before: Freshness, { isFirst, ttlMs, cacheScope, sentAt }: Page): Freshness {
  const until = sentAt + (typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, FRESH_MOST_MS) : 0);
  const isPublic = cacheScope === "public";
  return isFirst
    ? { until, listedAt: sentAt, isPublic }
    : { until: Math.min(before.until, until), listedAt: sentAt, isPublic: before.isPublic && isPublic };
}

/**
 * Whether the list is to be asked for again. A list without a time is asked for if it is remembered, or if it may change
 * unheard: the server tells of changes, and no stream brings them.
 */
export function isStale({ until, listedAt }: Freshness, now: number, isUnheard: boolean): boolean {
  if (listedAt === undefined) return now >= until;
  return (isUnheard || until > listedAt) && now >= Math.max(until, listedAt + FRESH_LEAST_MS);
}

const PREFIX = "io.modelcontextprotocol/";
export const SUBSCRIPTION = `${PREFIX}subscriptionId`;
/** The extension of long-running calls (ext-tasks). */
const TASKS = `${PREFIX}tasks`;

interface Sender {
  clientInfo: { name: string; version: string };
  /** What the client can do besides the tasks of its calls. */
  capabilities: { extensions?: object };
  /** Absent: the server sends no log messages. */
  logLevel?: "debug" | "info" | undefined;
}

export const metaOf = ({ clientInfo, capabilities, logLevel }: Sender): Record<string, unknown> => ({
  [`${PREFIX}protocolVersion`]: MODERN_VERSION,
  [`${PREFIX}clientInfo`]: clientInfo,
  [`${PREFIX}clientCapabilities`]: {
    ...capabilities,
    extensions: { ...capabilities.extensions, [TASKS]: {} },
  },
  ...(logLevel === undefined ? {} : { [`${PREFIX}logLevel`]: logLevel }),
});

/** The words of the extension for skills, which is no capability of the protocol itself. */
const SKILLS = "skills";
const SKILLS_READ = "skills.directoryRead";

const OFFERS = ["tools", "resources", "prompts", "completions", "logging"];
const CHANGED = ".listChanged";

/** What a server can do, as words that are kept: `tools`, `tools.listChanged`. `capabilities`: of `server/discover` or `initialize`. */
export const offersOf = (capabilities: Record<string, unknown>): string[] => [
  ...OFFERS.flatMap((key) => {
    const can = capabilities[key];
    if (!isObject(can)) return [];
    return can.listChanged === true ? [key, `${key}${CHANGED}`] : [key];
  }),
  ...skillWords(capabilities),
];

const skillWords = (capabilities: Record<string, unknown>): string[] => {
  const declared = declaredSkills(capabilities);
  if (!declared) return [];
  return declared.directories ? [SKILLS, SKILLS_READ] : [SKILLS];
};

/** The capabilities of these words. */
export const capabilitiesFrom = (offers: readonly string[]): Record<string, unknown> => ({
  ...Object.fromEntries(
    OFFERS.filter((key) => offers.includes(key)).map((key) => [
      key,
      offers.includes(`${key}${CHANGED}`) ? { listChanged: true } : {},
    ]),
  ),
  ...(offers.includes(SKILLS)
    ? { extensions: { [SKILLS_EXTENSION]: { directoryRead: offers.includes(SKILLS_READ) } } }
    : {}),
});

/** A server that does not say what it can do is asked for everything. */
export const EVERY_LIST = capabilitiesFrom(["tools", "resources", "prompts"]);

const VERSIONS_SHOWN = 5;

export interface Discovered {
  capabilities: Record<string, unknown>;
  instructions: string | undefined;
}

/** The server speaks only revisions that this client does not know. */
export const tooNew = (name: string, versions: readonly unknown[]): ThreadsError =>
  new ThreadsError(
    "connect_failed",
    `${name} speaks MCP ${versions.slice(0, VERSIONS_SHOWN).map(quoted).join(", ")}, and this client up to ${MODERN_VERSION}.`,
    { remedy: "A newer version of this extension may speak it.", data: { server: name } },
  );

/** `result`: of a server of this era, in any shape. Throws `connect_failed` if the server names only other revisions. */
export function readDiscovered(name: string, result: Record<string, unknown>): Discovered {
  const { supportedVersions: versions, capabilities, instructions } = result;
  if (Array.isArray(versions) && !versions.includes(MODERN_VERSION)) throw tooNew(name, versions);
  return {
    capabilities: isObject(capabilities) ? capabilities : EVERY_LIST,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
