/**
 * Owns what real authorization servers get wrong and what is made right before oauth4webapi looks, which refuses all of
 * it. An answer is known by its content: a token, a registration or an error. Nothing is made up that a token's safety
 * rests on. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { withoutBom } from "../../../../src/shared/text/reading.ts";

export interface Answer {
  status: number;
  contentType: string | undefined;
  text: string;
}

type Fields = Record<string, unknown>;

const JSON_TYPE = "application/json";
const FORM = /^(?:access_token|error|token_type|scope|expires_in|refresh_token)=[^\s<>{}"]*$/;

/** Real answers have fewer than a hundred. Very deep JSON can be read, but not written again: the stack ends first. */
const BRACKETS = 4_000;

/** Whether the text has so many lists and objects that only a part of the code could handle them. */
export const isTangled = (text: string): boolean => text.split(/[[{]/, BRACKETS + 2).length > BRACKETS + 1;

/** The JSON object in the text; undefined for any other text, and for one of too many lists and objects. */
export function readObject(text: string): Fields | undefined {
  if (isTangled(text)) return undefined;
  try {
    const value: unknown = JSON.parse(withoutBom(text));
    return isObject(value) ? value : undefined;
  } catch {
    // An answer that is not JSON is explained by its kind: isHtml, or the check of its reader.
    return undefined;
  }
}

export const isHtml = ({ contentType, text }: Pick<Answer, "contentType" | "text">): boolean =>
  /^\s*(?:text\/html|application\/xhtml)/i.test(contentType ?? "") ||
  /^\s*<(?:!doctype|html)/i.test(withoutBom(text));

/** A token answer in form encoding, which GitHub gives to clients that do not ask for JSON. */
export function readForm(text: string): Fields | undefined {
  const form = withoutBom(text).trim();
  return FORM.test(form) ? Object.fromEntries(new URLSearchParams(form)) : undefined;
}

/** Fields that are null or empty say the same as fields that are absent. */
export const withoutEmpty = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ""));

/** Fields that are numbers of seconds (RFC 6749, section 5.1; RFC 7591, section 3.2.1), some written as texts. */
const SECONDS = new Set(["expires_in", "client_id_issued_at", "client_secret_expires_at"]);

const secondsIn = (value: unknown): number =>
  typeof value === "number" || (typeof value === "string" && value.trim() !== "")
    ? Number(value)
    : Number.NaN;

/** Numbers that are written as texts become numbers, and what is no number of seconds is left out. */
export function withNumbers(fields: Fields): Fields {
  const entries = Object.entries(fields).map(([key, value]): [string, unknown] => [
    key,
    SECONDS.has(key) ? secondsIn(value) : value,
  ]);
  const usable = ([key, value]: [string, unknown]): boolean =>
    !SECONDS.has(key) || (Number.isFinite(value) && (value as number) >= 0);
  return Object.fromEntries(entries.filter(usable));
}

/** Types under which Slack issues tokens that are sent as bearer tokens. */
const BEARER_TYPES = new Set(["user", "bot"]);

/** A token answer without a type is one for bearer tokens, and a list of scopes becomes a text. */
export function withTokenFields(fields: Fields): Fields {
  const { token_type: type = "bearer", scope, ...others } = fields;
  if (typeof fields.access_token !== "string") return fields;
  const scopes = Array.isArray(scope) ? scope.filter((one) => typeof one === "string").join(" ") : scope;
  return {
    ...others,
    token_type: typeof type === "string" && BEARER_TYPES.has(type) ? "bearer" : type,
    ...(scopes === undefined || scopes === "" ? {} : { scope: scopes }),
  };
}

/** A client's id is a text, and a secret without an end does not expire, which is written as 0. */
export function withClientFields(fields: Fields): Fields {
  const { client_id: id, client_secret: secret } = fields;
  return {
    ...fields,
    ...(typeof id === "number" ? { client_id: String(id) } : {}),
    ...(secret === undefined ? {} : { client_secret_expires_at: fields.client_secret_expires_at ?? 0 }),
  };
}

/** `{"error": {"code": "x", "message": "y"}}` becomes an error of RFC 6749, section 5.2. */
export function withPlainError(fields: Fields): Fields {
  const { error } = fields;
  if (!isObject(error)) return fields;
  const code = [error.code, error.type, error.error].find((text) => typeof text === "string");
  if (code === undefined) return fields;
  const words = typeof error.message === "string" ? { error_description: error.message } : {};
  return { ...words, ...fields, error: code };
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** The fields that a token, a registration and metadata always have. */
const GOOD = ["access_token", "client_id", "issuer", "resource"];

/** The status that fits the content: 400 for an error, 201 for a registration, 200 for tokens. */
export function statusFor(status: number, fields: Fields, isPost: boolean): number {
  if (!isSuccess(status)) return status;
  const has = (key: string): boolean => typeof fields[key] === "string";
  if (has("error") && !GOOD.some(has)) return 400;
  if (!isPost) return status;
  if (has("access_token")) return 200;
  return has("client_id") ? 201 : status;
}

/**
 * The answer as oauth4webapi wants it. `isPost`: the request sent a message; otherwise it asked for metadata, whose
 * fields discovery reads itself. An answer that is neither a JSON object nor a form stays as it is.
 */
export function mendAnswer(answer: Answer, isPost: boolean): Answer {
  const found = readObject(answer.text) ?? (isPost ? readForm(answer.text) : undefined);
  if (!found) {
    const done = isPost && isSuccess(answer.status) && answer.text.trim() === "";
    // Revocation may be answered by any success (RFC 7009, section 2.2), for example 204.
    return done ? { ...answer, status: 200 } : answer;
  }
  const given = withPlainError(withoutEmpty(found));
  const fields = isPost ? withTokenFields(withClientFields(withNumbers(given))) : given;
  return {
    status: statusFor(answer.status, fields, isPost),
    contentType: JSON_TYPE,
    text: JSON.stringify(fields),
  };
}
