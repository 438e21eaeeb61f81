/**
 * What a server is sent so that it knows the user: the token and the plan for OAuth that an entry says, checked as far as
 * their values are known. Imported entries have our own keys already (hosts/dialects.ts). Pure.
 */
import { isLate } from "./interpolate.ts";
import { type Mistake, mistake, warning } from "./mistakes.ts";
import { isSafeUrl, type OAuthEntry, type OAuthPlan, oauthFindings, planOf } from "./oauth-keys.ts";
import { type Entry, isCommandType } from "./server-keys.ts";

export interface AuthSettings {
  /**
   * `auto`: a token if one is given, else OAuth if there is no Authorization header and the server asks for it.
   * `oauth`: OAuth, even if there is one. `provider`: the token of a provider of Pi, and nothing else. `none`: nothing.
   */
  scheme: "auto" | "bearer" | "oauth" | "provider" | "none";
  /** As written in the file; resolved at connect. */
  token: string | undefined;
  tokenEnv: string | undefined;
  /** Name of the provider in Pi, if the scheme is `provider`. */
  provider?: string;
}

/** Warnings for values that are accepted, because other programs know them, and that have no effect here. */
function ineffective({ auth, bearerToken, bearerTokenEnv, command, headers = {} }: Entry): Mistake[] {
  const found: Mistake[] = [];
  if (command?.startsWith("!")) {
    const instead = 'Write the program itself, or "command": "sh" with "args": ["-c", "..."].';
    found.push(
      warning(["command"], "a !command is not run here: this is taken for a program's name", instead),
    );
  }
  const tokens = Object.entries({ bearerToken, bearerTokenEnv }).filter(([, value]) => value !== undefined);
  if (auth === "oauth") {
    for (const [key] of tokens)
      found.push(warning([key], 'is not sent with "auth": "oauth"', 'Write "auth": "bearer".'));
  }
  if (typeof auth === "object" && auth.provider !== undefined) {
    const others = [
      ...tokens.map(([key]) => [key]),
      ...Object.keys(headers)
        .filter((name) => name.toLowerCase() === "authorization")
        .map((name) => ["headers", name]),
      ...["CLIENT_ID", "CLIENT_SECRET", "scopes"].filter((key) => key in auth).map((key) => ["auth", key]),
    ];
    for (const path of others)
      found.push(warning(path, "has no effect beside auth.provider", "Remove one of the two."));
  }
  return found;
}

/**
 * Why the token of a provider may not be sent: its place is the user's own file, and it travels by TLS or on this machine
 * alone, as in Pi's own MCP client.
 */
function refusedProvider({ url, command }: Entry, project: boolean): Mistake[] {
  if (project) {
    const why =
      "a project's file may not send the token of your provider, to which you signed in with /login";
    return [mistake(["auth"], why, "Define the server in your own mcp.json if you want it.")];
  }
  if (url === undefined)
    return command === undefined
      ? []
      : [warning(["auth"], "has no effect: a local server gets no token", "Remove it.")];
  if (isLate(url) || isSafeUrl(url)) return [];
  return [mistake(["url"], UNSAFE_FOR_TOKEN, SAFE_FOR_TOKEN)];
}

export const UNSAFE_FOR_TOKEN = "is not https, and the token of auth.provider would travel in the open";
export const SAFE_FOR_TOKEN = "Write an https URL, or http on localhost or 127.0.0.1.";

/** What is sent to the server of an entry, and the mistakes in it. */
export function authOf(entry: Entry, project: boolean): { auth: AuthSettings; mistakes: Mistake[] } {
  const { auth, bearerToken: token, bearerTokenEnv: tokenEnv } = entry;
  const settings = (scheme: AuthSettings["scheme"]): AuthSettings => ({ scheme, token, tokenEnv });
  const mistakes = ineffective(entry);
  if (auth === false || auth === "none") return { auth: settings("none"), mistakes };
  if (typeof auth === "object") {
    const { provider } = auth;
    if (provider !== undefined) {
      mistakes.push(...refusedProvider(entry, project));
      return { auth: { ...settings("provider"), provider }, mistakes };
    }
    if (auth.CLIENT_ID === undefined)
      mistakes.push(mistake(["auth"], "names no client", 'Write "oauth": {"clientId": "..."} in its place.'));
    return { auth: settings("auto"), mistakes };
  }
  if (auth === "bearer" && token === undefined && tokenEnv === undefined) {
    const instead = 'Write "bearerTokenEnv": "NAME_OF_VARIABLE" beside it.';
    mistakes.push(mistake(["auth"], "there is no bearer token", instead));
  }
  return { auth: settings(auth ?? "auto"), mistakes };
}

