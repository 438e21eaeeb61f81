/**
 * Reads what a server asks the user (MCP 2025-11-25, client/elicitation): a form, or an address to open. The request may
 * have any shape. Pure.
 */
import { numberOf, problemOf } from "../../../src/shared/asks/check.ts";
import type { Ask, FieldValue } from "../../../src/shared/protocol/ask.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { cleanText, cut } from "../../../src/shared/text/unprintable.ts";
import { boundText, type Redactor } from "../secrets/redact.ts";
import { readFields, type ServerField, type Unanswerable } from "./fields.ts";
import { MESSAGE_CHARS, MESSAGE_LINES, URL_CHARS } from "./limits.ts";

/** A question with what the answer to the server needs of it. */
export interface ServerAsk {
  ask: Ask;
  /** Empty for an address. */
  fields: readonly ServerField[];
}

/** The message in a few printable lines. */
function messageOf(message: unknown, redact: Redactor): string {
  if (typeof message !== "string") return "";
  const lines = cleanText(boundText(message, 4 * MESSAGE_CHARS, redact))
    .split("\n")
    .map((line) => line.replace(/\s+/g, " ").trim())
    .filter((line, index, all) => line !== "" || (index > 0 && all[index - 1] !== ""));
  const shown = lines.length > MESSAGE_LINES ? [...lines.slice(0, MESSAGE_LINES), "…"] : lines;
  return cut(shown.join("\n").trim(), MESSAGE_CHARS);
}

/** A page of the browser; credentials before the host would make the host look like another one. */
function readUrl(url: unknown, message: string): ServerAsk | Unanswerable {
  const parsed = typeof url === "string" && url.length <= URL_CHARS ? URL.parse(url.trim()) : null;
  if (parsed === null || parsed.href.length > URL_CHARS) return { problem: "its address cannot be read" };
  const { protocol, username, password, host, hostname, href } = parsed;
  if (protocol !== "https:" && protocol !== "http:")
    return { problem: "its address is not one of http or https" };
  if (username !== "" || password !== "") return { problem: "its address has a user name or a password" };
  // A browser shows and sends the same address, with each letter beyond ASCII in its code.
  if (!/^[!-~]+$/.test(href)) return { problem: "its address has characters that an address cannot have" };
  const punycode = hostname.split(".").some((label) => label.startsWith("xn--"));
  const ask: Ask = { kind: "url", message, url: href, host, punycode, plain: protocol === "http:" };
  return { ask, fields: [] };
}

/** Reads the params of `elicitation/create`, or one item of the error -32042. */
export function readAsk(params: unknown, redact: Redactor): ServerAsk | Unanswerable {
  if (!isObject(params)) return { problem: "its question has no content" };
  const { mode = "form" } = params;
  const message = messageOf(params.message, redact);
  if (mode === "url") return readUrl(params.url, message);
  if (mode !== "form") return { problem: "its question is of an unknown mode" };
  const fields = readFields(params.requestedSchema, redact);
  if ("problem" in fields) return fields;
  return { ask: { kind: "form", message, fields: fields.map(({ field }) => field) }, fields };
}

function valueFor({ field, values }: ServerField, value: Exclude<FieldValue, undefined>): unknown {
  if (field.kind === "number") return numberOf(String(value));
  if (field.kind === "choice") return values[Number(value)];
  return Array.isArray(value) ? value.map((position) => values[position]) : value;
}

/** The `content` of the answer, or the fields whose values do not fit. */
export function contentOf(
  fields: readonly ServerField[],
  given: readonly FieldValue[],
): { content: Record<string, unknown> } | { refused: { field: number; problem: string }[] } {
  const refused: { field: number; problem: string }[] = [];
  const content: [string, unknown][] = [];
  for (const [index, one] of fields.entries()) {
    const value = given[index];
    const problem = problemOf(one.field, value);
    if (problem !== undefined) refused.push({ field: index, problem });
    else if (value !== undefined) content.push([one.name, valueFor(one, value)]);
  }
  return refused.length > 0 ? { refused } : { content: Object.fromEntries(content) };
}
