/**
 * Owns: the files of a project, or of a package, to whose content a yes is bound: those that the entry names in its command,
 * its arguments, its variables and its `caFile`. What decides whether a yes still holds is the content, not the time. Must
 * not: start a server, or look at another machine. Never throws.
 */

import { createHash } from "node:crypto";
import { opendir, stat } from "node:fs/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { inTime } from "../../../shared/files/file-system.ts";
import { readRegular } from "../../../shared/files/read-regular.ts";
import { canonical } from "../../../shared/json.ts";
import { isFile, isWithin } from "../../../shared/programs/find-program.ts";
import { isUsersOwn, type ServerDefinition } from "../entry/definition.ts";
import { escapeVariables, fillPath, isCommand, type PathFacts, pathsOf } from "../entry/interpolate.ts";
import { endOf, isRemotePath, wayTo } from "../files/path-stops.ts";
import { findWorktree } from "../files/sources.ts";
import { decidesWhatRuns, isOfPrograms } from "./deciding-variables.ts";

export interface EnvFolders {
  home: string;
  /** The session's folder. */
  cwd: string;
  platform?: NodeJS.Platform;
}

/**
 * The real folder of the clone that Pi runs in: its worktree, or the session's folder. Undefined: Pi runs in the home
 * folder or above it, which is no clone.
 */
export async function cloneOf({
  cwd,
  home,
  platform = process.platform,
}: EnvFolders): Promise<string | undefined> {
  const [folder, user] = await Promise.all([endOf(cwd), endOf(home)]);
  const isHome = (one: string): boolean => isWithin(user, one, platform);
  if (isHome(folder)) return undefined;
  const worktree = await findWorktree(folder);
  // Some people keep their whole home folder in Git.
  return worktree === undefined || isHome(worktree) ? folder : worktree;
}

/** `names`: as the entry writes them. `hash`: hex SHA-256 of their paths and contents. */
export type Scripts = { names: string[]; hash: string } | { reason: string };

const sha256 = (value: string | Uint8Array): string => createHash("sha256").update(value).digest("hex");

