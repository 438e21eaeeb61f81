/**
 * The hub: one process for all sessions of a user, which runs the servers that they share. Owns its socket, which process
 * serves which key, the pause after a server that ends at once, and its own end: when nobody uses it any more, when it is told
 * to, or when its folder is gone. It knows envelopes of messages only, and shows nothing to a model.
 */
import { createHash } from "node:crypto";
import { lstatSync, type Stats } from "node:fs";
import { chmod } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import type { ProcessRow } from "../../src/shared/process/strays.ts";
import { messageOf } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import type { SharedServer } from "../../src/shared/protocol/person.ts";
import { nodeFiles } from "../shared/files/file-system.ts";
import { withLock } from "../shared/files/lock.ts";
import { codeOf } from "../shared/files/read-regular.ts";
import {
  addressOf,
  ensureFolder,
  type HubPlace,
  type HubSecret,
  readSecret,
  writeSecret,
} from "../shared/hub/place.ts";
import type { Attach } from "../shared/hub/wire.ts";
import type { Log } from "../shared/log.ts";
import { settledWithin } from "../shared/pace/abort.ts";
import { createLineBudget, type Leave } from "../shared/pace/pace.ts";
import type { Launch } from "../shared/programs/processes.ts";
import { groupMemory, killStrays } from "../shared/programs/processes.ts";
import { createServersFile, endLeft, leftServers } from "./orphans.ts";
import type { Line } from "./routes.ts";
import { type Desk, Session } from "./session.ts";
import { SharedProcess } from "./shared-process.ts";

export interface HubTimes {
  /** After the last server and the last session. */
  endMs: number;
  lookMs: number;
}

interface HubOptions {
  place: HubPlace;
  log: Log;
  times?: HubTimes;
  /** The hub is over: nothing of it runs any more. */
  onEnd: () => void;
}

/** Sessions have this long to take the last that is sent to them. */
const LAST_WORDS_MS = 500;
/** Processes that end at once, by their keys. More are forgotten. */
const EARLY_ENDS = 500;

const variable = (name: string, value: string): string => JSON.stringify([name, value]);

/**
 * Which sessions may use one process: those that would start the very same program, in the same folder, with the same
 * environment, and offer it the same. Neither the server's name nor its configuration counts.
 */
export const keyOf = ({ launch, offer }: Pick<Attach, "launch" | "offer">): string =>
  createHash("sha256")
    .update(JSON.stringify([launch.program, launch.args, launch.cwd, offer]))
    .update(
      Object.entries(launch.env)
        .map(([name, value]) => variable(name, value))
        .sort()
        .join(),
    )
    .digest("hex");

/** What differs between two processes of one program: names, never values. */
export function differences(
  one: Pick<Attach, "launch" | "offer">,
  other: Pick<Attach, "launch" | "offer">,
): string[] {
  const names = new Set([...Object.keys(one.launch.env), ...Object.keys(other.launch.env)]);
  const variables = [...names].filter((name) => one.launch.env[name] !== other.launch.env[name]).sort();
  const differs = [];
  if (one.launch.cwd !== other.launch.cwd) differs.push("cwd");
  if (one.offer !== other.offer) differs.push("offered capabilities");
  return [...differs, ...variables];
}

const isSameProgram = (one: Launch, other: Launch): boolean =>
  one.program === other.program && JSON.stringify(one.args) === JSON.stringify(other.args);

/** Tells the folder and the socket of a hub from those of another hub at the same path; numbers of inodes come again. */
function madeAt({ folder, socket }: HubPlace): string {
  const of = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });
  const inFolder = process.platform === "win32" ? undefined : of(socket);
  return [of(folder)?.ino, inFolder?.ino, inFolder?.mtimeMs].join();
}

interface Running {
  key: string;
  offer: string;
  process: SharedProcess;
}

