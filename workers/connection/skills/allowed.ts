/**
 * Owns: `<agentDir>/mcp-skills.json`, the skills that the user allowed for good, each bound to the content that the question
 * was about (SEP-2640, "Content-bound approval"): another content needs another yes.
 */
import * as z from "zod";
import type { LoadedSkill } from "../../../src/shared/protocol/calls.ts";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ProjectDecision } from "../../../src/shared/protocol/person.ts";
import { changeAnswers, readAnswers } from "../../shared/files/answers.ts";
import type { Log } from "../../shared/log.ts";

const VERSION = 1 as const;

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
    try {
      const found = await readAnswers(this.#file, fileSchema);
      return (found.state === "usable" && found.value?.skills) || [];
    } catch (error) {
      this.#log.warn(`${this.#file} cannot be read: ${messageOf(error)}`);
      return [];
    }
  }

  async #write(change: (known: Allowed[]) => Allowed[]): Promise<void> {
    await changeAnswers(this.#file, fileSchema, (found) => ({
      version: VERSION,
      skills: change((found.state === "usable" && found.value?.skills) || []),
    }));
  }
}
