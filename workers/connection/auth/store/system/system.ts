/**
 * Texts in the system's credential store. Owns: the run of its program (which file that is, its time, its bytes and its end),
 * cutting a text into parts of the length that the store takes, and looking whether what was written is there: a store may cut
 * a text and say nothing. An item is never changed: each text gets a new one, so the name of an item says which text it is, and
 * half a write is never taken for a whole one.
 */
import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { parse } from "node:path";
import { collect } from "../../../../shared/programs/collect.ts";
import { childEnvironment, type Env, endsOf, findHere } from "../../../../shared/programs/find-program.ts";
import { type ServerProcess, spawnServer } from "../../../../shared/programs/processes.ts";
import { SignInProblem } from "../../model/model.ts";
import { type Answer, type Dialect, dialectOf, type Ended, type Question, type Run } from "./programs.ts";

export interface SystemOptions {
  env: Env;
  platform: NodeJS.Platform;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Tests pass a shorter time. */
  waitMs?: number;
}

/** The store may ask its user for a password meanwhile. */
const WAIT_MS = 30_000;
/** A text has some kilobytes. */
const OUTPUT_BYTES = 64 * 1024;
const UNSTARTED = "its program could not be started";

/** Why there is no answer, behind "the system's credential store cannot be used: ". */
class Unanswered extends Error {}

/**
 * Runs the program once. It is found without the folder in which Pi runs and does not run there, and what it prints is in no
 * error. Throws `Unanswered`; then nothing is left running.
 */
async function run(
  { program: named, absent }: Dialect,
  { args, stdin }: Run,
  { env: base, platform, onSpawn, onExit, waitMs = WAIT_MS }: SystemOptions,
): Promise<Ended> {
  const folders = { cwd: process.cwd(), home: homedir() };
  const independentOf = { ...folders, ends: await endsOf(base, folders) };
  // The words of the program are read, so they must not be translated.
  const own = { LC_ALL: "C", LANGUAGE: "" };
  const env = childEnvironment({ base, own, platform, independentOf });
  const { root } = parse(process.execPath);
  const program = await findHere(named, { env, cwd: root });
  if (program === undefined) throw new Unanswered(absent);
  let child: ServerProcess;
  try {
    child = spawnServer({ program, args, env, cwd: root });
  } catch {
    // Node's own error would show the environment's size or the arguments.
    throw new Unanswered(UNSTARTED);
  }
  const collected = await collect(child, { stdin, waitMs, bytes: OUTPUT_BYTES, onSpawn, onExit });
  if (collected.how === "ended") return { ...collected, code: collected.code ?? undefined };
  if (collected.how === "late")
    throw new Unanswered(`it gave no answer in ${waitMs / 1_000} s, and perhaps waits for yours`);
  const isLong = collected.how === "long";
  throw new Unanswered(isLong ? `its program printed more than ${OUTPUT_BYTES / 1024} KiB` : UNSTARTED);
}

/** A text in the system's credential store, in so many parts. It is never changed. */
export interface Item {
  item: string;
  parts: number;
}

const ID_BYTES = 16;

export type SystemStore = ReturnType<typeof openSystemStore>;

const unusable = (what: string): SignInProblem => new SignInProblem("system-store", { what });

/** `label`: what the store shows to its user, of `[\w.: -]` alone. All throw `SignInProblem` "system-store". */
export function openSystemStore(label: string, options: SystemOptions) {
  const found = dialectOf(options.platform, options.env);

  const ask = async (question: Question): Promise<Exclude<Answer, { kind: "failed" }>> => {
    if (found === undefined) throw unusable(`none is known for ${options.platform}`);
    const dialect: Dialect = found;
    try {
      const answer = dialect.answer(question, await run(dialect, dialect.run(question), options));
      if (answer.kind === "failed") throw unusable(answer.what);
      return answer;
    } catch (error) {
      throw error instanceof Unanswered ? unusable(error.message) : error;
    }
  };

  const namesOf = ({ item, parts }: Item): string[] =>
    Array.from({ length: parts }, (_, part) => (part === 0 ? item : `${item}.${part}`));

  const encode = (text: string): string => Buffer.from(text).toString("base64url");

  const read = async (item: Item): Promise<string | undefined> => {
    let all = "";
    for (const name of namesOf(item)) {
      const answer = await ask({ do: "read", item: name });
      if (answer.kind !== "text") return undefined;
      all += answer.text;
    }
    return Buffer.from(all, "base64url").toString("utf8");
  };

  const remove = async (item: Item): Promise<void> => {
    for (const name of namesOf(item)) {
      const answer = await ask({ do: "remove", item: name });
      if (answer.kind !== "unsure") continue;
      const left = await ask({ do: "read", item: name });
      if (left.kind !== "missing") throw unusable("it did not remove what it was told to remove");
    }
  };

  const write = async (item: Item, text: string): Promise<void> => {
    const all = encode(text);
    const chars = found?.chars ?? all.length;
    for (const [part, name] of namesOf(item).entries()) {
      await ask({ do: "write", item: name, label, text: all.slice(part * chars, (part + 1) * chars) });
    }
    if ((await read(item)) !== text) throw unusable("it gave back something else than was written");
  };

  /** A name for a text that is not written yet. */
  const itemFor = (text: string): Item => ({
    item: randomBytes(ID_BYTES).toString("hex"),
    parts: Math.ceil(encode(text).length / (found?.chars ?? Number.POSITIVE_INFINITY)) || 1,
  });

  return {
    itemFor,
    write,
    /** Undefined: the store does not have the text, or not all of it. */
    read,
    /** An item that is not there is no error. */
    remove,
    /** Whether the store takes a text and gives it back. It may ask its user to unlock it. */
    check: async (): Promise<void> => {
      const text = "a test, which is removed at once";
      const item = itemFor(text);
      await write(item, text);
      await remove(item);
    },
    /** Whether the program is there and answers. Nobody is asked anything. */
    probe: async (): Promise<void> => {
      await ask({ do: "read", item: randomBytes(ID_BYTES).toString("hex") });
    },
  };
}
