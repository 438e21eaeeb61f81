/**
 * Limits what a project's file may change in the user's own settings and servers, and reports a mistake if the file
 * wants more. A model can write such a file: it may narrow what the user's files allow, but it never lets anything be
 * written, shown or run that they do not allow. Pure.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { canonical } from "../../../shared/json/canonical.ts";
import { type Approve, approvals } from "../entry/approve.ts";
import { APPROVE_WORDS } from "../entry/choices.ts";
import type { DefinitionSource, Origin, ServerDefinition } from "../entry/definition.ts";
import { exposureOf, toExposure } from "../entry/exposure.ts";
import { DEFAULT_GUARD, guardFrom } from "../entry/guard.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { OAuthPlan } from "../entry/oauth-plan.ts";
import { idleMinutes, type Override } from "../entry/override.ts";
import type { SettingKey, Settings } from "../entry/settings.ts";

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
export function tighterGuard(own: Guard, wanted: Guard): { guard: Guard; isLooser: boolean } {
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
export function narrowSettings(
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
export function narrowServer(
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
export function wideningMistakes(override: Override, definition: ServerDefinition): Mistake[] {
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
