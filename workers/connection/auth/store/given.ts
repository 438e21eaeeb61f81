/**
 * Tokens that a person or another program put into `tokens.json`. Reading is tolerant about the forms in which programs
 * write the end of a token's life. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { GivenTokens } from "../model/model.ts";
import { instantOf, jsonOf, numberOf, optional, refreshTokenOf, timeOf, tokenOf } from "./fields.ts";
import type { Parsed } from "./record.ts";

/** RFC 6750, section 1.2. */
const USUAL_TYPE = "Bearer";

/** The end of the token's life: as a time, else relative to the file's own time. */
function endOf(raw: Record<string, unknown>, modifiedMs: number): number | undefined {
  const at = instantOf(raw.expiresAt) ?? instantOf(raw.expires_at);
  if (at !== undefined) return at;
  const seconds = numberOf(raw.expires_in);
  return seconds === undefined ? undefined : timeOf(modifiedMs + Math.max(0, seconds) * 1_000);
}

/**
 * Never throws. `modifiedMs`: when the file was changed, in milliseconds since the epoch. A file may name the `url` that
 * its tokens are for; then they are for no other.
 */
export function parseGiven(
  text: string,
  { modifiedMs, url }: { modifiedMs: number; url: string },
): Parsed<GivenTokens> {
  const raw = jsonOf(text);
  if (!isObject(raw)) return { what: "it is not a JSON object" };
  if (typeof raw.url === "string" && raw.url !== url) return { what: "its url is not that of the server" };
  const access = tokenOf(raw.access_token);
  if (access === undefined) return { what: "it has no access_token that a header can hold" };
  const value: GivenTokens = {
    access_token: access,
    token_type: tokenOf(raw.token_type) ?? USUAL_TYPE,
    ...optional("refresh_token", refreshTokenOf(raw.refresh_token)),
    ...optional("expiresAt", endOf(raw, modifiedMs)),
  };
  return { value };
}
