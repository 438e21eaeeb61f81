/** What a server has of prompts: for the metadata cache, which other adapters read too. Nothing here offers them. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CachedPrompt, normalizePrompts } from "../../shared/listed/prompt.ts";
import type { SendRequest } from "./list-pages.ts";
import { type ListingOptions, listOne, orNote } from "./list-resources.ts";

/** Undefined where they could not be listed: then what is stored stays. Never rejects. */
export async function listPrompts(
  send: SendRequest,
  listing: ListingOptions,
): Promise<CachedPrompt[] | undefined> {
  const listed = await listOne(send, listing, {
    method: "prompts/list",
    field: "prompts",
    read: normalizePrompts,
  }).catch(orNote(listing, "prompts"));
  // Also across pages each name once.
  return listed && normalizePrompts(listed).slice(0, LIMITS.resourcesPerServer);
}
