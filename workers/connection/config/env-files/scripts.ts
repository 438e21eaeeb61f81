/**
 * The files of a project that one of its servers names as its command or in its arguments, such as `node server.js`. The
 * user agrees to what they hold: another content needs another yes. What such a file imports is not among them. A server
 * of `.pi/mcp.json` is as trusted as the project, so that nothing of it is bound. Never throws.
 */
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { readRegular } from "../../../shared/files/read-regular.ts";
import { canonical } from "../../../shared/json/canonical.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { fillPath, type PathFacts, pathsOf } from "../entry/interpolate.ts";
import { isOwn } from "./content.ts";
import { cloneOf, type EnvFolders } from "./launch.ts";
import { isWithin, wayTo } from "./path-stops.ts";

/** `names`: as the entry writes them. `hash`: hex SHA-256 of their paths and contents. */
export type Scripts = { names: string[]; hash: string } | { reason: string };

const sha256 = (value: string | Uint8Array): string => createHash("sha256").update(value).digest("hex");

/** Each word, and what follows a `=` in it, that could be a path. The command is searched for unless it is a path. */
function pathsIn({ command, args }: { command: string; args: readonly string[] }): string[] {
  const words = [...(/[/\\]/.test(command) ? [command] : []), ...args];
  return words
    .flatMap((word) => [word, ...(word.includes("=") ? [word.slice(word.indexOf("=") + 1)] : [])])
    .filter((word) => word !== "" && !/^!(?!!)|\0/.test(word));
}

/** Looks at the scripts of the servers of one decision, or of one server at its start. Each file is read once. */
export class ScriptReader {
  readonly #facts: PathFacts & EnvFolders;
  readonly #read = new Map<string, Promise<string>>();
  #clone: Promise<string | undefined> | undefined;
  #words = 0;

  constructor(facts: PathFacts & EnvFolders) {
    this.#facts = facts;
  }

  /** Undefined: the server names no file of the project, or nothing of it is bound. */
  async find(definition: ServerDefinition): Promise<Scripts | undefined> {
    const { target, origin } = definition;
    if (origin !== "project-file" || isOwn(definition) || target.kind !== "stdio") return undefined;
    const words = pathsIn(target);
    this.#words += words.length;
    if (this.#words > LIMITS.scriptWords)
      return { reason: `the project's servers have more than ${LIMITS.scriptWords} words that may be files` };
    const bound: [string, string][] = [];
    for (const word of words) {
      const content = await this.#contentOf(word, target.cwd);
      if (content !== undefined) bound.push([word, content]);
    }
    if (bound.length === 0) return undefined;
    return { names: [...new Set(bound.map(([word]) => word))], hash: sha256(canonical(bound)) };
  }

  /** A text that changes with the file; undefined if the word names no file that the clone decides. */
  async #contentOf(word: string, cwd = "."): Promise<string | undefined> {
    const { platform = process.platform } = this.#facts;
    const { resolve } = pathsOf(platform);
    const folder = resolve(this.#facts.cwd, fillPath(cwd, this.#facts).text);
    const file = resolve(folder, fillPath(word, this.#facts).text);
    const isThere = await stat(file).then(
      (found) => found.isFile(),
      () => false,
    );
    this.#clone ??= cloneOf(this.#facts);
    const clone = await this.#clone;
    if (!isThere || clone === undefined) return undefined;
    const { stops } = await wayTo(file, platform);
    if (!stops.some((stop) => isWithin(stop, clone, platform))) return undefined;
    const real = stops.at(-1) ?? file;
    const read = this.#read.get(real) ?? this.#hash(real);
    this.#read.set(real, read);
    return `${real} ${await read}`;
  }

  /** A file beyond the bounds is told by its size and the time of its change, which a checkout sets anew. */
  async #hash(file: string): Promise<string> {
    const read =
      this.#read.size < LIMITS.scriptsRead ? await readRegular(file, LIMITS.scriptBytes) : undefined;
    if (read?.kind === "bytes") return sha256(read.bytes);
    return stat(file).then(
      ({ size, mtimeMs }) => `${size} ${mtimeMs}`,
      () => "gone",
    );
  }
}

/** Whether a server's scripts still are those to which the user agreed. */
export const areAgreed = async (
  definition: ServerDefinition,
  facts: PathFacts & EnvFolders,
): Promise<boolean> => {
  const now = await new ScriptReader(facts).find(definition);
  return (now && "hash" in now ? now.hash : undefined) === definition.agreedScripts;
};
