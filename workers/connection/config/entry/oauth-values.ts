/**
 * What may be wrong with the values of a plan for OAuth. The same checks run when a file is read, where a value behind a
 * variable or a command is passed over, and at a sign-in, where every value is known. No finding shows a value. Pure.
 */
import { canonical } from "../../../shared/json.ts";

export interface OAuthPlan {
  /** `client_credentials` needs no user. */
  grantType: "authorization_code" | "client_credentials";
  clientId?: string;
  clientSecret?: string;
  /** Replaces what the server asks for; what a challenge asks for is added. Separated by spaces. */
  scope?: string;
  /** Exact redirect URI. `{port}` stands for `callbackPort`, or for a free port. Not on loopback: paste only. */
  redirectUri?: string;
  /** Port of the listener. */
  callbackPort?: number;
  clientName?: string;
  clientUri?: string;
  logoUri?: string;
  /** URL of a client metadata document, which is the client's id (CIMD). */
  clientMetadataUrl?: string;
  clientRegistration: "auto" | "dcr" | "cimd";
  /** Metadata of the authorization server are read here, and nothing is discovered. */
  authServerMetadataUrl?: string;
  /** The one issuer to accept. */
  issuer?: string;
  /** Any issuer is accepted. Never from a project's file. */
  skipIssuerMetadataValidation?: true;
  /** Replaces `resource`; false: none is sent. */
  resource?: string | false;
  /** Further parameters of the authorization request, for example `access_type`. */
  authorizationParams?: Record<string, string>;
  /** PEM of a private key for `private_key_jwt`. */
  privateKey?: string;
  /** File of that key. Never from a project's file. */
  privateKeyFile?: string;
  keyId?: string;
  signingAlg?: string;
  /** File of a ready assertion (RFC 7523, section 2.2). Never from a project's file. */
  assertionFile?: string;
}

/** The plan of an entry that says nothing about OAuth: a sign-in begins if the server asks for one. */
export const DEFAULT_OAUTH: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

/** Whether an entry says nothing about OAuth. */
export const isDefaultOAuth = (oauth: OAuthPlan | false): boolean =>
  canonical(oauth) === canonical(DEFAULT_OAUTH);

/** `path`: keys below `oauth`. `message` follows them: `oauth.issuer is not ...`. */
interface OAuthFinding {
  path: string[];
  message: string;
  remedy: string;
}

/** Undefined: the value can be used. */
type Check = (text: string) => Omit<OAuthFinding, "path"> | undefined;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** http or https, and nothing in it that has no meaning here. */
function webUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
    ? url
    : undefined;
}

const isLoopback = ({ hostname }: URL): boolean => LOOPBACK.test(hostname);

/** A token or a code never travels in the open (RFC 6749, section 3.1), but on this machine it may. */
const isSafe = (url: URL): boolean => url.protocol === "https:" || isLoopback(url);

const test =
  (isSound: (text: string) => boolean, message: string, remedy: string): Check =>
  (text) =>
    isSound(text) ? undefined : { message, remedy };

/** The single rights of a scope, however many blanks are between them. */
export const scopesOf = (scope: string): string[] => scope.split(/\s+/).filter(Boolean);

/** Of RFC 6749, appendix A: VSCHAR. */
const printable = test(
  (text) => /^[\x20-\x7e]*$/.test(text),
  "holds characters that OAuth does not allow",
  "Write printable ASCII.",
);

const webPage = test(
  (text) => webUrl(text) !== undefined,
  "is not an http or https URL",
  'Write for example "https://example.com".',
);

