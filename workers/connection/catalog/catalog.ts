/**
 * Keeps main's catalog current: has the cache worker build the snapshot of all tools, sends the snapshot to main, and has
 * the cache worker store what servers listed. Owns: what main has been sent, and which servers are left out. A server
 * whose tools cannot be published is left out and reported, and the others do not wait for it again. Must not: let a
 * snapshot wait for a file, which may lie on a slow disk or be locked by another process.
 */
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import type { Log } from "../../shared/log.ts";
import type { PublishResult, PublishTask } from "../../shared/tasks.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/server.ts";
import type { CacheWorker } from "./cache-worker.ts";
import { EntryStore, LeftOutServers, leftOutPath } from "./kept.ts";
import { type CatalogFacts, catalogFacts, leftOutNotice, lineNotice, ServerNotices } from "./notices.ts";
import {
  asNext,
  type CatalogSource,
  isNothing,
  offersNewPrompts,
  PublishLoop,
  type PublishTimes,
  publishApart,
  publishTask,
  publishTimes,
  removedSince,
  withoutToolsOf,
} from "./publish.ts";

export interface CatalogOptions {
  /** Absolute path of the metadata cache. */
  cachePath: string;
  /**
   * Absolute path of the snapshot of this working directory. Asked when it is needed: its name is a hash, and Node's
   * crypto need not load at each start.
   */
  snapshotPath: () => string;
  /** Checksum of the snapshot that main has from the start; undefined if main has none. */
  knownChecksum: number | undefined;
  servers: () => readonly Server[];
  settings: () => Settings;
  /** Files that the configuration was read from. */
  configFiles: () => readonly string[];
  hashOf: (server: string) => string;
  cache: CacheWorker;
  log: Log;
  emit: (event: WorkerEvent) => void;
  /** The snapshot's file holds all servers as they are now. Must not reject. */
  onKept?: (checksum: number) => Promise<void>;
  times?: PublishTimes;
}

