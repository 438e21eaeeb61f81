/**
 * Limits what a project's file may change in the user's own settings and servers, and reports a mistake if the file
 * wants more. A model can write such a file: it may narrow what the user's files allow, but it never lets anything be
 * written, shown or run that they do not allow. Pure.
 */
import { canonical } from "../../../shared/json/canonical.ts";
import { type Approve, approvals } from "../entry/approve.ts";
import { APPROVE_WORDS } from "../entry/choices.ts";
import type { Origin, ServerDefinition } from "../entry/definition.ts";
import { exposureOf, toExposure } from "../entry/exposure.ts";
import { guardFrom } from "../entry/guard.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { OAuthPlan } from "../entry/oauth-plan.ts";
import type { Override } from "../entry/override.ts";
import type { Settings } from "../entry/settings.ts";

type Why = Partial<Record<keyof Settings, string>>;

/** Settings that no file of a project may decide, each with the reason. */
const USERS_ONLY: Why = {
  captureStats: "it writes files",
  autoAuth: "it opens your browser",
  caFile: "it decides which machines your servers are taken for",
};

/** Keys of `oauth` that no file of a project may set, each with the reason. */
const USERS_ONLY_OAUTH = {
  skipIssuerMetadataValidation: "it lets another authorization server get your sign-in",
  privateKeyFile: "it uses a file of yours",
  assertionFile: "it sends a file of yours",
} as const satisfies Partial<Record<keyof OAuthPlan, string>>;

/**
 * Also closed to .mcp.json, which needs no trust: these rename tools, and extensions that allow or refuse tools go by
 * names.
 */
const TRUSTED_ONLY: Why = {
  toolPrefix: "it changes the names of your tools",
  proxyTool: "it changes the names under which your tools are called",
};

const STRICTNESS: readonly Settings["hotReload"][] = ["on", "ask", "off"];

const ignored = (path: string[], message: string, remedy: string): Mistake => ({
  severity: "warning",
  path,
  message,
  remedy,
});

const loosened = (key: string): Mistake =>
  ignored([key], "a project's file may only make this stricter", `Write ${key} into your own mcp.json.`);

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

/** The user's settings with those of a project's file, as far as the project may change them. */
export function narrowSettings(
  own: Settings,
  project: Partial<Settings>,
  origin: Origin,
): { settings: Settings; mistakes: Mistake[] } {
  const settings = { ...own, ...project };
  const mistakes: Mistake[] = [];
  for (const [key, why] of Object.entries(
    origin === "project-pi" ? USERS_ONLY : { ...USERS_ONLY, ...TRUSTED_ONLY },
  )) {
    const name = key as keyof Settings;
    if (canonical(settings[name]) === canonical(own[name])) continue;
    Object.assign(settings, { [name]: own[name] });
    const remedy = `Write ${key} into your own mcp.json.`;
    mistakes.push(ignored([key], `a project's file may not decide this: ${why}`, remedy));
  }
  if (STRICTNESS.indexOf(settings.hotReload) < STRICTNESS.indexOf(own.hotReload)) {
    settings.hotReload = own.hotReload;
    mistakes.push(loosened("hotReload"));
  }
  if (settings.maxMessageBytes > own.maxMessageBytes) {
    settings.maxMessageBytes = own.maxMessageBytes;
    mistakes.push(loosened("maxMessageBytes"));
  }
  if (project.outputGuard !== undefined) {
    const { guard, isLooser } = tighterGuard(own.outputGuard, project.outputGuard);
    settings.outputGuard = guard;
    if (isLooser) mistakes.push(loosened("outputGuard"));
  }
  const [wanted] = project.approve === undefined ? [] : approvals(project.approve);
  if (wanted !== undefined) {
    const before = approvals(own.approve);
    settings.approve = [...before, wanted];
    if (asksLess(wanted, before[0])) mistakes.push(loosened("approve"));
  }
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
export function wideningMistakes(override: Override, { userRules, approve }: ServerDefinition): Mistake[] {
  if (!userRules) return [];
  const mistakes: Mistake[] = [];
  const add = (path: string[], what: string): void => {
    mistakes.push(ignored(path, what, "Change your own file if you want it."));
  };
  if (override.approve !== undefined && asksLess(override.approve, approve))
    add(["approve"], "a project's file may only make this stricter");
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
