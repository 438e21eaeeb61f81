/**
 * One question to an endpoint of an authorization server. Owns: how oauth4webapi sends it through our requests, how the
 * answer is read, and which answers are a failure. The errors of oauth4webapi are never passed on, not even as a cause,
 * because they hold the answer with its tokens.
 */
import {
  allowInsecureRequests,
  customFetch,
  OperationProcessingError,
  PARSE_ERROR,
  RESPONSE_IS_NOT_JSON,
  UnsupportedOperationError,
} from "oauth4webapi";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { createRedactor, type Redactor } from "../../secrets/redact.ts";
import { SignInProblem } from "../model/model.ts";
import { type AuthRequests, shownAddress } from "../requests/requests.ts";

/** What the server says in place of what it was asked for. `error` and `what` are bounded and hold no secret. */
export interface Refusal {
  status: number;
  error?: string;
  what?: string;
}

/** Options for the requests of oauth4webapi. */
export interface SendOptions {
  [customFetch]: (url: string, init: SentRequest) => Promise<Response>;
  [allowInsecureRequests]: boolean;
}

interface SentRequest {
  method: string;
  headers: Record<string, string>;
  body: URLSearchParams | string;
}

export interface Question<T> {
  /** Checked: https, or http on loopback. */
  endpoint: URL;
  requests: AuthRequests;
  /** Secrets that are not in the form of the request. */
  secrets: readonly string[];
  send(options: SendOptions): Promise<Response>;
  /** Reads the text of an answer with a status of 200 to 299. */
  read(text: string): Promise<T> | T;
  /** Undefined: the answer is a bad one. */
  refused(refusal: Refusal): SignInProblem | undefined;
}

/** Fields of a request whose values no text may show. */
const SECRET_FIELDS = [
  "code",
  "code_verifier",
  "refresh_token",
  "client_secret",
  "client_assertion",
  "token",
];
const ERROR_CHARS = 100;
const WORDS_CHARS = 1_000;

const isTrouble = (status: number): boolean => status >= 500 || status === 408 || status === 429;

/** RFC 6749, section 5.2. `message` is what servers write that do not know the RFC. */
function refusalOf(status: number, text: string, redact: Redactor): Refusal {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // An answer without JSON is a refusal by its status alone.
    return { status };
  }
  if (!isObject(body)) return { status };
  const { error, error_description: description, message } = body;
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

/** Throws `SignInProblem`. */
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
        return requests.fetch(address, { method, headers, body });
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
