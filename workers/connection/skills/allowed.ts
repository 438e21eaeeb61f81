/**
 * Owns: `<agentDir>/mcp-skills.json`, the skills that the user allowed for good, each bound to the content that the question
 * was about (SEP-2640, "Content-bound approval"): another content needs another yes. Mode 0600; one process at a time writes the
 * whole file; a corrupt file counts as empty and is kept aside.
 */
import * as z from "zod";
import type { LoadedSkill } from "../../../src/shared/protocol/calls.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ProjectDecision } from "../../../src/shared/protocol/person.ts";
import { keepAside, nodeFiles, sweepTemps, writeFileAtomic } from "../../shared/files/file-system.ts";
import { withLock } from "../../shared/files/lock.ts";
import { readRegularText, whyUnread } from "../../shared/files/read-regular.ts";
import type { Log } from "../../shared/log.ts";

const FILE_BYTES = 8 * 1024 * 1024;
const VERSION = 1;

const fileSchema = () =>
  z.object({
    version: z.literal(VERSION),
    skills: z.array(
      z.object({
        server: z.string(),
        uri: z.string(),
        name: z.string(),
        content: z.string().regex(/^[0-9a-f]{64}$/),
        at: z.number(),
      }),
    ),
  });

type Allowed = z.infer<ReturnType<typeof fileSchema>>["skills"][number];

/** Names the yes in the panel's list of decisions. */
const idOf = ({ server, uri }: Pick<Allowed, "server" | "uri">): string => `skill ${server} ${uri}`;

/** Undefined: the file is corrupt. Throws what the file system throws. */
async function load(file: string): Promise<Allowed[] | undefined> {
  const read = await readRegularText(file, FILE_BYTES);
  if (read.kind === "missing") return [];
  if (read.kind === "unreadable") throw read.error;
  if (read.kind === "irregular") throw new Error(whyUnread(read));
  if (read.kind === "too-large") return undefined;
  try {
    return fileSchema().safeParse(JSON.parse(read.text)).data?.skills;
  } catch {
    return undefined;
  }
}

export class AllowedSkills {
  readonly #file: string;
  readonly #log: Log;

  /** `file`: absolute. */
  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** Whether the user allowed just this content. Read each time, because another session may have asked. Does not reject. */
  async has({ server, uri, content }: LoadedSkill): Promise<boolean> {
    if (content === "") return false;
    return (await this.#known()).some(
      (one) => one.server === server && one.uri === uri && one.content === content,
    );
  }

  /** Throws what the file system throws. A yes to an older content of the skill ends. */
  add({ server, uri, name, content }: LoadedSkill): Promise<void> {
    return this.#write((known) =>
      [
        ...known.filter((one) => one.server !== server || one.uri !== uri),
        { server, uri, name, content, at: Date.now() },
      ].slice(-LIMITS.skillsAllowed),
    );
  }

  /** The newest first. Does not reject. */
  async decisions(): Promise<ProjectDecision[]> {
    const all = (await this.#known()).slice(-LIMITS.skillsAllowed).map(
      (one): ProjectDecision => ({
        id: idOf(one),
        server: one.server,
        skill: one.name,
        file: one.uri,
        decision: "allowed",
        decidedAt: one.at,
        here: true,
      }),
    );
    return all.sort((a, b) => b.decidedAt - a.decidedAt);
  }

  /** `id`: of `decisions`. Answers whether it is one of a skill. Throws what the file system throws. */
  async takeBack(id: string): Promise<boolean> {
    if (!(await this.#known()).some((one) => idOf(one) === id)) return false;
    await this.#write((known) => known.filter((one) => idOf(one) !== id));
    return true;
  }

  async #known(): Promise<Allowed[]> {
    const all = await load(this.#file).catch((error: unknown) => {
      this.#log.warn(`${this.#file} cannot be read: ${messageOf(error)}`);
      return [];
    });
    return all ?? [];
  }

  async #write(change: (known: Allowed[]) => Allowed[]): Promise<void> {
    const { target } = await nodeFiles.find(this.#file);
    await withLock(target, { files: nodeFiles }, async (holds) => {
      const known = await load(this.#file);
      const all = change(known ?? []);
      await writeFileAtomic(this.#file, `${JSON.stringify({ version: VERSION, skills: all }, null, 2)}\n`, {
        beforeReplace: async (file) => {
          // A process that was suspended for long has lost the lock, and the text that it read may be old.
          if (!(await holds())) throw new Error("another process has it now");
          if (known === undefined) await keepAside(file, nodeFiles, Date.now());
        },
      });
    });
    await sweepTemps(target, nodeFiles, Date.now());
  }
}
