/**
 * The part of the question that tells of the sign-in: everything that decides where a token goes, as what and for what
 * the user signs in, and every other certificate authority. Pure.
 */
import type { ServerDefinition } from "../entry/definition.ts";
import type { OAuthPlan } from "../entry/oauth-plan.ts";
import { shown, shownUrl } from "../entry/shown-text.ts";
import { isCommand, textsIn, withOrigin, withValue } from "./value-text.ts";

/** Key of a plan -> its words. Every key is shown, because each is part of what the user agrees to. */
const WORDS: { readonly [K in keyof OAuthPlan]-?: (value: NonNullable<OAuthPlan[K]>) => string[] } = {
  authServerMetadataUrl: (url) => [withValue("authorization server", url, shownUrl)],
  issuer: (url) => [withValue("issuer", url, shownUrl)],
  skipIssuerMetadataValidation: () => ["any issuer"],
  resource: (resource) =>
    resource === false ? ["no resource parameter"] : [withValue("resource", resource, shownUrl)],
  grantType: (grant) => (grant === "client_credentials" ? ["signs in without you"] : []),
  clientId: (id) => [withValue("client id", id)],
  clientSecret: (secret) => [withOrigin("client secret", secret)],
  privateKey: (key) => [withOrigin("private key", key)],
  privateKeyFile: (file) => [withValue("private key file", file)],
  keyId: (id) => [withValue("key id", id)],
  signingAlg: (name) => [withValue("signing algorithm", name)],
  assertionFile: (file) => [withValue("assertion file", file)],
  clientMetadataUrl: (url) => [withValue("client metadata", url, shownUrl)],
  clientRegistration: (way) => (way === "auto" ? [] : [`client registration ${way}`]),
  clientName: (name) => [withValue("client name", name)],
  clientUri: (url) => [withValue("client page", url, shownUrl)],
  logoUri: (url) => [withValue("client picture", url, shownUrl)],
  redirectUri: (uri) => [withValue("redirect URI", uri, shownUrl)],
  callbackPort: (port) => [`callback port ${port}`],
  scope: (scope) => [withValue("scope", scope)],
  authorizationParams: (params) =>
    Object.entries(params).map(([name, value]) =>
      isCommand(value)
        ? withValue(`parameter ${shown(name)}`, value)
        : `parameter ${shown(name)}=${shown(value)}`,
    ),
};

function words<K extends keyof OAuthPlan>(plan: OAuthPlan, key: K): string[] {
  const value = plan[key];
  const wordsOf = WORDS[key] as (value: OAuthPlan[K]) => string[];
  return value === undefined ? [] : wordsOf(value);
}

/** Empty for a server without a sign-in, and for one whose entry says nothing about it. */
export function signInTexts({ target, auth: { scheme }, oauth }: ServerDefinition): string[] {
  if (target.kind !== "http" || oauth === false) return [];
  const keys = Object.keys(WORDS) as (keyof OAuthPlan)[];
  return [
    ...(scheme === "oauth" ? ["signs in with OAuth"] : []),
    ...keys.flatMap((key) => words(oauth, key)),
  ];
}

/** A lower bound for the characters of these texts. A secret is not among them. */
export function leastSignInChars({ oauth }: ServerDefinition): number {
  if (oauth === false) return 0;
  const { clientSecret, privateKey, grantType, clientRegistration, ...shownKeys } = oauth;
  const names = Object.keys(oauth.authorizationParams ?? {});
  return [...names, ...textsIn(shownKeys)].reduce((sum, text) => sum + text.length, 0);
}
