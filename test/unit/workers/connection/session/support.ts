/** Owns: an open session on real files in a temp folder; its connections and its cache worker are fakes. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import type { SessionFacts } from "../../../../../src/shared/protocol/session.ts";
import type { CacheWorker } from "../../../../../workers/connection/catalog/cache-worker.ts";
import { openSession, type Session } from "../../../../../workers/connection/session/session.ts";
import type { CacheEntry, PublishTask, StoreTask } from "../../../../../workers/shared/tasks.ts";
import { onCleanup } from "../../../../support/cleanup.ts";
import { type Asked, type RecordingUser, recordingUser } from "../../../../support/recording-user.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";
import { fakeConnect, type Opening } from "../servers/support.ts";

export interface OpenOptions {
  /** What the cache file knows. */
  entries?: Record<string, CacheEntry>;
  /** Settles when the cache answers. */
  cacheRead?: () => Promise<unknown>;
  /** The project's `.mcp.json`. */
  project?: Record<string, object>;
  settings?: object;
  facts?: Partial<SessionFacts>;
  /** Whether the cache worker can publish this; without it, anything. */
  publish?: (task: PublishTask) => boolean;
  /** Stands for a fault in whatever an event leads to. */
  emit?: (event: WorkerEvent) => void;
}

type EventOf<T extends WorkerEvent["type"]> = Extract<WorkerEvent, { type: T }>;

export interface OpenedSession {
  session: Session;
  events: WorkerEvent[];
  user: RecordingUser;
  /** The question with this number, from 0, past or to come. */
  question(number?: number): Promise<Asked>;
  lines: string[];
  stored: StoreTask[];
  published: PublishTask[];
  /** How often the thread of the cache worker was started ahead of its work. */
  warmed(): number;
  openings: readonly Opening[];
  /** The newest request of that server for a connection, past or to come. */
  opening(server: string): Promise<Opening>;
  /** The first event of that type at or behind index `since`, past or to come. */
  event<T extends WorkerEvent["type"]>(type: T, since?: number): Promise<EventOf<T>>;
  /** Writes the user's servers as `/mcp edit` does; settles when they are applied. */
  edit(servers: Record<string, object>, settings?: object): Promise<void>;
  /** Writes them as an editor outside Pi does; not waited for. */
  write(servers: Record<string, object>, settings?: object): Promise<void>;
  /** The types of events since then, without statuses of servers. */
  types(since?: number): string[];
}

/** An abort signal that never fires. */
export const never = (): AbortSignal => new AbortController().signal;

const textOf = (servers: Record<string, object>, settings: object = {}): string =>
  JSON.stringify({
    mcpServers: Object.fromEntries(
      Object.entries(servers).map(([name, entry]) => [name, { command: "c", ...entry }]),
    ),
    settings,
  });

function fakeCache({ entries = {}, cacheRead, publish: canPublish = () => true }: OpenOptions) {
  const stored: StoreTask[] = [];
  const published: PublishTask[] = [];
  let warmed = 0;
  const cache: CacheWorker = {
    warm: () => {
      warmed++;
    },
    hashDefinitions: async (definitions) => definitions.map((definition) => JSON.stringify(definition)),
    readCache: async ({ definitions }) => {
      await cacheRead?.();
      const found = Object.entries(entries).filter(([name]) => Object.hasOwn(definitions, name));
      const used = found.map(([name, { configHash }]) => [name, configHash]);
      return { entries: Object.fromEntries(found), used: Object.fromEntries(used) };
    },
    storeEntries: async (task) => {
      stored.push(task);
      return true;
    },
    publish: async (task) => {
      published.push(task);
      if (!canPublish(task)) return undefined;
      const snapshot = new Uint8Array(1);
      const checksum = published.length;
      return { checksum, snapshot, problems: [], notices: [], repairs: [], threadId: 1 };
    },
    keepSnapshot: async () => undefined,
    close: async () => undefined,
  };
  return { cache, stored, published, warmed: () => warmed };
}

/** A session with these servers of the user; not waited for. */
export async function openWith(
  servers: Record<string, object>,
  options: OpenOptions = {},
): Promise<OpenedSession> {
  const { project, settings, facts = {}, emit } = options;
  const folder = await tempFolder();
  const [agentDir, cwd] = [join(folder, "agent"), join(folder, "project")];
  await mkdir(agentDir);
  await mkdir(cwd);
  await writeFile(join(agentDir, "mcp.json"), textOf(servers, settings));
  if (project) await writeFile(join(cwd, ".mcp.json"), textOf(project));
  const { log, lines } = recordingLog();
  const user = recordingUser(() => look());
  const events: WorkerEvent[] = [];
  const watchers = new Set<() => void>();
  const look = (): void => {
    for (const watcher of watchers) watcher();
  };
  const { connect, openings } = fakeConnect();
  const { cache, stored, published, warmed } = fakeCache(options);
  const session = openSession(
    {
      agentDir,
      cwd,
      projectTrusted: true,
      configPath: undefined,
      registered: [],
      canAsk: true,
      snapshotChecksum: undefined,
      ...facts,
    },
    {
      emit: (event) => {
        emit?.(event);
        events.push(event);
        look();
      },
      askUser: user.ask,
      log,
      cache,
      talkers: { of: () => () => undefined },
      connect: (options) => {
        const connection = connect(options);
        look();
        return connection;
      },
    },
  );
  onCleanup(() => session.close());
  const when = <T>(check: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const watcher = (): void => {
        const found = check();
        if (found === undefined) return;
        watchers.delete(watcher);
        resolve(found);
      };
      watchers.add(watcher);
      watcher();
    });
  return {
    session,
    events,
    user,
    question: (since = 0) => when(() => user.asked[since]),
    lines,
    stored,
    published,
    warmed,
    openings,
    opening: (server) => when(() => openings.findLast((one) => one.options.definition.name === server)),
    event: <T extends WorkerEvent["type"]>(type: T, since = 0) =>
      when(() => events.slice(since).find((event): event is EventOf<T> => event.type === type)),
    edit: async (next, settings) => {
      const { text: before } = await session.requests.readConfig({ project: false }, never());
      const text = textOf(next, settings);
      await session.requests.writeConfig({ project: false, before, text }, never());
    },
    write: (next, settings) => writeFile(join(agentDir, "mcp.json"), textOf(next, settings)),
    types: (since = 0) =>
      events
        .slice(since)
        .map(({ type }) => type)
        .filter((type) => type !== "server"),
  };
}