export class CatalogPublisher {
  readonly #options: CatalogOptions;
  readonly #times: PublishTimes;
  readonly #lifetime = new AbortController();
  readonly #store: EntryStore;
  readonly #loop: PublishLoop;
  readonly #leftOut: LeftOutServers;
  readonly #notices: ServerNotices;
  #checksum: number | undefined;
  #published: PublishTask | undefined;
  /** Checksum of the last snapshot that was kept for the next session with more than main has. */
  #keptMore: number | undefined;
  /** Main has only a part of the last publication, because some of it was withdrawn. */
  #isPartial = false;
  /** A server has listed something that no publication has taken yet. The store may have taken it already. */
  #isNewer = false;
  /** Settles when the snapshots so far are in their file, or could not be written. */
  #keeping: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: CatalogOptions) {
    const { cache, cachePath, snapshotPath, hashOf, servers, log, emit } = options;
    this.#options = options;
    this.#times = options.times ?? publishTimes();
    this.#checksum = options.knownChecksum;
    this.#keptMore = options.knownChecksum;
    this.#store = new EntryStore(cache, cachePath, { hashOf, servers });
    this.#loop = new PublishLoop(async () => {
      const isWhole = await this.#publish();
      if (this.#leavesOutKnown) await this.#keepMore();
      const checksum = isWhole ? this.#checksum : undefined;
      if (checksum !== undefined) this.#keeping = this.#keeping.then(() => options.onKept?.(checksum));
    });
    this.#leftOut = new LeftOutServers(() => leftOutPath(snapshotPath()), hashOf, log);
    const show = (text: string): void => emit({ type: "notice", text, level: "warning" });
    this.#notices = new ServerNotices(log, show);
  }

  /** Checksum of the snapshot that main was sent last, or has had from the start. */
  get checksum(): number | undefined {
    return this.#checksum;
  }

  /** Hashes of stored entries whose use is to be written down, by server. */
  noteUsed(hashes: Record<string, string>): void {
    this.#store.noteUsed(hashes);
  }

  /** `server` listed its tools. Without a server: the set of servers or their rules may have changed. */
  changed(server?: Server): void {
    if (this.#stopped) return;
    if (server) {
      this.#store.add(server);
      this.#isNewer = true;
    }
    this.#loop.request();
  }

  /**
   * Sends removals at once if removals are the only change, because they need no new index. False: main's catalog is
   * still out of date.
   */
  withdraw(): boolean {
    // A publication that runs would bring back what is gone, until the next one.
    if (!this.#published || this.#loop.isRunning || this.#isPartial || this.#stopped) return false;
    const removed = removedSince(this.#published, this.#task());
    if (!removed || isNothing(removed)) return removed !== undefined;
    this.#isPartial = true;
    this.#options.emit({ type: "removed", ...removed });
    return true;
  }

  /** Settles when every change so far is published, or could not be; it may not be stored yet. */
  flush(): Promise<void> {
    return this.#loop.flush();
  }

  /**
   * What there is to say about the tools of all servers now. Nothing is sent. Undefined if the catalog cannot be made
   * before `signal` fires.
   */
  async inspect(signal: AbortSignal): Promise<CatalogFacts | undefined> {
    await this.#leftOut.load();
    const { cache, servers } = this.#options;
    const names = servers().map(({ name }) => name);
    const task = this.#task();
    const result = await cache.publish(task, { limitMs: this.#times.wholeMs, signal });
    return (
      result &&
      catalogFacts(
        task,
        result,
        names.filter((name) => this.#leftOut.has(name)),
      )
    );
  }

  /** The user asks for a server, or for all: a server that was left out is tried again. */
  retry(server: string | undefined): void {
    if (!this.#stopped && this.#leftOut.forget(server)) this.#loop.request();
  }

  /** The session ends: what was listed and not stored yet is stored, but no longer sent. */
  async finish(): Promise<void> {
    this.#stopped = true;
    const end = setTimeout(() => this.#lifetime.abort(), this.#times.finishMs);
    await this.#loop.finish(this.#isNewer);
    clearTimeout(end);
    await this.#leftOut.saved();
    await this.#keeping;
    await this.#store.finish();
  }

  /** Whether the next session, which may have a person, is to know more than this one, in which nobody can be asked. */
  get #leavesOutKnown(): boolean {
    return this.#options.servers().some(({ withLeftOut }) => withLeftOut);
  }

  /** The current catalog, without the tools of servers that are left out. */
  #task(as: (server: Server) => CatalogSource = (server) => server): PublishTask {
    const { servers, settings, configFiles } = this.#options;
    const enabled = servers().filter((server) => server.definition.enabled);
    const leftOut = enabled.map(({ name }) => name).filter((name) => this.#leftOut.has(name));
    return withoutToolsOf(publishTask(enabled.map(as), settings(), configFiles()), new Set(leftOut));
  }

  /** Answers whether main has every tool of every server now. */
  async #publish(): Promise<boolean> {
    await this.#leftOut.load();
    const task = this.#task();
    this.#isNewer = false;
    this.#store.store();
    for (const { name } of task.servers)
      if (this.#leftOut.has(name)) this.#notices.notify(leftOutNotice(name));
    const isKept = !this.#leavesOutKnown;
    const isWhole = isKept && !task.servers.some(({ name }) => this.#leftOut.has(name));
    if (this.#isPublished(task)) return isWhole;
    // A snapshot that main has only a part of is sent again, whatever its checksum.
    const known = this.#isPartial ? undefined : this.#checksum;
    const { snapshotPath, cache } = this.#options;
    const stored = known === undefined ? {} : { stored: { path: snapshotPath(), checksum: known } };
    const { signal } = this.#lifetime;
    const { result, leftOut } = await publishApart({ ...task, ...stored }, cache, this.#times, signal);
    for (const server of leftOut) {
      this.#leftOut.add(server);
      this.#notices.notify(leftOutNotice(server));
    }
    if (!result) return false;
    const hasNewPrompts = offersNewPrompts(this.#published, task);
    this.#published = withoutToolsOf(task, new Set(leftOut));
    this.#isPartial = false;
    this.#checksum = result.checksum;
    this.#send(result, { isNew: result.checksum !== known, hasNewPrompts, isKept });
    return isWhole && leftOut.length === 0;
  }

  /** Has a snapshot kept for the next start that has more tools than main's, unless the file holds it. */
  async #keepMore(): Promise<void> {
    const { cache, snapshotPath } = this.#options;
    const path = snapshotPath();
    const task = this.#task(asNext);
    const stored = this.#keptMore === undefined ? {} : { stored: { path, checksum: this.#keptMore } };
    const limits = { limitMs: this.#times.wholeMs, signal: this.#lifetime.signal };
    const result = await cache.publish({ ...task, ...stored }, limits);
    if (!result?.snapshot) return;
    const { snapshot, checksum } = result;
    this.#keptMore = checksum;
    this.#keeping = this.#keeping.then(() => cache.keepSnapshot({ path, snapshot, isNew: true }));
  }

  /** Whether main has this catalog already, as after an edit of a timeout. Found without building an index. */
  #isPublished(task: PublishTask): boolean {
    if (!this.#published || this.#isPartial) return false;
    const removed = removedSince(this.#published, task);
    return removed !== undefined && isNothing(removed);
  }

  /** Has the snapshot kept for the next start if it may be, and sends it to main if it is new to main. */
  #send(
    { snapshot, repairs, notices }: PublishResult,
    { isNew, hasNewPrompts, isKept }: { isNew: boolean; hasNewPrompts: boolean; isKept: boolean },
  ): void {
    const { snapshotPath, cache, emit } = this.#options;
    if (isKept) {
      // The bytes themselves are transferred to main, so the file gets a copy.
      const kept = { path: snapshotPath(), isNew, ...(snapshot ? { snapshot: snapshot.slice() } : {}) };
      this.#keeping = this.#keeping.then(() => cache.keepSnapshot(kept));
    }
    const isSent = snapshot !== undefined && isNew && !this.#stopped;
    for (const line of repairs) this.#notices.notify(lineNotice(line, false));
    // At a start whose catalog equals the last session's, the user has seen these notices: they go to the log only.
    for (const line of notices) this.#notices.notify(lineNotice(line, isSent));
    if (isSent) emit({ type: "catalog", snapshot, ...(hasNewPrompts ? { prompts: true } : {}) });
  }
}
