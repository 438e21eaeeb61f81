/**
 * The yes that a call may need. Owns: which calls of a session wait for the user, the questions to main, and the tools that
 * may run and the skills that may be loaded until the session ends. A tool whose server wants a yes for each call
 * (shared/signs.ts) is asked about each time, unless a rule denies it. The yes for one call holds for its repetition after a
 * sign-in, since it did not run before. Must not: call a tool, or write a file. What the words
 * and rules of `approve` mean: config/entry/exposure.ts. A call that needs no yes costs two comparisons.
 */
import type { LoadedSkill } from "../../../src/shared/protocol/calls.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { withoutHalfAtEnd } from "../../../src/shared/text/unprintable.ts";
import { advice } from "../../shared/commands.ts";
import { canonical, sameJson } from "../../shared/json.ts";
import type { CachedTool } from "../../shared/listed.ts";
import type { Log } from "../../shared/log.ts";
import { asksEachTime } from "../../shared/signs.ts";
import { type CachedSkill, contentOf, loadedSkill, pathIn } from "../../shared/skills.ts";
import type { AskUser } from "../asks/asks.ts";
import { isProject, obeysUsersFile, type ServerDefinition } from "../config/entry/definition.ts";
import { asksNothing, canBeAllowed, type JudgedTool, verdictOn } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import { escaped, shown } from "../config/entry/shown-text.ts";
import type { AllowedSkills } from "../skills/allowed.ts";

/** What a yes is about: the tool as the server described it, on the server as it was defined. */
interface ToolOfServer {
  definition: ServerDefinition;
  tool: CachedTool;
  /** Of the call; absent: what is judged is no call. */
  args?: Record<string, unknown>;
}

/** What a yes to a skill is about: the skill as the server told it now. */
interface SkillOfServer extends ToolOfServer {
  skill?: CachedSkill | undefined;
}

/** A call before it is sent. */
export interface AskedCall extends ToolOfServer {
  callId: string;
  args: Record<string, unknown>;
  signal: AbortSignal;
  /** The call loads a skill. `byPerson`: a person has asked for it, whose word is the yes. */
  loads?: { of: CachedSkill; byPerson: boolean } | undefined;
}

/** The yes for one call. */
export interface Yes {
  /** Throws `not_approved` if the call is no longer what the yes was about: time has passed since the question. */
  check(now: SkillOfServer): void;
  /** The server refused the call before it ran, for want of a sign-in: the yes holds for the repetition after it. */
  keep?(): void;
}

export interface ApprovalOptions {
  /** Whether a person can be asked. */
  canAsk: boolean;
  /** Several clients answer, so that no question waits for the answer to another one. Absent: one is asked at a time. */
  sideBySide?: boolean;
  /** The definitions that hold now. A server that was replaced still finishes its calls. */
  definitions: () => readonly ServerDefinition[];
  /** Names of all tools that the server lists. */
  toolsOf: (server: string) => readonly string[];
  /** The settings that hold now. */
  settings: () => Pick<Settings, "approve" | "toolPrefix">;
  askUser: AskUser;
  /** Writes the rule of an "always", whose call does not wait for that. */
  allowAlways: (subject: ToolOfServer) => void;
  /** The skills that the user allowed for good. */
  allowedSkills: Pick<AllowedSkills, "has" | "add">;
  /** Tells the user what could not be kept. */
  warn: (text: string) => void;
  log: Log;
}

/** Another description, other hints or another program need another yes. */
const sameTool = (a: ToolOfServer, b: ToolOfServer): boolean =>
  a.definition.name === b.definition.name &&
  sameJson(a.definition.target, b.definition.target) &&
  (a.tool === b.tool || sameJson(a.tool, b.tool));

/** Names of the user's own servers, also of those that a project's servers stand for. */
const usersServers = (definitions: readonly ServerDefinition[]): string[] =>
  definitions.flatMap(({ name, origin, replaced }) =>
    isProject(origin) ? usersServers(replaced ? [replaced] : []) : [name],
  );

const keyOf = ({ definition, tool }: ToolOfServer): string => JSON.stringify([definition.name, tool.name]);

export class Approvals {
  readonly #options: ApprovalOptions;
  #waiting = 0;
  /** Settles when the question before has an answer. One is asked at a time: its answer may count for the others. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The tools that may run until the session ends. Kept in memory only. */
  readonly #granted = new Map<string, ToolOfServer>();
  /** The servers of which all calls may run until then, as they were defined. */
  readonly #grantedServers = new Map<string, ServerDefinition>();
  /** By id: calls that have a yes and did not run, until they are repeated or the turn ends. */
  readonly #kept = new Map<string, { call: AskedCall; yes: Yes }>();
  /** The same for skills: the identity of each, and the content that may be loaded. */
  readonly #grantedSkills = new Map<string, string>();

