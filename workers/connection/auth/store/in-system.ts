/**
 * The sign-in of one server in the system's credential store. Owns: when the store's program runs. It runs once for each new
 * item, since an item is never changed, and not for each request; a store that did not answer is left alone for a moment, so
 * that it does not ask its user again and again. Its code is loaded by the first sign-in that is there or goes there.
 */
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../../../../src/shared/protocol/errors.ts";
import { SignInProblem, type SignInRecord } from "../model/model.ts";
import { folderNameOf, type StoreOptions } from "./file.ts";
import { formatRecord, parseOwn } from "./record.ts";
import type { Item, SystemStore } from "./system/system.ts";

/** As a sentence names it. */
export const SYSTEM_STORE = "the system's credential store";

/** A failure holds so long for requests; what a person starts asks anew. */
const FAILED_MS = 10_000;

/** The mark of a renewal that is out says nothing that the file of the lock does not say. */
const unmarked = ({ refreshing: _, ...record }: SignInRecord): SignInRecord => record;

/** Why the store cannot be used, without the words around it. */
export const whyUnusable = (error: unknown): string | undefined =>
  error instanceof SignInProblem && error.kind === "system-store" ? error.facts.what : undefined;

type Read = { item: string; record: SignInRecord | undefined };

/** All reject with `SignInProblem` "system-store". */
export function createInSystem({
  server,
  url,
  system,
  onNote,
}: Pick<StoreOptions, "server" | "url" | "system" | "onNote">) {
  let opened: Promise<SystemStore> | undefined;
  let known: Read | undefined;
  let reading: { item: string; read: Promise<Read> } | undefined;
  let failed: { problem: SignInProblem; untilMs: number } | undefined;

  const open = (): Promise<SystemStore> => {
    const label = `pi-mcp-threads: ${folderNameOf(server)}`;
    opened ??= import("./system/system.ts").then((room) => room.openSystemStore(label, system));
    return opened;
  };

  const load = async (item: Item): Promise<Read> => {
    const text = await (await open()).read(item);
    const parsed = text === undefined ? undefined : parseOwn(text, { server, url });
    if (parsed && "what" in parsed)
      onNote(`what ${SYSTEM_STORE} has for the sign-in is not used: ${parsed.what}`);
    return { item: item.item, record: parsed && "value" in parsed ? parsed.value : undefined };
  };

  const readOnce = async (item: Item): Promise<Read> => {
    try {
      known = await load(item);
      failed = undefined;
      return known;
    } catch (error) {
      if (error instanceof SignInProblem) failed = { problem: error, untilMs: performance.now() + FAILED_MS };
      throw error;
    }
  };

  return {
    /** The sign-in of the item; undefined if the store does not have it. `anew`: the store is asked in any case. */
    read: async (item: Item, anew: boolean): Promise<SignInRecord | undefined> => {
      if (!anew && known?.item === item.item) return known.record;
      if (!anew && failed && performance.now() < failed.untilMs) throw failed.problem;
      if (anew || reading?.item !== item.item) {
        const read = readOnce(item);
        const mine = { item: item.item, read };
        reading = mine;
        const over = (): void => {
          if (reading === mine) reading = undefined;
        };
        read.then(over, over);
      }
      return (await (reading as { read: Promise<Read> }).read).record;
    },
    /** Whether the item, which was read before, has this sign-in. */
    has: (item: Item | undefined, record: SignInRecord): boolean =>
      item !== undefined && known?.item === item.item && isDeepStrictEqual(known.record, unmarked(record)),
    /** A name and a size for a sign-in that is not written yet. */
    itemFor: async (record: SignInRecord): Promise<Item> =>
      (await open()).itemFor(formatRecord(unmarked(record))),
    /** Settles when the store has given back what it was given. */
    write: async (item: Item, record: SignInRecord): Promise<void> => {
      await (await open()).write(item, formatRecord(unmarked(record)));
      known = { item: item.item, record: unmarked(record) };
    },
    remove: async (item: Item): Promise<void> => (await open()).remove(item),
    /** Answers the items that are still there. Never rejects: they are removed later. */
    removeAll: async (items: readonly Item[]): Promise<Item[]> => {
      const left: Item[] = [];
      for (const item of items) {
        try {
          // A store that has refused one is not asked for the others.
          if (left.length === 0) await (await open()).remove(item);
          else left.push(item);
        } catch (error) {
          onNote(`${SYSTEM_STORE} keeps an old token for now: ${whyUnusable(error) ?? messageOf(error)}`);
          left.push(item);
        }
      }
      return left;
    },
    /** Whether the store takes a text and gives it back. It may ask its user to unlock it. */
    check: async (): Promise<void> => (await open()).check(),
  };
}
