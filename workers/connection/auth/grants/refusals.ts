/** What an OAuth error means, by the message that it answers. Pure. */
import { type ProblemFacts, SignInProblem, type SignInProblemKind } from "../model/model.ts";
import type { Refusal } from "./ask.ts";

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

const OF: Readonly<Record<"authorization" | "code" | "refresh" | "client", Table>> = {
  authorization: { ...OF_ALL, access_denied: "denied" },
  code: { ...OF_ALL, invalid_grant: "code-refused" },
  refresh: { ...OF_ALL, invalid_grant: "refresh-refused" },
  client: OF_ALL,
};

const TEMPORARY = new Set(["temporarily_unavailable", "server_error"]);

/** The problem behind an error of the authorization endpoint. */
export function authorizationProblem({ error, what }: Refusal, scope: string | undefined): SignInProblem {
  const facts: ProblemFacts = { ...(error && { error }), ...(what && { what }), ...(scope && { scope }) };
  if (what?.includes(ENTRA_RESOURCE)) return new SignInProblem("resource-refused", facts);
  return new SignInProblem(OF.authorization[error ?? ""] ?? "refused", facts);
}

/** The problem behind an error of the token endpoint; undefined: the answer names no error. */
export function tokenProblem(
  grant: "code" | "refresh" | "client",
  { status, error, what }: Refusal,
  { url, scope }: { url: string; scope: string | undefined },
): SignInProblem | undefined {
  if (error === undefined) return undefined;
  if (TEMPORARY.has(error)) return new SignInProblem("unavailable", { url, status });
  const facts: ProblemFacts = { error, ...(what && { what }), ...(scope && { scope }) };
  if (what?.includes(ENTRA_RESOURCE)) return new SignInProblem("resource-refused", facts);
  return new SignInProblem(OF[grant][error] ?? "refused", facts);
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
