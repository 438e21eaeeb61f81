/**
 * Owns what is taken from the metadata of an authorization server (RFC 8414, section 2): the fields that a sign-in
 * needs, bounded, with endpoints that a token may be sent to. Pure.
 */
import type { AuthorizationServer } from "oauth4webapi";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { SignInProblem } from "../model/model.ts";
import { addressProblem, hostOf, namesPrivateHost, shownAddress } from "../requests/requests.ts";
import type { Fields } from "./document.ts";
import { readAddress, readFlag, readWords } from "./fields.ts";

export interface MetadataContext {
  /** Address of the metadata. Requests have allowed it. */
  from: URL;
  /** The MCP endpoint. */
  server: URL;
  plan: Pick<OAuthPlan, "grantType">;
  onNote: (note: string) => void;
}

const LISTS = [
  "scopes_supported",
  "grant_types_supported",
  "code_challenge_methods_supported",
  "token_endpoint_auth_methods_supported",
  "token_endpoint_auth_signing_alg_values_supported",
  "revocation_endpoint_auth_methods_supported",
] as const;

const FLAGS = [
  "authorization_response_iss_parameter_supported",
  "client_id_metadata_document_supported",
] as const;

/** Why fields are not the metadata of an authorization server. An issuer is an address (RFC 8414, section 2). */
export function lacksIssuer(fields: Fields): string | undefined {
  const issuer = readAddress(fields.issuer);
  return issuer !== undefined && URL.canParse(issuer) && /^https?:\/\//i.test(issuer)
    ? undefined
    : "it names no issuer";
}

/** The browser opens this address, so no connection checks it. The host of the metadata has been checked already. */
const sendsInside = (url: URL, { from, server }: MetadataContext): boolean =>
  namesPrivateHost(url) && hostOf(url) !== hostOf(from) && !namesPrivateHost(server);

/** What is wrong with an endpoint: it must be an absolute address without a fragment (RFC 6749, section 3.1). */
function endpointProblem(key: string, value: unknown, context: MetadataContext): SignInProblem | undefined {
  const text = readAddress(value);
  // `https:as.com` is an address for a browser, but for no other program that reads the stored sign-in.
  if (text === undefined || !URL.canParse(text) || /^https?:(?!\/\/)/i.test(text)) {
    return new SignInProblem("bad-answer", {
      url: shownAddress(context.from),
      what: `its ${key} is not an address`,
    });
  }
  const url = new URL(text);
  const problem = addressProblem(url);
  if (problem) return problem;
  if (url.hash !== "") {
    return new SignInProblem("bad-answer", {
      url: shownAddress(context.from),
      what: `its ${key} has a fragment`,
    });
  }
  return key === "authorization_endpoint" && sendsInside(url, context)
    ? new SignInProblem("private-address", { url: shownAddress(url) })
    : undefined;
}

/** Throws if the endpoint is missing or may not be used. */
function requiredEndpoint(fields: Fields, key: string, context: MetadataContext): Record<string, string> {
  const value = fields[key] ?? undefined;
  if (value === undefined) {
    throw new SignInProblem("no-endpoint", { what: key, url: shownAddress(context.from) });
  }
  const problem = endpointProblem(key, value, context);
  if (problem) throw problem;
  return { [key]: String(value) };
}

/** Without a usable registration or revocation a sign-in still works, by a configured client and without revocation. */
function optionalEndpoint(fields: Fields, key: string, context: MetadataContext): Record<string, string> {
  const value = fields[key] ?? undefined;
  if (value === undefined) return {};
  const problem = endpointProblem(key, value, context);
  if (problem === undefined) return { [key]: String(value) };
  context.onNote(`has a ${key} that is not used (${problem.kind})`);
  return {};
}

/**
 * PKCE is always sent with S256. A server that lists other methods only would not check it; one that lists none may
 * (Entra and Cognito do).
 */
function checkPkce(methods: readonly string[] | undefined, { onNote }: MetadataContext): void {
  if (methods === undefined) {
    onNote("does not say whether its authorization server supports PKCE: it is used with S256");
    return;
  }
  if (!methods.includes("S256")) throw new SignInProblem("pkce-refused");
}

/**
 * `fields` have an issuer (`lacksIssuer`). Throws `SignInProblem`: no-endpoint, not-https, private-address, bad-answer,
 * pkce-refused.
 */
export function readServer(fields: Fields, context: MetadataContext): AuthorizationServer {
  const lists = LISTS.flatMap((key) => {
    const words = readWords(fields[key]);
    return words === undefined ? [] : [[key, words] as const];
  });
  const flags = FLAGS.filter((key) => readFlag(fields[key])).map((key) => [key, true] as const);
  const found: Partial<AuthorizationServer> = Object.fromEntries([...lists, ...flags]);
  const withBrowser = context.plan.grantType === "authorization_code";
  if (withBrowser) checkPkce(found.code_challenge_methods_supported, context);
  return {
    ...found,
    issuer: readAddress(fields.issuer) ?? "",
    ...requiredEndpoint(fields, "token_endpoint", context),
    ...(withBrowser ? requiredEndpoint(fields, "authorization_endpoint", context) : {}),
    ...optionalEndpoint(fields, "registration_endpoint", context),
    ...optionalEndpoint(fields, "revocation_endpoint", context),
  };
}
