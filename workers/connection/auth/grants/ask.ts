/**
 * One question to an endpoint of an authorization server. Owns: where a secret may be sent, how oauth4webapi sends the
 * question through our requests, and what an error in the answer means. The errors of oauth4webapi are never passed on, not
 * even as a cause, because they hold the answer with its tokens.
 */
import {
  type AuthorizationServer,
  allowInsecureRequests,
  customFetch,
  OperationProcessingError,
  PARSE_ERROR,
  RESPONSE_IS_NOT_JSON,
  UnsupportedOperationError,
} from "oauth4webapi";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { createRedactor, type Redactor } from "../../secrets/redact.ts";
import type { Signer } from "../../web/client.ts";
import {
  type ClientRecord,
  type Discovered,
  type DpopKey,
  type IdentityWish,
  type ProblemFacts,
  refusesProof,
  SignInProblem,
  type SignInProblemKind,
} from "../model/model.ts";
import { addressProblem, shownAddress } from "../requests/addresses.ts";
import { readObject } from "../requests/mend.ts";
import { type AuthRequests, isTrouble } from "../requests/requests.ts";

/** What every message needs. `plan` is resolved: no variables. */
export interface GrantContext {
  plan: OAuthPlan;
  requests: AuthRequests;
  onNote: (note: string) => void;
  /** The key to which the tokens of a request are bound. Absent: they are bearer tokens. */
  dpopKey?: DpopKey | undefined;
  /** Of the company's identity provider: what counts of its answers is who the user is, and its address is its issuer. */
  isIdentity?: true;
  /** An assertion of the identity provider for one authorization server. Throws `SignInProblem`. */
  identityFor?: (wish: IdentityWish) => Promise<string>;
  /** Takes an assertion that no text may show from now on. */
  onSecret?: (secret: string) => void;
}

/** An authorization that waits for the browser. `state` and `verifier` live in memory only. */
export interface PendingAuthorization {
  url: string;
  state: string;
  verifier: string;
  redirectUri: string;
  scope: string | undefined;
  client: ClientRecord;
  discovered: Discovered;
  /** The key to which its tokens will be bound. */
  dpopKey?: DpopKey | undefined;
}

/** Who gets the tokens of a sign-in, and for what. */
export type Receiver = Pick<PendingAuthorization, "discovered" | "client" | "scope" | "dpopKey">;

/** What the server says in place of what it was asked for. `error` and `what` are bounded and hold no secret. */
interface Refusal {
  status: number;
  error?: string;
  what?: string;
}

export interface SendOptions {
  [customFetch]: (url: string, init: SentRequest) => Promise<Response>;
  [allowInsecureRequests]: boolean;
}

interface SentRequest {
  method: string;
  headers: Record<string, string>;
  body: URLSearchParams | string;
}

interface Question<T> {
  /** Checked: https, or http on loopback. */
  endpoint: URL;
  requests: AuthRequests;
  /** Secrets that are not in the form of the request. */
  secrets: readonly string[];
  send(options: SendOptions): Promise<Response>;
  signer?: Signer | undefined;
  /** Reads the text of an answer with a status of 200 to 299. */
  read(text: string): Promise<T> | T;
  /** Undefined: the answer is a bad one. */
  refused(refusal: Refusal): SignInProblem | undefined;
}

/** Fields of a request whose values no text may show. */
const SECRET_FIELDS = [
  "code",
  "code_verifier",
  "device_code",
  "refresh_token",
  "client_secret",
  "client_assertion",
  "assertion",
  "subject_token",
  "token",
];
const ERROR_CHARS = 100;
const WORDS_CHARS = 1_000;

/** RFC 6749, section 5.2. `message` is what servers write that do not know the RFC. */
function refusalOf(status: number, text: string, redact: Redactor): Refusal {
  // An answer without JSON is a refusal by its status alone.
  const { error, error_description: description, message } = readObject(text) ?? {};
  const words = typeof description === "string" ? description : message;
  return {
    status,
    ...(typeof error === "string" && error !== "" && { error: redact(error).slice(0, ERROR_CHARS) }),
    ...(typeof words === "string" && words !== "" && { what: redact(words).slice(0, WORDS_CHARS) }),
  };
}

/** What oauth4webapi finds wrong, without its words: they can quote the answer. */
function whatIsWrong(error: unknown): string | undefined {
  if (error instanceof UnsupportedOperationError) return "its token_type is not Bearer";
  if (!(error instanceof OperationProcessingError)) return undefined;
  if (error.code === PARSE_ERROR || error.code === RESPONSE_IS_NOT_JSON) return "it is not JSON";
  const [, field] = /body "(\w+)" property/.exec(error.message) ?? [];
  return field === undefined ? "it is not what the protocol asks for" : `its ${field} is missing or wrong`;
}

async function textOf(response: Response, url: string): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    if (error instanceof SignInProblem) throw error;
    throw new SignInProblem("unreachable", {
      url,
      what: "the connection was lost in the middle of the answer",
    });
  }
}

