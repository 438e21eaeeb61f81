/** Owns: a store on a temp folder with what it told, and a sign-in to put into it. */
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  type Place,
  placeOf,
  type StoreOptions,
} from "../../../../../../workers/connection/auth/store/file.ts";
import { openSignInStore, type SignInStore } from "../../../../../../workers/connection/auth/store/store.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import { LOCK, never, SERVER, SYSTEM_OF_TEST, URL_OF_SERVER } from "./record-of-test.ts";

export { LOCK, never, SERVER, SYSTEM_OF_TEST, signedIn, URL_OF_SERVER } from "./record-of-test.ts";

export interface TestStore {
  store: SignInStore;
  place: Place;
  agentDir: string;
  notes: string[];
  warnings: string[];
}

/** Without `agentDir`: in a new folder. */
export async function openStore(
  over: Partial<StoreOptions> = {},
  system: Parameters<typeof openSignInStore>[1] = {},
): Promise<TestStore> {
  const agentDir = over.agentDir ?? (await tempFolder());
  const notes: string[] = [];
  const warnings: string[] = [];
  const options: StoreOptions = {
    ...SYSTEM_OF_TEST,
    server: SERVER,
    takesGiven: true,
    url: URL_OF_SERVER,
    onNote: (note) => notes.push(note),
    warn: (text) => warnings.push(text),
    ...over,
    agentDir,
  };
  const store = openSignInStore(options, { lockTimes: LOCK, ...system });
  return { store, place: placeOf(options), agentDir, notes, warnings };
}

export const write = (store: SignInStore, record: SignInRecord): Promise<void> =>
  store.locked((held) => held.write(record), never());

export const forget = (store: SignInStore): Promise<void> => store.locked((held) => held.forget(), never());

/** Writes a file as another program does: a text as it is, any other value as JSON. */
export async function put(path: string, content: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
}

/** Sets the file's time of change so far back that the file counts as settled. */
export async function settle(path: string, secondsAgo = 60): Promise<void> {
  const at = new Date(Date.now() - secondsAgo * 1_000);
  await utimes(path, at, at);
}

export const piFileOf = (agentDir: string): string => join(agentDir, "mcp-auth.json");
