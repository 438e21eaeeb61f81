/**
 * All stored sign-ins of this user, also those whose servers no file names any more: where each is, and its way to the other
 * place. Nothing of a secret is answered, and of an address only the host.
 */
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { SignInMoved, SignInPlace } from "../../../../src/shared/protocol/person.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { SIGN_IN_FOLDER } from "../../../../src/shared/snapshot/contract.ts";
import { codeOf, readRegularText } from "../../../shared/files/read-regular.ts";
import { explainProblem, SignInProblem } from "../model/model.ts";
import { FILE_BYTES, ownId, placeOf, refusal, type StoreOptions, type TokenStore } from "./file.ts";
import { jsonOf, parseStored } from "./record.ts";
import { openSignInStore } from "./store.ts";

/** Files beyond are not looked at. */
const FILES = 1_000;

type Found = SignInPlace & { url: string };

/** Names in a folder; none if it is missing or is not this user's own. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    if (refusal(await lstat(folder, { bigint: true }), "folder", ownId()) !== undefined) return [];
    return (await readdir(folder)).sort();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function findAt(agentDir: string, id: string): Promise<Found | undefined> {
  const path = join(agentDir, SIGN_IN_FOLDER, id);
  const found = await lstat(path, { bigint: true });
  const read = refusal(found, "file", ownId()) === undefined && (await readRegularText(path, FILE_BYTES));
  if (read === false || read.kind !== "text") return undefined;
  const raw = jsonOf(read.text);
  if (!isObject(raw) || typeof raw.server !== "string" || typeof raw.url !== "string") return undefined;
  const { server, url } = raw;
  const parsed = parseStored(read.text, { server, url });
  // A file at another place than its own is no sign-in.
  if ("what" in parsed || placeOf({ agentDir, server, url }).file !== path) return undefined;
  const { record, item } = parsed.value;
  if (record === undefined && item === undefined) return undefined;
  const host = URL.parse(url)?.host ?? "";
  return { id, server, host, place: item === undefined ? "file" : "system", url };
}

async function find(agentDir: string): Promise<Found[]> {
  const root = join(agentDir, SIGN_IN_FOLDER);
  const ids: string[] = [];
  for (const folder of await namesIn(root)) {
    for (const name of await namesIn(join(root, folder)))
      if (/^[0-9a-f]{16}\.json$/.test(name) && ids.length < FILES) ids.push(join(folder, name));
  }
  const all = await Promise.all(ids.map((id) => findAt(agentDir, id).catch(() => undefined)));
  return all.filter((found) => found !== undefined);
}

/** Rejects with what the file system throws. */
export const listSignIns = async (agentDir: string): Promise<SignInPlace[]> =>
  (await find(agentDir)).map(({ url: _, ...place }) => place);

/** Rejects with `ThreadsError`; then the sign-in is where it was. `id`: of `listSignIns`. */
export async function moveSignIn(
  { id, to }: { id: string; to: TokenStore },
  options: Pick<StoreOptions, "agentDir" | "tokenStore" | "system" | "onNote" | "warn">,
  signal: AbortSignal,
): Promise<SignInMoved> {
  if (to === "file" && options.tokenStore() === "system") {
    throw new ThreadsError(
      "bad_config",
      'The sign-in would go back with its next renewal: "tokenStore" is "system".',
      { remedy: "Take tokenStore out of the settings of your mcp.json first." },
    );
  }
  const found = (await find(options.agentDir)).find((one) => one.id === id);
  if (found === undefined) return { how: "none" };
  const { server, url } = found;
  const store = openSignInStore({ ...options, server, url, takesGiven: false });
  try {
    return await store.move(to, signal);
  } catch (error) {
    if (!(error instanceof SignInProblem)) throw error;
    throw explainProblem(error, { server, redact: (fact) => fact });
  }
}