export async function ask<T>(question: Question<T>): Promise<T> {
  const { endpoint, requests, refused } = question;
  const url = shownAddress(endpoint);
  const secrets = [...question.secrets];
  const refuse = (refusal: Refusal): SignInProblem => {
    const { status } = refusal;
    if (isTrouble(status)) return new SignInProblem("unavailable", { url, status });
    const what = refusal.error ?? `status ${status} without an OAuth error`;
    return refused(refusal) ?? new SignInProblem("bad-answer", { url, status, what });
  };
  let response: Response;
  try {
    response = await question.send({
      [customFetch]: (address, { method, headers, body }) => {
        if (typeof body !== "string") secrets.push(...SECRET_FIELDS.flatMap((field) => body.getAll(field)));
        return requests.fetch(address, { method, headers, body, signer: question.signer });
      },
      [allowInsecureRequests]: endpoint.protocol === "http:",
    });
  } catch (error) {
    // A page in place of an error: its status can still say what is refused.
    const status =
      error instanceof SignInProblem && error.kind === "bad-answer" ? error.facts.status : undefined;
    if (status === undefined || status < 400) throw error;
    throw isTrouble(status) ? refuse({ status }) : (refused({ status }) ?? error);
  }
  const text = await textOf(response, url);
  if (!response.ok) {
    const redact = createRedactor({ values: [], named: secrets });
    throw refuse(refusalOf(response.status, text, redact));
  }
  try {
    return await question.read(text);
  } catch (error) {
    const what = whatIsWrong(error);
    throw what === undefined ? error : new SignInProblem("bad-answer", { url, what });
  }
}

type EndpointKey =
  | "authorization_endpoint"
  | "device_authorization_endpoint"
  | "token_endpoint"
  | "registration_endpoint"
  | "revocation_endpoint";

/** Throws `SignInProblem`: no-endpoint; not-https for an address that is neither https nor http on loopback. */
export function endpointOf(metadata: AuthorizationServer, key: EndpointKey): URL {
  const address = metadata[key];
  if (address === undefined || !URL.canParse(address)) {
    throw new SignInProblem("no-endpoint", { what: key, url: metadata.issuer });
  }
  const url = new URL(address);
  const problem = addressProblem(url);
  if (problem) throw problem;
  return url;
}

/** Entra's number for "the resource and the scope do not fit": it takes no `resource` beside its own scopes. */
const ENTRA_RESOURCE = "AADSTS9010010";

type Table = Readonly<Record<string, SignInProblemKind>>;

/** RFC 6749, sections 4.1.2.1 and 5.2; RFC 8707, section 2. */
const OF_ALL: Table = {
  invalid_client: "client-unknown",
  unauthorized_client: "client-unknown",
  invalid_scope: "scope-refused",
  invalid_target: "resource-refused",
};

const OF = {
  authorization: { ...OF_ALL, access_denied: "denied" },
  code: { ...OF_ALL, invalid_grant: "code-refused" },
  // RFC 8628, section 3.5. Whoever asks for the tokens knows what "authorization_pending" and "slow_down" mean.
  device: {
    ...OF_ALL,
    access_denied: "denied",
    expired_token: "timed-out",
    invalid_grant: "code-refused",
  },
  refresh: { ...OF_ALL, invalid_grant: "refresh-refused" },
  client: OF_ALL,
  // RFC 7523, section 3.1.
  assertion: { ...OF_ALL, invalid_grant: "assertion-refused" },
  // The exchange of an identity (RFC 8693, section 2.2.2; RFC 9470, section 3).
  identity: {
    ...OF_ALL,
    invalid_grant: "identity-refused",
    insufficient_user_authentication: "identity-refused",
    login_required: "identity-refused",
    interaction_required: "identity-refused",
    access_denied: "company-denied",
    invalid_target: "company-denied",
    unauthorized_client: "company-denied",
    unsupported_grant_type: "company-denied",
  },
} satisfies Record<string, Table>;

/** What a request to the token endpoint brings for its tokens. */
export type Grant = Exclude<keyof typeof OF, "authorization">;

const TEMPORARY = new Set(["temporarily_unavailable", "server_error"]);

function problemOf(table: Table, { error, what }: Refusal, scope: string | undefined): SignInProblem {
  const facts: ProblemFacts = { ...(error && { error }), ...(what && { what }), ...(scope && { scope }) };
  if (what?.includes(ENTRA_RESOURCE)) return new SignInProblem("resource-refused", facts);
  return new SignInProblem(table[error ?? ""] ?? "refused", facts);
}

export const authorizationProblem = (refusal: Refusal, scope: string | undefined): SignInProblem =>
  problemOf(OF.authorization, refusal, scope);

/** The problem behind an error of the token endpoint; undefined: the answer names no error. */
export function tokenProblem(
  grant: Grant,
  refusal: Refusal,
  { url, scope }: { url: string; scope: string | undefined },
): SignInProblem | undefined {
  const { status, error } = refusal;
  if (error === undefined) return undefined;
  if (TEMPORARY.has(error)) return new SignInProblem("unavailable", { url, status });
  if (refusesProof(error)) return new SignInProblem("proof-refused", { url, error });
  return problemOf(OF[grant], refusal, scope);
}

const isRedirect = ({ error, what = "" }: Refusal): boolean =>
  error === "invalid_redirect_uri" || (error !== undefined && /redirect[ _]?uri/i.test(what));

/**
 * The problem behind a refused registration (RFC 7591, section 3.2.2). Without a body the status decides: 401 and 403
 * take known clients only, and 404, 405 and 410 say that there is no registration.
 */
export function registrationProblem(
  refusal: Refusal,
  { issuer, redirectUri }: { issuer: string; redirectUri: string },
): SignInProblem | undefined {
  const { status, error, what } = refusal;
  if (isRedirect(refusal)) return new SignInProblem("redirect-refused", { url: redirectUri });
  if (status === 401 || status === 403) {
    return new SignInProblem("known-clients-only", { url: issuer, ...(what && { what }) });
  }
  if (status === 404 || status === 405 || status === 410) {
    return new SignInProblem("no-registration", { url: issuer });
  }
  if (error === undefined) return undefined;
  return new SignInProblem("registration-refused", { url: issuer, error, what: what ?? error });
}