/** The first text that says something. A list of rights is one text. */
const firstText = (...texts: (string | string[] | undefined)[]): string | undefined =>
  texts.map((text) => (Array.isArray(text) ? text.join(" ") : text)).find((text) => text);

/** The keys of every spelling as ours; `auth` may be a client as Cursor writes it. */
function inOneSpelling(written: OAuthEntry, auth: Entry["auth"]): OAuthEntry {
  const client = typeof auth === "object" ? auth : {};
  return {
    ...written,
    clientId: firstText(written.clientId, client.CLIENT_ID),
    clientSecret: firstText(written.clientSecret, client.CLIENT_SECRET),
    scope: firstText(written.scope, written.scopes, client.scopes),
    redirectUri: firstText(written.redirectUri, written.callbackUrl),
  };
}

/** Keys of which only one counts. */
const doubled = (written: OAuthEntry): Mistake[] =>
  (
    [
      ["scopes", "scope"],
      ["callbackUrl", "redirectUri"],
    ] as const
  )
    .filter(([key, other]) => written[key] !== undefined && written[other] !== undefined)
    .map(([key, other]) =>
      warning(["oauth", key], `has no effect beside ${other}`, "Remove one of the two."),
    );

/** Why `oauth` has no effect in this entry; undefined if it has. */
function idle({ command, url, type }: Entry, scheme: AuthSettings["scheme"]): string | undefined {
  if (isCommandType(type) || (command !== undefined && url === undefined))
    return "has no effect: a local server needs no sign-in";
  if (scheme === "provider") return "has no effect beside auth.provider";
  return isOff(scheme) ? `has no effect with "auth": "${scheme}"` : undefined;
}

/** Whether another word of the entry leaves no place for OAuth. */
const isOff = (scheme: AuthSettings["scheme"]): boolean => scheme !== "auto" && scheme !== "oauth";

/**
 * `oauth` of an entry, and the mistakes in it. False: no sign-in, whatever the server asks for. `project`: a project's
 * file holds the entry; merge/layers.ts takes out what such a file may not set.
 */
export function oauthOf(
  entry: Entry,
  { scheme, project }: { scheme: AuthSettings["scheme"]; project: boolean },
): { oauth: OAuthPlan | false; mistakes: Mistake[] } {
  if (entry.oauth === false) {
    const contradiction = mistake(["oauth"], 'is false beside "auth": "oauth"', "Remove one of the two.");
    return { oauth: false, mistakes: scheme === "oauth" ? [contradiction] : [] };
  }
  const written = entry.oauth ?? {};
  const plan = planOf(inOneSpelling(written, entry.auth));
  const mistakes = oauthFindings(plan, (text) => !isLate(text)).map(({ path, message, remedy }) =>
    mistake(["oauth", ...path], message, remedy),
  );
  mistakes.push(...doubled(written));
  const why = entry.oauth === undefined ? undefined : idle(entry, scheme);
  if (why !== undefined) mistakes.push(warning(["oauth"], why, "Remove it."));
  if (plan.skipIssuerMetadataValidation && !isOff(scheme) && !project) {
    const remedy = 'Write the name that you expect as "issuer" in its place.';
    const path = ["oauth", "skipIssuerMetadataValidation"];
    mistakes.push(warning(path, "accepts any authorization server that the server names", remedy));
  }
  return { oauth: isOff(scheme) ? false : plan, mistakes };
}