  constructor(options: ApprovalOptions) {
    this.#options = options;
  }

  /**
   * Undefined: the call may be sent. Otherwise the call waits for the yes. Throws `not_approved`; the promise rejects with
   * `not_approved` or `cancelled`.
   */
  of(call: AskedCall): Promise<Yes> | undefined {
    const verdict = this.#verdictOn(call);
    if (verdict === "deny") throw denied(call);
    // What a skill does is asked when it is loaded; to read its files is no act of its own.
    if (call.loads) return this.#ofSkill(call, call.loads);
    const isEach = verdict === "each";
    if (verdict === "allow" || (!isEach && this.#isGranted(call))) return undefined;
    const kept = this.#takeKept(call);
    if (kept) return Promise.resolve(kept);
    // Other extensions of Pi may answer where no person can, but for a server or a rule that wants the person.
    if (!this.#options.canAsk && isEach) throw unasked(call);
    this.#checkRoom(call);
    return this.#ask(call, () => this.#decide(call, isEach));
  }

  /** The person has taken a yes to a skill back. */
  forgetSkills(): void {
    this.#grantedSkills.clear();
  }

  /** Nothing is repeated any more, and a later call may have the same id. */
  turnEnded(): void {
    this.#kept.clear();
  }

  #keep(call: AskedCall, yes: Yes): void {
    this.#kept.set(call.callId, { call, yes });
    for (const oldest of this.#kept.keys())
      if (this.#kept.size > LIMITS.approvalsOpen) this.#kept.delete(oldest);
  }

  /** Gives the yes once. A call that has become another one is asked about. */
  #takeKept(call: AskedCall): Yes | undefined {
    const kept = this.#kept.get(call.callId);
    this.#kept.delete(call.callId);
    return kept && sameTool(kept.call, call) && sameJson(kept.call.args, call.args) ? kept.yes : undefined;
  }

  #checkRoom(call: AskedCall): void {
    if (call.signal.aborted) throw cancelled(call);
    if (this.#waiting < LIMITS.approvalsOpen) return;
    const why = `${LIMITS.approvalsOpen} other calls wait for the user's yes`;
    throw notApproved(call, why, "Call it again when they have been answered.");
  }

  #ofSkill(
    call: AskedCall,
    { of: skill, byPerson }: NonNullable<AskedCall["loads"]>,
  ): Promise<Yes> | undefined {
    const { definition } = call;
    if (definition.skillPolicy.use === "allow" || this.#isGrantedSkill(definition, skill)) return undefined;
    const grant = (): Yes => {
      this.#grantedSkills.set(skillKey(definition, skill), contentOf(skill));
      // It lasts until the session ends.
      return { check: (now) => this.#checkSkill(call, skill, now) };
    };
    if (byPerson) {
      grant();
      return undefined;
    }
    return this.#askForSkill(call, skill, grant);
  }

  #isGrantedSkill(definition: ServerDefinition, skill: CachedSkill): boolean {
    return this.#grantedSkills.get(skillKey(definition, skill)) === contentOf(skill);
  }

  async #askForSkill(call: AskedCall, skill: CachedSkill, grant: () => Yes): Promise<Yes> {
    const { canAsk, allowedSkills } = this.#options;
    const { definition } = call;
    const loaded = loadedSkill(definition.name, skill);
    if (await allowedSkills.has(loaded)) return grant();
    if (!canAsk) {
      const why = `the user has not allowed this skill, and ${advice("noOne")}`;
      throw notApproved(
        call,
        why,
        `Only the user can: in a session with a person, or by "skills": "allow" of ${definition.name} in ${definition.file}.`,
      );
    }
    this.#checkRoom(call);
    return this.#ask(call, () => this.#decideSkill(call, skill, { loaded, grant }));
  }

  async #decideSkill(
    { callId, definition, tool, signal }: AskedCall,
    skill: CachedSkill,
    { loaded, grant }: { loaded: LoadedSkill; grant: () => Yes },
  ): Promise<Yes> {
    const { askUser, allowedSkills, log, warn } = this.#options;
    if (signal.aborted) throw cancelled({ definition, tool });
    if (this.#isGrantedSkill(definition, skill)) return grant();
    const canAlways = loaded.content !== "";
    const question = { about: "skill", callId, ...loaded, ...shownSkill(skill), canAlways } as const;
    const answer = (await askUser(question, signal)) ?? "no";
    if (signal.aborted) throw cancelled({ definition, tool });
    log.info(`the user's answer to the skill ${definition.name}/${tool.name}: ${answer}`);
    if (answer !== "session" && answer !== "always") {
      throw notApproved(
        { definition, tool },
        "the user said no",
        "Do not load it again unless the user asks for that.",
      );
    }
    if (answer === "always" && canAlways) {
      await allowedSkills.add(loaded).catch((error: unknown) => {
        warn(
          `The skill ${loaded.name} of ${loaded.server} is allowed for this session only: ${messageOf(error)}`,
        );
      });
    }
    return grant();
  }

  #checkSkill(call: AskedCall, asked: CachedSkill, now: SkillOfServer): void {
    if (this.#verdictOn(now) === "deny" || now.definition.skillPolicy.use === false) throw denied(call);
    // A server that was removed or replaced meanwhile still answers for a moment.
    const isCurrent = this.#options.definitions().includes(now.definition);
    const isSame = now.skill?.uri === asked.uri && contentOf(now.skill) === contentOf(asked);
    if (isCurrent && isSame && sameJson(call.definition.target, now.definition.target)) return;
    const why = "the skill or its server changed while the user was asked";
    throw notApproved(call, why, "Load it again; the user is then asked about it as it is now.");
  }

  #isGranted(one: ToolOfServer): boolean {
    const server = this.#grantedServers.get(one.definition.name);
    if (server && sameJson(server.target, one.definition.target)) return true;
    const granted = this.#granted.get(keyOf(one));
    return granted !== undefined && sameTool(granted, one);
  }

  #judged({ definition, tool, args = {} }: ToolOfServer): JudgedTool {
    const { definitions, settings } = this.#options;
    return {
      server: definition.name,
      tool: tool.name,
      prefix: definition.toolPrefix ?? settings().toolPrefix,
      annotations: tool.annotations,
      args,
      inputSchema: tool.inputSchema,
      ...(isProject(definition.origin) && { usersServers: usersServers(definitions()) }),
    };
  }

