/** Owns: servers in this thread whose connections are fakes, opened and ended by the test. */

import type { WorkerEvent } from "../../../../../src/shared/protocol/contract.ts";
import {
  parseEntry,
  type ServerDefinition,
} from "../../../../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS, type Settings } from "../../../../../workers/connection/config/entry/settings.ts";
import type { Connection, ConnectOptions } from "../../../../../workers/connection/mcp/connection.ts";
import type { CallToolResult } from "../../../../../workers/connection/mcp/wire/wire.ts";
import { callTool } from "../../../../../workers/connection/servers/call.ts";
import { ProcessEnds } from "../../../../../workers/connection/servers/process-ends.ts";
import {
  type Connect,
  Server,
  type ServerContext,
} from "../../../../../workers/connection/servers/server.ts";
import { type CloseTimes, createGate } from "../../../../../workers/shared/pace/pace.ts";
import { recordingLog } from "../../recording-log.ts";

/** A definition of the user's own file. */
export function definitionOf(name: string, entry: object = {}): ServerDefinition {
  const source = { file: "/m.json", origin: "user" } as const;
  const { definition } = parseEntry(name, { command: "c", ...entry }, source);
  if (!definition) throw new Error(`the entry of ${name} is wrong`);
  return definition;
}

/** One request for a connection that a server made. */
export interface Opening {
  options: ConnectOptions;
  /** Opens it. `over`: what is special about the connection. */
  open(over?: Partial<Connection>): FakeConnection;
  fail(error: unknown): void;
}

export interface FakeConnection extends Connection {
  /** The times of each `close`. */
  readonly closes: CloseTimes[];
  /** The server ended the connection. */
  end(): void;
}

const said = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });

function fakeConnection(options: ConnectOptions, over: Partial<Connection>): FakeConnection {
  const closes: CloseTimes[] = [];
  return {
    transport: "stdio",
    pid: 7,
    protocol: { era: "legacy", version: "2025-11-25" },
    memory: () => undefined,
    isFromMemory: () => false,
    isStale: () => false,
    instructions: undefined,
    listTools: async () => [{ name: "work" }],
    listResources: async () => ({ resources: [], templates: [] }),
    listPrompts: async () => [],
    skills: undefined,
    listSkills: async () => undefined,
    getSkill: async () => undefined,
    readDirectory: async () => [],
    callTool: async ({ tool }) => said(tool),
    readResource: async ({ uri }) => said(uri),
    getPrompt: async ({ prompt }) => said(prompt),
    complete: async () => [],
    ping: async () => undefined,
    whyClosed: () => `${options.definition.name} exited with code 1.`,
    failure: () => undefined,
    ...over,
    close: async (times) => {
      closes.push(times);
      await over.close?.(times);
    },
    closes,
    end: () => options.onClosed(),
  };
}

/** A `connect` whose requests the test answers one by one. */
export function fakeConnect() {
  const openings: Opening[] = [];
  const connect: Connect = (options) => {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    options.signal.addEventListener("abort", () => reject(options.signal.reason), { once: true });
    openings.push({
      options,
      open: (over = {}) => {
        const connection = fakeConnection(options, over);
        resolve(connection);
        return connection;
      },
      fail: reject,
    });
    return promise;
  };
  const opening = (index: number): Opening => {
    const found = openings[index];
    if (!found) throw new Error(`no connection number ${index} was asked for`);
    return found;
  };
  return { connect, openings, opening };
}

/** Lets everything run that waits for nothing but promises. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
};

/** What a promise has come to: `yes`, the code of its error, or `waits` if it has not settled. `none`: for no promise. */
export async function outcomeOf(promise: Promise<unknown> | undefined, none: string): Promise<unknown> {
  if (!promise) return none;
  let found: unknown = "waits";
  promise.then(
    () => {
      found = "yes";
    },
    (error: { code: string }) => {
      found = error.code;
    },
  );
  await settle();
  return found;
}

export interface SetupOptions {
  settings?: Partial<Settings>;
  context?: Partial<ServerContext>;
}

export interface ServerSetup extends Omit<ReturnType<typeof fakeConnect>, "connect"> {
  server: Server;
  shared: ServerContext;
  lines: string[];
  events: WorkerEvent[];
  /** The phase at each report of a status. */
  states: string[];
  /** How often the server reported its tools. */
  lists(): number;
  call(tool?: string, signal?: AbortSignal): Promise<CallToolResult>;
  /** A call of which the test awaits the error. */
  failing(): Promise<{ error: Promise<unknown> }>;
  /** Connects the server for the user. */
  connected(over?: Partial<Connection>): Promise<FakeConnection>;
  /** Replaces the connection for the user. */
  reconnected(): Promise<void>;
}

/** The server `s` of that entry, not connected yet. */
export function setup(entry: object = {}, { settings = {}, context = {} }: SetupOptions = {}): ServerSetup {
  const { connect, openings, opening } = fakeConnect();
  const { log, lines } = recordingLog();
  const events: WorkerEvent[] = [];
  const states: string[] = [];
  let lists = 0;
  const shared: ServerContext = {
    cwd: "/cwd",
    npxCacheFile: "/npx",
    log,
    emit: (event) => events.push(event),
    gate: createGate(10),
    ends: new ProcessEnds(),
    approvals: { of: () => undefined },
    settings: () => ({ ...DEFAULT_SETTINGS, ...settings }),
    connect,
    onStatus: (one) => states.push(one.phase),
    onTools: () => lists++,
    ...context,
  };
  const server = new Server(definitionOf("s", entry), shared);
  const call: ServerSetup["call"] = (tool = "work", signal = new AbortController().signal) =>
    callTool(server, { callId: "1", tool, args: {}, signal, onProgress: () => undefined }).then(
      ({ result }) => result,
    );
  return {
    server,
    shared,
    openings,
    opening,
    lines,
    events,
    states,
    lists: () => lists,
    call,
    failing: async () => {
      const error = call().catch((failure: unknown) => failure);
      await settle();
      return { error };
    },
    reconnected: async () => {
      const promise = server.reconnect();
      await settle();
      opening(openings.length - 1).open();
      await promise;
    },
    connected: async (over: Partial<Connection> = {}): Promise<FakeConnection> => {
      const promise = server.connect("user");
      await settle();
      const connection = opening(openings.length - 1).open(over);
      await promise;
      return connection;
    },
  };
}
