/**
 * The plan for OAuth of one entry: the keys of every dialect as one shape, checked as far as they are known. Imported
 * entries have our own keys already (hosts/oauth.ts). Pure.
 */
import type { AuthSettings } from "./auth.ts";
import { isLate } from "./interpolate.ts";
import type { Mistake } from "./mistakes.ts";
import type { OAuthEntry } from "./oauth-shape.ts";
import { DEFAULT_OAUTH, type OAuthPlan, oauthFindings } from "./oauth-values.ts";
import type { Entry } from "./server-shape.ts";

/** Keys that mean in a plan what they mean in a file. An empty text counts as absent. */
const COPIED = [
  ...["clientId", "clientSecret", "clientName", "clientUri", "logoUri", "clientMetadataUrl"],
  ...["callbackPort", "authServerMetadataUrl", "issuer", "resource", "authorizationParams"],
  ...["privateKey", "privateKeyFile", "keyId", "signingAlg", "assertionFile"],
] as const satisfies readonly (keyof OAuthPlan & keyof OAuthEntry)[];

const warning = (path: string[], message: string, remedy: string): Mistake => ({
  severity: "warning",
  path,
  message,
  remedy,
});

/** The first text that says something. */
const firstText = (...texts: (string | undefined)[]): string | undefined =>
  texts.find((text) => text !== undefined && text !== "");

const scopeText = (scopes: string | string[] | undefined): string | undefined =>
  Array.isArray(scopes) ? scopes.join(" ") : scopes;

const given = <K extends string>(key: K, value: string | undefined): { [P in K]?: string } =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };

/** The plan of what is written in `oauth` and, as Cursor writes it, in `auth`. */
function planOf(written: OAuthEntry, { auth }: Entry): OAuthPlan {
  const client = typeof auth === "object" ? auth : {};
  const copied = COPIED.flatMap((key) => {
    const value = written[key];
    return value === undefined || value === "" ? [] : [[key, value]];
  });
  return {
    ...(Object.fromEntries(copied) as Partial<OAuthPlan>),
    ...given("clientId", firstText(written.clientId, client.CLIENT_ID)),
    ...given("clientSecret", firstText(written.clientSecret, client.CLIENT_SECRET)),
    ...given("scope", firstText(written.scope, scopeText(written.scopes), scopeText(client.scopes))),
    ...given("redirectUri", firstText(written.redirectUri, written.callbackUrl)),
    ...(written.skipIssuerMetadataValidation ? { skipIssuerMetadataValidation: true } : {}),
    grantType: written.grantType ?? DEFAULT_OAUTH.grantType,
    clientRegistration: written.clientRegistration ?? DEFAULT_OAUTH.clientRegistration,
  };
}

/** Keys of which only one counts. */
function doubled(written: OAuthEntry): Mistake[] {
  const pairs = [
    ["scopes", "scope"],
    ["callbackUrl", "redirectUri"],
  ] as const;
  return pairs
    .filter(([key, other]) => written[key] !== undefined && written[other] !== undefined)
    .map(([key, other]) =>
      warning(["oauth", key], `has no effect beside ${other}`, "Remove one of the two."),
    );
}

/** Why `oauth` has no effect in this entry; undefined if it has. */
function idle({ command, url, type }: Entry, scheme: AuthSettings["scheme"]): string | undefined {
  if (type === "stdio" || (command !== undefined && url === undefined))
    return "has no effect: a local server is not signed in to";
  return scheme === "none" || scheme === "bearer" ? `has no effect with "auth": "${scheme}"` : undefined;
}

/**
 * `oauth` of an entry, and the mistakes in it. False: no sign-in, whatever the server asks for. `project`: a project's
 * file holds the entry; merge/narrow.ts takes out what such a file may not set.
 */
export function oauthOf(
  entry: Entry,
  { scheme, project }: { scheme: AuthSettings["scheme"]; project: boolean },
): { oauth: OAuthPlan | false; mistakes: Mistake[] } {
  const isOff = scheme === "none" || scheme === "bearer";
  if (entry.oauth === false) {
    const contradiction: Mistake = {
      severity: "error",
      path: ["oauth"],
      message: 'is false beside "auth": "oauth"',
      remedy: "Remove one of the two.",
    };
    return { oauth: false, mistakes: scheme === "oauth" ? [contradiction] : [] };
  }
  const written = entry.oauth ?? {};
  const plan = planOf(written, entry);
  const mistakes: Mistake[] = oauthFindings(plan, (text) => !isLate(text)).map((found) => ({
    ...found,
    severity: "error",
    path: ["oauth", ...found.path],
  }));
  mistakes.push(...doubled(written));
  const why = entry.oauth === undefined ? undefined : idle(entry, scheme);
  if (why !== undefined) mistakes.push(warning(["oauth"], why, "Remove it."));
  if (plan.skipIssuerMetadataValidation && !isOff && !project) {
    const remedy = 'Write the name that you expect as "issuer" in its place.';
    const path = ["oauth", "skipIssuerMetadataValidation"];
    mistakes.push(warning(path, "accepts any authorization server that the server names", remedy));
  }
  return { oauth: isOff ? false : plan, mistakes };
}