const CHECKS: { readonly [K in keyof OAuthPlan]?: Check } = {
  clientId: printable,
  clientSecret: printable,
  keyId: printable,
  clientUri: webPage,
  logoUri: webPage,
  scope: test(
    // RFC 6749, section 3.3.
    (text) => scopesOf(text).every((right) => /^[!#-[\]-~]+$/.test(right)),
    "is not a list of rights with a space between",
    'Write for example "read write".',
  ),
  redirectUri: test(
    (text) => {
      const url = webUrl(text.replaceAll("{port}", "1"));
      return url !== undefined && isSafe(url) && url.hash === "" && !text.includes("#");
    },
    "is not an https URL, or an http URL on localhost or 127.0.0.1",
    'Write for example "http://127.0.0.1:{port}/callback".',
  ),
  clientMetadataUrl: test(
    (text) => {
      const url = webUrl(text);
      // Client ID Metadata Document, section 3: https, with a path, without a fragment.
      return url?.protocol === "https:" && url.pathname !== "/" && !text.includes("#");
    },
    "is not an https URL with a path",
    'Write for example "https://example.com/client.json".',
  ),
  authServerMetadataUrl: test(
    (text) => {
      const url = webUrl(text);
      return url !== undefined && isSafe(url);
    },
    "is not an https URL",
    'Write for example "https://auth.example.com/.well-known/oauth-authorization-server".',
  ),
  issuer: test(
    (text) => {
      const url = webUrl(text);
      // RFC 8414, section 2: no query, no fragment.
      return url !== undefined && isSafe(url) && !/[?#]/.test(text);
    },
    "is not an https URL without a query",
    'Write for example "https://auth.example.com".',
  ),
  resource: test(
    // RFC 8707, section 2: an absolute URI without a fragment, which need not be a web address.
    (text) => URL.canParse(text) && !text.includes("#"),
    "is not an absolute URI without a fragment",
    'Write for example "https://example.com/mcp", or false.',
  ),
  privateKey: test(
    (text) => /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text),
    "does not hold a private key in PEM form",
    "Write it as a variable or a !command, or write oauth.privateKeyFile.",
  ),
};

/** Parameters that the protocol sets itself, and those that would replace or hide the others (RFC 9101). */
const OWN_PARAMETER =
  /^(?:client_id|redirect_uri|response_type|response_mode|state|code_challenge.*|resource|scope|request|request_uri)$/i;

const parameters = ({ authorizationParams = {} }: OAuthPlan): OAuthFinding[] =>
  Object.keys(authorizationParams)
    .filter((name) => OWN_PARAMETER.test(name))
    .map((name) => ({
      path: ["authorizationParams", name],
      message: "is a parameter that only the sign-in itself sets",
      remedy: /^(?:client_id|redirect_uri|resource|scope)$/i.test(name)
        ? "Write it as a key of oauth: clientId, redirectUri, resource or scope."
        : "Remove it.",
    }));

/** A machine signs in by itself, so it must have something to prove who it is (RFC 6749, section 4.4). */
function credentials(plan: OAuthPlan): OAuthFinding[] {
  if (plan.grantType !== "client_credentials") return [];
  const { clientId, clientSecret, privateKey, privateKeyFile, assertionFile } = plan;
  const path = ["grantType"];
  if ([clientSecret, privateKey, privateKeyFile, assertionFile].every((proof) => proof === undefined)) {
    return [
      {
        path,
        message: "client_credentials has nothing that proves who the client is",
        remedy: "Write clientSecret, privateKeyFile or assertionFile beside it.",
      },
    ];
  }
  if (clientId !== undefined || plan.clientMetadataUrl !== undefined || assertionFile !== undefined)
    return [];
  return [{ path, message: "client_credentials has no client", remedy: "Write clientId beside it." }];
}

function combinations(plan: OAuthPlan): OAuthFinding[] {
  const found = credentials(plan);
  if (plan.privateKey !== undefined && plan.privateKeyFile !== undefined)
    found.push({
      path: ["privateKeyFile"],
      message: "is a second private key beside privateKey",
      remedy: "Remove one of the two.",
    });
  const hasClient = plan.clientId !== undefined || plan.clientMetadataUrl !== undefined;
  if (plan.clientRegistration === "cimd" && !hasClient)
    found.push({
      path: ["clientRegistration"],
      message: '"cimd" has no metadata document',
      remedy: "Write its address as clientMetadataUrl.",
    });
  return found;
}

/** `isKnown`: whether a text is the value itself, not a variable or a command that gives the value. */
export function oauthFindings(plan: OAuthPlan, isKnown: (text: string) => boolean): OAuthFinding[] {
  const values = Object.entries(CHECKS).flatMap(([key, check]): OAuthFinding[] => {
    const value = plan[key as keyof OAuthPlan];
    const found = typeof value === "string" && isKnown(value) ? check(value) : undefined;
    return found ? [{ path: [key], ...found }] : [];
  });
  return [...values, ...parameters(plan), ...combinations(plan)];
}