export class Hub implements Desk {
  readonly #options: HubOptions;
  readonly #times: HubTimes;
  readonly #server;
  readonly #file;
  readonly #since = Date.now();
  readonly #sessions = new Set<Session>();
  readonly #users = new Map<Session, Running>();
  /** For the end of the process before. */
  readonly #waiting = new Set<Session>();
  readonly #running = new Set<Running>();
  readonly #early = new Map<string, { ends: number; untilMs: number }>();
  #unproven = 0;
  /** What an earlier hub has left. */
  #left: readonly ProcessRow[] = [];
  /** See `madeAt`. Undefined until it listens. */
  #made: string | undefined;
  #secret: HubSecret | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#times = options.times ?? { endMs: LIMITS.hubEndMs, lookMs: LIMITS.hubLookMs };
    this.#file = createServersFile(options.place.servers, (note) => options.log.warn(note));
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.on("error", (error) => options.log.error(`the socket: ${messageOf(error)}`));
  }

  /** Throws if another hub listens, or the folder is not this user's alone. */
  async start(): Promise<void> {
    const { place, log } = this.#options;
    await ensureFolder(place);
    this.#secret = await readSecret(place);
    if (!this.#secret) throw new Error(`there is no ${place.secret}`);
    const left = await leftServers(place.servers);
    const listening = Promise.withResolvers<void>();
    this.#server.once("error", listening.reject);
    this.#server.listen(addressOf(place, this.#secret), () => listening.resolve());
    await listening.promise;
    if (process.platform !== "win32") await chmod(place.socket, 0o600);
    this.#made = madeAt(place);
    if (left.length > 0) log.info(`an earlier hub has left ${left.length} servers`);
    this.#left = left;
    this.#file.keep(left);
    void endLeft(left).then(() => this.#file.keep([]));
    this.#lookTimer = setInterval(() => this.#look(), this.#times.lookMs);
    this.#restIfUnused();
    log.info(`started as process ${process.pid}`);
  }

  /** Ends every server, then the hub. */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    clearTimeout(this.#endTimer);
    clearInterval(this.#lookTimer);
    const { log, onEnd } = this.#options;
    // First of all: whoever wants a hub from now on starts another one. libuv removes whatever lies at the socket's path
    // when it closes a socket: if that is another hub's, this one stays open until the process ends.
    const isInPlace = this.#isInPlace();
    if (isInPlace) this.#server.close();
    for (const { process: one } of this.#running) one.end();
    await Promise.all([...this.#running].map(({ process: one }) => one.ended));
    await killStrays(this.#left);
    await this.#file.remove().catch(() => undefined);
    if (isInPlace) await this.#leaveFolder();
    const sessions = [...this.#sessions];
    // Whoever used a server was told of its end. The others have asked for nothing that was done.
    for (const session of sessions) session.lose();
    await settledWithin(Promise.all(sessions.map(({ closed }) => closed)), LAST_WORDS_MS);
    log.info("ended");
    await log.flush();
    onEnd();
  }

  /** Leaves nothing behind, unless another hub is being started there or runs. */
  async #leaveFolder(): Promise<void> {
    const { place, log } = this.#options;
    try {
      await withLock(place.lock, { files: nodeFiles }, async () => {
        const isTaken = lstatSync(place.socket, { throwIfNoEntry: false }) !== undefined;
        if (!isTaken && process.platform !== "win32") await nodeFiles.remove(place.secret);
      });
      await nodeFiles.remove(place.folder);
    } catch (error) {
      log.info(`${place.folder} stays: ${messageOf(error)}`);
    }
  }

  attach(session: Session, wanted: Attach): void {
    const key = keyOf(wanted);
    const ofKey = [...this.#running].filter((one) => one.key === key).map(({ process: one }) => one);
    const ending = ofKey.filter(({ isEnding }) => isEnding);
    if (this.#isClosing || ending.length === 0 || ofKey.some(({ isRetired }) => !isRetired)) {
      this.#attachNow(session, wanted, key);
      return;
    }
    // The process before may hold a port or a lock until it has ended.
    this.#waiting.add(session);
    const ended = Promise.all(ending.map((one) => one.ended));
    void settledWithin(ended, LIMITS.closeKillMs).then(() => {
      if (this.#waiting.delete(session)) this.#attachNow(session, wanted, key);
    });
  }

  #attachNow(session: Session, wanted: Attach, key: string): void {
    const { log } = this.#options;
    if (this.#isClosing) {
      session.lose();
      return;
    }
    const known = [...this.#running].find((one) => one.key === key && !one.process.isRetired);
    const waitMs = known || wanted.isWanted ? 0 : (this.#early.get(key)?.untilMs ?? 0) - performance.now();
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1_000);
      session.refused(`it ended right after its last starts; it is started again in ${seconds} s`);
      return;
    }
    let running: Running;
    try {
      running = known ?? this.#start(key, wanted);
    } catch (error) {
      // What Node refuses without an event, such as arguments that are too long for the system (E2BIG).
      session.refused(messageOf(error), codeOf(error));
      return;
    }
    this.#users.set(session, running);
    running.process.attach(session);
    running.process.started.then(
      () => {
        const { pid, since, users } = running.process;
        if (pid === undefined || !users.includes(session)) return;
        session.tell({ is: "attached", pid, since, sessions: users.length });
      },
      () => undefined,
    );
    log.info(`${wanted.label}: session ${wanted.pid} uses process ${running.process.pid ?? "none"}`);
  }

  line(session: Session, line: Line): void {
    this.#users.get(session)?.process.take(session, line);
  }

  leave(session: Session, how: Leave): void {
    this.#waiting.delete(session);
    const running = this.#users.get(session);
    if (!running) return;
    this.#users.delete(session);
    running.process.leave(session, how);
  }

  list(session: Session): void {
    this.#listed().then(
      (servers) => session.tell({ is: "servers", pid: process.pid, since: this.#since, servers }),
      (error: unknown) => this.#options.log.error(`the list: ${messageOf(error)}`),
    );
  }

  stop(session: Session, label: string | undefined): void {
    const stopped = [...this.#running].filter(
      ({ process: one }) => label === undefined || one.labels.includes(label),
    );
    void Promise.all(stopped.map(({ process: one }) => one.ended)).then(() =>
      session.tell({ is: "stopped", servers: stopped.length }),
    );
    // At once: what started here while the others end would be ended as well.
    if (label === undefined) void this.close();
    else for (const { process: one } of stopped) one.end();
  }

  gone(session: Session): void {
    this.leave(session, "keep");
    this.#sessions.delete(session);
    this.#restIfUnused();
  }

  #start(key: string, { launch, offer, label }: Attach): Running {
    const { log } = this.#options;
    // A server can say odd things without end.
    const notes = createLineBudget(
      { lines: LIMITS.serverLogLines, chars: LIMITS.serverLogChars, windowMs: LIMITS.serverLogWindowMs },
      (count) => log.warn(`${label}: ${count} more notes are left out`),
    );
    const note = (text: string): void => notes.write(() => `${label}: ${text}`, log.warn);
    const running: Running = {
      key,
      offer,
      process: new SharedProcess({
        launch,
        onNote: note,
        onStart: () => {
          log.info(`${label}: process ${running.process.pid} started`);
          this.#writePids();
        },
        onGone: ({ livedMs, isBroken }) => {
          notes.close();
          log.info(`${label}: process ${running.process.pid ?? "none"} ended`);
          this.#running.delete(running);
          for (const [session, used] of this.#users) if (used === running) this.#users.delete(session);
          this.#countEnd(key, isBroken && livedMs < LIMITS.hubEarlyMs);
          this.#writePids();
          this.#restIfUnused();
        },
      }),
    };
    this.#running.add(running);
    clearTimeout(this.#endTimer);
    return running;
  }

  /** After a server that has worked, each session decides for itself when to start it again. */
  #countEnd(key: string, isEarly: boolean): void {
    const before = this.#early.get(key)?.ends ?? 0;
    this.#early.delete(key);
    if (!isEarly) return;
    // A server may end at a request of another era, or be killed, and is started again at once.
    const pauseMs =
      before === 0 ? 0 : Math.min(LIMITS.hubPauseMs * 2 ** (before - 1), LIMITS.hubLongestPauseMs);
    this.#early.set(key, { ends: before + 1, untilMs: performance.now() + pauseMs });
    const [oldest] = this.#early.keys();
    if (this.#early.size > EARLY_ENDS && oldest !== undefined) this.#early.delete(oldest);
  }

  #writePids(): void {
    if (!this.#isClosing) this.#file.set([...this.#running].flatMap(({ process: one }) => one.pid ?? []));
  }

  async #listed(): Promise<SharedServer[]> {
    const all = [...this.#running].filter(({ process: one }) => one.pid !== undefined);
    const pids = all.map(({ process: one }) => one.pid ?? 0);
    // It is only shown, and without the list nobody could stop the hub.
    const memory = await groupMemory(pids).catch(() => new Map<number, number>());
    return all.map(({ process: one, offer }) => {
      const others = all.filter(
        (other) => other.process !== one && isSameProgram(other.process.launch, one.launch),
      );
      const differs = others.flatMap((other) =>
        differences({ launch: one.launch, offer }, { launch: other.process.launch, offer: other.offer }),
      );
      return {
        labels: one.labels,
        pid: one.pid ?? 0,
        since: one.since,
        sessions: one.users.map(({ pid }) => pid),
        memory: memory.get(one.pid ?? 0),
        differs: [...new Set(differs)],
        isRetired: one.isRetired,
      };
    });
  }

  #accept(socket: Socket): void {
    if (this.#unproven >= LIMITS.hubUnproven || !this.#secret || this.#isClosing) {
      socket.destroy();
      return;
    }
    this.#unproven++;
    clearTimeout(this.#endTimer);
    const session = new Session(socket, this);
    session
      .prove(this.#secret.key)
      .finally(() => {
        this.#unproven--;
      })
      .then(
        () => {
          this.#sessions.add(session);
          return session.serve();
        },
        () => {
          this.#options.log.warn("refused a connection that did not prove that it is of this user");
          this.#restIfUnused();
        },
      )
      .catch((error: unknown) => this.#options.log.error(`a session: ${messageOf(error)}`));
  }

  #restIfUnused(): void {
    clearTimeout(this.#endTimer);
    if (this.#isClosing || this.#sessions.size > 0 || this.#running.size > 0) return;
    this.#endTimer = setTimeout(() => void this.close(), this.#times.endMs);
  }

  /** Whether sessions still find this hub. */
  #isInPlace(): boolean {
    try {
      return this.#made === undefined || madeAt(this.#options.place) === this.#made;
    } catch {
      // A folder that cannot be looked at, as on a disk that is ill, is not known to be gone.
      return true;
    }
  }

  #look(): void {
    if (this.#isClosing) return;
    if (this.#isInPlace()) {
      this.#keepFiles().catch((error: unknown) => this.#options.log.error(messageOf(error)));
      return;
    }
    this.#options.log.warn("its folder is gone");
    void this.close();
  }

  /**
   * Whoever clears up temp folders may take what is read only when a session or a hub begins. Without the secret nobody finds
   * the hub, and without the list the next hub would not find the servers of this one.
   */
  async #keepFiles(): Promise<void> {
    const { place } = this.#options;
    const isGone = (path: string): boolean => !lstatSync(path, { throwIfNoEntry: false });
    if (this.#running.size > 0 && isGone(place.servers)) this.#writePids();
    if (this.#secret && isGone(place.secret)) await writeSecret(place, this.#secret);
  }
}