  #verdictOn(one: ToolOfServer) {
    const { approve } = this.#options.settings();
    const verdict = asksNothing(one.definition, approve)
      ? "allow"
      : verdictOn(this.#judged(one), one.definition, approve);
    return verdict !== "deny" && asksEachTime(one.tool) ? "each" : verdict;
  }

  async #ask(call: AskedCall, decide: () => Promise<Yes>): Promise<Yes> {
    const isFree = this.#waiting++ === 0 || this.#options.sideBySide === true;
    const decided = isFree ? decide() : this.#turn.then(decide);
    this.#turn = decided.catch(() => undefined);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(cancelled(call));
    call.signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([decided, aborted]);
    } finally {
      this.#waiting--;
      call.signal.removeEventListener("abort", onAbort);
    }
  }

  /** `onceOnly`: no answer may last. */
  async #decide(call: AskedCall, onceOnly: boolean): Promise<Yes> {
    const { askUser, allowAlways, canAsk, settings, toolsOf, log } = this.#options;
    const { callId, definition, tool, args, signal } = call;
    const subject: ToolOfServer = { definition, tool };
    const yes: Yes = {
      check: (now) => this.#check(subject, { ...now, args }),
      keep: () => this.#keep(call, yes),
    };
    if (signal.aborted) throw cancelled(call);
    // By the answer to a question before this one.
    if (!onceOnly && this.#isGranted(call)) return yes;
    const canAlways =
      !onceOnly &&
      obeysUsersFile(definition) &&
      canBeAllowed(this.#judged(call), definition, settings().approve, toolsOf(definition.name));
    const [server, name] = [shownName(definition.name), shownName(tool.name)];
    const about = {
      about: "call",
      callId,
      server,
      tool: name,
      args: shownArguments(args),
      canAlways,
      call: { server: definition.name, tool: tool.name, args },
    } as const;
    const question = onceOnly ? { ...about, onceOnly } : about;
    const answered = await askUser(question, signal);
    if (signal.aborted) throw cancelled(call);
    if (answered === "nobody" || (answered === undefined && !canAsk)) throw unasked(call);
    const answer = answered ?? "no";
    // Main has logged the verdict of other extensions.
    if (answer === "extension-allows") return yes;
    if (answer === "extension-denies") {
      throw notApproved(
        call,
        "another extension of Pi denied it",
        "Do not call it again unless the user asks for that.",
      );
    }
    log.info(`the user's answer to ${definition.name}/${tool.name}: ${answer}`);
    const lasts = answer === "session" || answer === "always";
    if (!lasts && answer !== "once" && answer !== "server") {
      throw notApproved(call, "the user said no", "Do not call it again unless the user asks for that.");
    }
    if (lasts && !onceOnly) this.#granted.set(keyOf(call), subject);
    if (answer === "server" && !onceOnly) this.#grantedServers.set(definition.name, definition);
    if (answer === "always" && canAlways) allowAlways(subject);
    return yes;
  }

  #check(before: ToolOfServer, now: ToolOfServer): void {
    if (this.#verdictOn(now) === "deny") throw denied(now);
    const isCurrent = this.#options.definitions().includes(now.definition);
    if (isCurrent && sameTool(before, now)) return;
    const why = "the server or the configuration changed while the user was asked";
    throw notApproved(now, why, "Call it again; the user is then asked about it as it is now.");
  }
}

