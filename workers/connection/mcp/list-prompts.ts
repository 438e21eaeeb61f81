/** Lists a server's prompts: for the commands of Pi, and for the metadata cache, which other adapters read too. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CachedPrompt, normalizePrompts } from "../../shared/listed.ts";
import type { SendRequest } from "./list-pages.ts";
import { type ListingOptions, listOne, orNote } from "./list-resources.ts";

/** Undefined if they could not be listed: then the stored prompts stay. Never rejects. */
export async function listPrompts(
  send: SendRequest,
  listing: ListingOptions,
): Promise<CachedPrompt[] | undefined> {
  const listed = await listOne(send, listing, {
    method: "prompts/list",
    field: "prompts",
    read: normalizePrompts,
  }).catch(orNote(listing, "prompts"));
  // Each name once, also across pages.
  return listed && normalizePrompts(listed).slice(0, LIMITS.resourcesPerServer);
}
