/**
 * `<agentDir>/mcp-trust.json`: consents given, by hash. Version 1, 0600, written whole. A file that
 * cannot be read holds no consents and is kept aside, never overwritten.
 */
import { copyFile, readFile } from "node:fs/promises";
import * as z from "zod";
import { writeFileAtomic } from "../../cache/atomic-file.ts";
import type { Consent } from "./trust.ts";

const VERSION = 1;
/** Oldest go first: a hash that is never asked for again costs nothing but space. */
const KEPT_CONSENTS = 1_000;

/** Made where there is such a file. */
function trustSchema() {
  const consent = z.object({
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    decision: z.enum(["allowed", "refused"]),
    server: z.string(),
    file: z.string(),
    decidedAt: z.number(),
  });
  return z.object({ version: z.literal(VERSION), consents: z.array(consent) });
}

type Loaded = { consents: Consent[]; corrupt: boolean };

async function load(file: string): Promise<Loaded> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { consents: [], corrupt: false };
    throw error;
  }
  try {
    const { consents } = trustSchema().parse(JSON.parse(text));
    return { consents, corrupt: false };
  } catch {
    // Whatever is wrong with it: an empty list asks again, which is the safe side.
    return { consents: [], corrupt: true };
  }
}

/** None where the file is missing, corrupt, of another version or unreadable. */
export async function loadConsents(file: string): Promise<Consent[]> {
  try {
    return (await load(file)).consents;
  } catch {
    return [];
  }
}

/** One process writes one after the other; between processes the last writer of one moment wins. */
let writing: Promise<unknown> = Promise.resolve();

async function add(file: string, added: readonly Consent[]): Promise<Consent[]> {
  const { consents, corrupt } = await load(file);
  if (corrupt) await copyFile(file, `${file}.corrupt`);
  const hashes = new Set(added.map(({ hash }) => hash));
  const kept = consents.filter(({ hash }) => !hashes.has(hash));
  const all = [...kept, ...added].slice(-KEPT_CONSENTS);
  await writeFileAtomic(file, `${JSON.stringify({ version: VERSION, consents: all }, null, 2)}\n`);
  return all;
}

/** Adds decisions, newer ones replacing older ones of the same hash. Throws what the file system throws. */
export function remember(file: string, added: readonly Consent[]): Promise<Consent[]> {
  const next = writing.then(() => add(file, added));
  // The failure is its caller's; the next write must not inherit it.
  writing = next.catch(() => undefined);
  return next;
}