/** Another program under the same name needs another yes: content that nobody can check binds none. */
const skillKey = ({ name, target }: ServerDefinition, { uri }: CachedSkill): string =>
  canonical([name, target, uri]);

const SETTING = "approve";

/** `why`: without its full stop. */
const notApproved = (
  { definition: { name }, tool }: ToolOfServer,
  why: string,
  remedy: string,
): ThreadsError =>
  new ThreadsError("not_approved", `${name}/${tool.name} was not called: ${why}.`, {
    remedy,
    data: { server: name },
  });

/** Names the words and rules that decided. */
const usersRemedy = ({ definition: { name, file, overrides } }: ToolOfServer): string =>
  `Only the user can change that: ${SETTING} of ${name} in ${[file, ...overrides].join(" or ")}, or ${SETTING} of the settings.`;

/** No one can be asked. */
function unasked(one: ToolOfServer): ThreadsError {
  const mode = advice("noOne");
  return asksEachTime(one.tool)
    ? notApproved(
        one,
        `its server wants the user's yes for each call, and ${mode}`,
        "It runs where a person can answer.",
      )
    : notApproved(one, `"${SETTING}" needs the user's yes, and ${mode}`, usersRemedy(one));
}

const denied = (one: ToolOfServer): ThreadsError =>
  notApproved(one, `a rule of "${SETTING}" denies it`, usersRemedy(one));

const cancelled = ({ definition: { name }, tool }: ToolOfServer): ThreadsError =>
  new ThreadsError("cancelled", `${name}/${tool.name} was cancelled.`, { data: { server: name } });

const NAME_CHARS = 200;
/** An argument gets no less than this, also beside many others. */
const FEWEST_CHARS = 200;
/** The usual name of an argument, and what says that its value is cut. */
const BESIDE_CHARS = 250;
const LAST_LINE_CHARS = 100;

const count = (chars: number): string => chars.toLocaleString("en");

/** A name of a server, a tool or an argument. */
export const shownName = (name: string): string =>
  name.length <= NAME_CHARS ? shown(name) : `${shown(start(name, NAME_CHARS))}…`;

const start = (text: string, chars: number): string => withoutHalfAtEnd(text.slice(0, chars));

/** JSON in at most so many characters, and how long it is if that is not all of it. */
function shownValue(value: unknown, chars: number): string {
  const json = JSON.stringify(value) ?? "nothing";
  const text = escaped(start(json, chars));
  if (json.length <= chars && text.length <= chars) return text;
  return `${start(text, chars)}… (cut, ${count(json.length)} characters in all)`;
}

/**
 * The arguments of a call as the question shows them: one on each line, in which nothing can pass for another line or for
 * other letters. A long argument is cut, so that it cannot push another one out of the question. At most
 * `LIMITS.approvalChars` characters, the line that counts what is left out included.
 */
export function shownArguments(args: Record<string, unknown>): string {
  const entries = Object.entries(args);
  const room = LIMITS.approvalChars - LAST_LINE_CHARS;
  const each = Math.max(FEWEST_CHARS, Math.floor(room / Math.max(entries.length, 1)) - BESIDE_CHARS);
  const lines: string[] = [];
  let left = room;
  for (const [at, [name, value]] of entries.entries()) {
    const line = `${shownName(name)}: ${shownValue(value, each)}`;
    left -= line.length + 1;
    if (left < 0)
      return [...lines, `and ${count(entries.length - at)} more arguments, which are not shown`].join("\n");
    lines.push(line);
  }
  return lines.join("\n");
}

/** Files that the question about a skill names, and the characters of its description there. */
const FILES_SHOWN = 100;
const DESCRIPTION_CHARS = 1_000;

/** What the question about a skill shows of it: nothing in it can pass for another line or for other letters. */
function shownSkill(skill: CachedSkill): { name: string; description: string; files: string } {
  const { resources } = skill;
  const files = resources === "dynamic" ? [] : resources;
  const lines = files
    .slice(0, FILES_SHOWN)
    .map(({ uri, size }) => `${shownName(pathIn(skill, uri) ?? uri)}  ${count(size)} bytes`);
  if (files.length > lines.length) lines.push(`and ${count(files.length - lines.length)} more files`);
  return {
    name: shownName(skill.name),
    description: escaped(start(skill.description, DESCRIPTION_CHARS)),
    files:
      resources === "dynamic"
        ? "The server makes its files anew each time: nobody can check them."
        : lines.join("\n"),
  };
}
