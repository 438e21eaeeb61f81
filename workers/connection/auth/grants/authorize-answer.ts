/**
 * The answer of the authorization endpoint, which the browser brings. Owns: the checks of `state`, `iss` and `error`, in
 * this order: what a wrong sender says is never shown (RFC 9207, section 2.4).
 */
import { skipStateCheck, validateAuthResponse } from "oauth4webapi";
import { createRedactor } from "../../secrets/redact.ts";
import { isSameState, SignInProblem } from "../model/model.ts";
import type { PendingAuthorization } from "./context.ts";
import { authorizationProblem } from "./refusals.ts";

export type AuthorizationAnswer = { parameters: URLSearchParams } | { bareCode: string };

/** A code of Entra has about 1,500 characters. */
const CODE_CHARS = 8_000;
const ERROR_CHARS = 100;
const WORDS_CHARS = 1_000;

/** An authorization gets one answer: a second one with the same state is somebody else's. */
const answered = new WeakSet<PendingAuthorization>();

/** The only value of the parameter; undefined if there is none, or more than one (RFC 6749, section 3.1). */
function only(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = parameters.getAll(name);
  return more.length === 0 && value !== "" ? value : undefined;
}

/** RFC 9207: compared character by character, without any normalization. */
function checkIssuer(parameters: URLSearchParams, { discovered: { metadata } }: PendingAuthorization): void {
  const isDue = metadata.authorization_response_iss_parameter_supported === true;
  const isAbsent = !parameters.has("iss");
  if (isAbsent ? isDue : only(parameters, "iss") !== metadata.issuer) {
    throw new SignInProblem("response-issuer-wrong");
  }
}

/** Throws what the authorization server says in place of a code. */
function checkError(parameters: URLSearchParams, { state, verifier, scope }: PendingAuthorization): void {
  if (!parameters.has("error")) return;
  const redact = createRedactor({ values: [], named: [state, verifier] });
  const what = redact(parameters.get("error_description") ?? "").slice(0, WORDS_CHARS);
  const error = redact(parameters.get("error") ?? "").slice(0, ERROR_CHARS);
  // The status is none of HTTP: a browser brings the answer.
  throw authorizationProblem({ status: 0, error, ...(what !== "" && { what }) }, scope);
}

/** The parameters as oauth4webapi wants them for the exchange of the code. Throws `SignInProblem`. */
export function checkedAnswer(pending: PendingAuthorization, answer: AuthorizationAnswer): URLSearchParams {
  const { client, discovered } = pending;
  if (answered.has(pending)) throw new SignInProblem("state-wrong");
  const parameters =
    "bareCode" in answer ? new URLSearchParams({ code: answer.bareCode }) : answer.parameters;
  if (!("bareCode" in answer) && !isSameState(only(parameters, "state") ?? "", pending.state)) {
    throw new SignInProblem("state-wrong");
  }
  checkIssuer(parameters, pending);
  answered.add(pending);
  checkError(parameters, pending);
  const code = only(parameters, "code");
  if (code === undefined || code.length > CODE_CHARS) throw new SignInProblem("code-refused");
  const checked = new URLSearchParams({ code });
  // oauth4webapi looks for it again.
  if (parameters.has("iss")) checked.set("iss", discovered.metadata.issuer);
  return validateAuthResponse(discovered.metadata, { client_id: client.id }, checked, skipStateCheck);
}