/** What runtimes add to a path that is no file or to the name of a module, and Windows to the path of a program. */
const ENDINGS = [".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".node", ".py"];
const ENDINGS_ON_WINDOWS = [...ENDINGS, ".com", ".exe", ".bat", ".cmd", ".ps1"];
/** As Windows also names a file: no list of a folder has that name. */
const SHORT_NAME = /~\d+$/;
/** Names of folders that one look lists, all together: a clone may have thousands of links to one large folder. */
const LISTED_NAMES = 10_000;
/** What stands between words of a shell, of a program's text, and of a list of options or folders. */
const BETWEEN = /[\s"'`=:;,|&()<>[\]{}]+/;
/** A variable or the output of a command as a shell reads them, before a path: mostly the folder of the entry. */
const SHELL_FOLDER = /(?:\$\w+|\$\([^()]*\)|`[^`]*`)["']?[\\/]/g;
/** An option of one letter with its value in one word (`-f./hook.awk`), and a file whose content is the value (`@file`). */
const BEFORE_PATH = /^(?:-\w|@)/;
/** Behind these words of a shell and options of runners stands the folder in which the other words are looked for. */
const GOES_TO = new Set(
  "cd chdir pushd -C --cd --chdir --cwd --dir --directory --prefix --project --project-directory".split(" "),
);
/** More than any line of a person goes to. */
const MOST_FOLDERS = 100;
/** What a server itself writes is named in texts and variables as well, and a change of that is no reason to ask. */
const DATA_FILE = /\.(?:jsonl?|ndjson|db|sqlite\d?|duckdb|kuzu|parquet|[ct]sv|txt|md|log|pid)$/i;

/** A name without what some file systems take for equal, so that no file is missed: it is looked for by its own name then. */
const folded = (name: string): string => name.normalize("NFKD").toUpperCase().toLowerCase();

/** The texts of an entry that may name files. The command is searched for unless it is a path. */
function textsOf({ target }: ServerDefinition): string[] {
  if (target.kind === "http") return target.caFile === undefined ? [] : [target.caFile];
  if (target.kind !== "stdio") return [];
  const { command, args, env } = target;
  const variables = Object.entries(env).flatMap(([name, value]) =>
    isOfPrograms(name) || (decidesWhatRuns(name) && !DATA_FILE.test(value)) ? [value] : [],
  );
  const all = [...(/[/\\]/.test(command) ? [command] : []), ...args, ...variables];
  return all.filter((text) => !isCommand(text) && !text.includes("\0"));
}

/** The folders to which the words lead, each by itself and one behind the other. */
function foldersIn(words: readonly string[], { join, isAbsolute }: ReturnType<typeof pathsOf>): string[] {
  const folders = new Set<string>();
  let at = ".";
  for (const [index, word] of words.entries()) {
    if (folders.size > MOST_FOLDERS) break;
    // Options stand between them, as in `cd -P -- sub`; `cd /d` is of Windows.
    const folder = GOES_TO.has(word)
      ? words.slice(index + 1, index + 5).find((next) => !/^(?:-|\/d$)/i.test(next))
      : /^-C(.+)/.exec(word)?.[1];
    if (folder === undefined) continue;
    at = isAbsolute(folder) ? folder : join(at, folder);
    folders.add(join(folder)).add(at);
  }
  return [...folders];
}

/** The text, what follows a `=` in it, and each part that could be a path. */
function wordsIn(text: string, parts: readonly string[]): string[] {
  const paths = parts
    .flatMap((part) => [part, part.replace(BEFORE_PATH, "")])
    .filter((part) => !DATA_FILE.test(part));
  const words = [text, ...(text.includes("=") ? [text.slice(text.indexOf("=") + 1)] : []), ...paths];
  return [...new Set(words)].filter((word) => word !== "" && !word.includes("\0"));
}

/** Looks at the scripts of the servers of one decision, or of one server at its start. Each file is read once. */
export class ScriptReader {
  readonly #facts: PathFacts & EnvFolders;
  readonly #read = new Map<string, Promise<string>>();
  readonly #listed = new Map<string, Promise<Set<string> | undefined>>();
  #clone: Promise<string | undefined> | undefined;
  #words = 0;
  #names = 0;

  constructor(facts: PathFacts & EnvFolders) {
    this.#facts = facts;
  }

  get #platform(): NodeJS.Platform {
    return this.#facts.platform ?? process.platform;
  }

  get #endings(): string[] {
    return this.#platform === "win32" ? ENDINGS_ON_WINDOWS : ENDINGS;
  }

  /** Undefined: the server names no file of the project or of its package, or nothing of it is bound. */
  async find(definition: ServerDefinition): Promise<Scripts | undefined> {
    const { origin, target } = definition;
    if ((origin !== "project-file" && origin !== "package") || isUsersOwn(definition)) return undefined;
    // Which files the entry names would be known only after the yes.
    if (target.kind === "stdio" && target.cwd !== undefined && isCommand(target.cwd))
      return { reason: "its cwd is the output of a command, so a yes could not be bound to its files" };
    const texts = textsOf(definition).map((text) => ({ text, parts: this.#partsOf(text) }));
    const words = texts.flatMap(({ text, parts }) => wordsIn(text, [...new Set(parts.flat())]));
    const folders = this.#foldersOf(texts.map(({ parts }) => parts));
    if (folders.length > MOST_FOLDERS)
      return {
        reason: `it goes to more than ${MOST_FOLDERS} folders, so a yes could not be bound to its files`,
      };
    // With each ending, such a word is looked for by itself.
    this.#words +=
      words.length * (1 + folders.length) +
      words.filter((word) => SHORT_NAME.test(word)).length * this.#endings.length;
    /** Several words may mean one file, which has the name of the first. */
    const nameOf = new Map<string, string>();
    for (const word of new Set([...words, ...this.#inFolders(words, folders)])) {
      if (this.#words > LIMITS.scriptWords)
        return { reason: `the servers have more than ${LIMITS.scriptWords} words that may be files` };
      for (const [name, content] of await this.#contentsOf(word, definition))
        if (!nameOf.has(content)) nameOf.set(content, name);
    }
    if (nameOf.size === 0) return undefined;
    const bound = [...nameOf].map(([content, name]) => [name, content]);
    return { names: [...nameOf.values()], hash: sha256(canonical(bound)) };
  }

  /** The parts of the text with the variables filled in: as it stands, and with the folders of a shell's line as this one. */
  #partsOf(text: string): [asItStands: string[], inFolder: string[]] {
    const filled = fillPath(text, this.#facts).text;
    const parts = filled.split(BETWEEN);
    const inFolder = filled.replaceAll(SHELL_FOLDER, " ./");
    return [parts, inFolder === filled ? parts : inFolder.split(BETWEEN)];
  }

  /** Of all texts of an entry together: an option and its folder are two arguments. */
  #foldersOf(parts: readonly [asItStands: string[], inFolder: string[]][]): string[] {
    const readings = [parts.flatMap(([asItStands]) => asItStands), parts.flatMap(([, inFolder]) => inFolder)];
    const paths = pathsOf(this.#platform);
    return [...new Set(readings.flatMap((reading) => foldersIn(reading.filter(Boolean), paths)))];
  }

  /** The words as files in these folders, as far as they are not too many. */
  *#inFolders(words: readonly string[], folders: readonly string[]): Generator<string> {
    const { join, isAbsolute } = pathsOf(this.#platform);
    if (this.#words > LIMITS.scriptWords) return;
    for (const folder of folders)
      for (const word of words) if (!isAbsolute(word) && !/^[-@]|\s/.test(word)) yield join(folder, word);
  }

  /** Each file that the word may mean, by name. A word without an ending means each that a runtime may take for it. */
  async #contentsOf(
    word: string,
    { target, base }: ServerDefinition,
  ): Promise<[name: string, content: string][]> {
    // A local server of a folder above has that folder as its `cwd`.
    const cwd = target.kind === "stdio" ? target.cwd : base && escapeVariables(base.folder);
    const contentOf = async (name: string): Promise<[string, string][]> => {
      const content = await this.#contentOf(name, cwd, base?.folder);
      return content === undefined ? [] : [[name, content]];
    };
    const itself = await contentOf(word);
    if (itself.length > 0 || /^[-@]|\s/.test(word)) return itself;
    const names = this.#endings.map((ending) => word + ending);
    const isShort = SHORT_NAME.test(word);
    const found = names.map(async (name) =>
      isShort || (await this.#mayBeThere(name, cwd)) ? contentOf(name) : [],
    );
    return (await Promise.all(found)).flat();
  }

  #fileOf(path: string, cwd = "."): string {
    const { resolve } = pathsOf(this.#platform);
    return resolve(this.#facts.cwd, fillPath(cwd, this.#facts).text, fillPath(path, this.#facts).text);
  }

  /** Each folder is listed once: a text of some thousand words would take seconds if each were looked for with each ending. */
  async #mayBeThere(name: string, cwd?: string): Promise<boolean> {
    const platform = this.#platform;
    const { basename, dirname } = pathsOf(platform);
    const file = this.#fileOf(name, cwd);
    if (isRemotePath(file, platform)) return false;
    const folder = dirname(file);
    const listed = this.#listed.get(folder) ?? this.#namesIn(folder);
    this.#listed.set(folder, listed);
    const names = await listed;
    // It is looked for by itself, as a word is.
    if (names === undefined) this.#words++;
    return names === undefined || names.has(folded(basename(file)));
  }

  /** The names in a folder; undefined: not all can be known. On Windows no other machine is asked for them. */
  async #namesIn(folder: string): Promise<Set<string> | undefined> {
    const platform = this.#platform;
    if (this.#names > LISTED_NAMES) return undefined;
    if (platform === "win32" && (await wayTo(folder, platform)).isRemote) return undefined;
    const names = new Set<string>();
    try {
      for await (const { name } of await opendir(folder, { bufferSize: 1_000 })) {
        if (++this.#names > LISTED_NAMES) return undefined;
        names.add(folded(name));
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR" ? names : undefined;
    }
    return names;
  }

  /** A text that changes with the file; undefined if the word names no file that the clone or the package decides. */
  async #contentOf(word: string, cwd?: string, base?: string): Promise<string | undefined> {
    const platform = this.#platform;
    const { isAbsolute } = pathsOf(platform);
    const path = fillPath(word, this.#facts).text;
    const file = this.#fileOf(word, cwd);
    // Windows signs in to a machine of which it looks at a folder.
    if (isRemotePath(file, platform)) return undefined;
    this.#clone ??= cloneOf(this.#facts);
    const deciding = [await this.#clone, base].filter((one) => one !== undefined);
    if (deciding.length === 0) return undefined;
    // A link is looked at before it is followed. Where no link leads to another machine, one look tells that a word is no file.
    if (platform !== "win32" && !(await isFile(file))) return undefined;
    const { stops, isRemote } = await wayTo(file, platform);
    const isDecided =
      !isAbsolute(path) || stops.some((at) => deciding.some((one) => isWithin(at, one, platform)));
    if (!isDecided) return undefined;
    const real = stops.at(-1) ?? file;
    if (isRemote) return real;
    if (!(await isFile(real))) return undefined;
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

/**
 * Whether a server's scripts still are those to which the user agreed. Undefined: nobody knows, their file system does not answer
 * for as long as a server may take to start: on a machine that has too much to do a disk takes seconds.
 */
export async function areAgreed(
  definition: ServerDefinition,
  facts: PathFacts & EnvFolders,
): Promise<boolean | undefined> {
  const find = () => new ScriptReader(facts).find(definition);
  const found = await inTime(`${definition.file} ${definition.name}`, find, LIMITS.startupTimeoutMs);
  if (!("value" in found)) return undefined;
  const now = found.value;
  return (now && "hash" in now ? now.hash : undefined) === definition.agreedScripts;
}
