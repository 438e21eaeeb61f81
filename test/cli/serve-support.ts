/** Owns: agents for `pi-mcp-threads serve`: the SDK's client over stdio, and one that writes its lines itself, as other agents do. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  type ClientCapabilities,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { onCleanup } from "../support/cleanup.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI } from "./support.ts";

export interface Agent {
  client: Client;
  pid: number;
  /** Settles with the next `list_changed`. */
  listChanged(): Promise<void>;
  /** Names of its tools. */
  names(): Promise<string[]>;
  /** Texts of the answer, joined. */
  call(name: string, args?: Record<string, unknown>): Promise<{ text: string; isError: boolean }>;
  stderr(): string;
}

/** `answer`: shows questions; without it the client has no such capability. */
export async function sdkAgent(
  home: PiHome,
  args: readonly string[] = [],
  answer?: (asked: ElicitRequest["params"]) => ElicitResult | Promise<ElicitResult>,
): Promise<Agent> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [CLI, "serve", ...args],
    cwd: home.cwd,
    env: home.env(),
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => {
    stderr += String(chunk);
  });
  const capabilities: ClientCapabilities = answer ? { elicitation: { form: {}, url: {} } } : {};
  const client = new Client({ name: "agent", version: "1" }, { capabilities });
  if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
  let changed = Promise.withResolvers<void>();
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changed.resolve();
    changed = Promise.withResolvers();
  });
  await client.connect(transport);
  onCleanup(() => client.close());
  return {
    client,
    pid: transport.pid ?? 0,
    listChanged: () => changed.promise,
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, given = {}) => {
      const { content, isError } = await client.callTool({ name, arguments: given });
      const blocks = content as { text?: string }[];
      return { text: blocks.map(({ text = "" }) => text).join("\n"), isError: isError === true };
    },
    stderr: () => stderr,
  };
}

interface Message {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string };
}

export interface RawAgent {
  child: ChildProcess;
  /** Sends a request and settles with its answer. `params` as they stand. */
  ask(method: string, params?: Record<string, unknown>): Promise<Message>;
  /** Sends a request without waiting. Answers its id. */
  begin(method: string, params?: Record<string, unknown>): number;
  answerOf(id: number | string): Promise<Message>;
  send(message: Message): void;
  /** Settles with the first notification or request of this method that has come or comes, but for the request `not`. */
  told(method: string, not?: number | string): Promise<Message>;
  /** Every line, as it came. */
  lines: string[];
}

/** Speaks over stdio by itself, one line for each message. */
export function rawAgent(
  home: PiHome,
  args: readonly string[] = [],
  env: Record<string, string | undefined> = {},
): RawAgent {
  const child = spawn(process.execPath, [CLI, "serve", ...args], {
    cwd: home.cwd,
    env: home.env(env),
    stdio: ["pipe", "pipe", "ignore"],
  });
  onCleanup(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const lines: string[] = [];
  const seen: Message[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    seen.push(JSON.parse(line) as Message);
    for (const look of waiting) look();
  });
  const find = (fits: (message: Message) => boolean): Promise<Message> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = seen.find(fits);
        if (!found) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  const send = (message: Message): void => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  };
  let id = 0;
  const begin = (method: string, params?: Record<string, unknown>): number => {
    id++;
    send({ id, method, ...(params ? { params } : {}) });
    return id;
  };
  const answerOf = (wanted: number | string) => find((one) => one.id === wanted && one.method === undefined);
  return {
    child,
    lines,
    send,
    begin,
    answerOf,
    ask: (method, params) => answerOf(begin(method, params)),
    told: (method, not) => find((one) => one.method === method && (not === undefined || one.id !== not)),
  };
}

/** As an agent of 2025-11-25 begins. */
export async function greet(agent: RawAgent, capabilities: object = {}): Promise<Message> {
  const answer = await agent.ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities,
    clientInfo: { name: "agent", version: "1" },
  });
  agent.send({ method: "notifications/initialized" });
  return answer;
}

/** What each request of 2026-07-28 has. */
export const modern = (params: Record<string, unknown> = {}, capabilities: object = {}) => ({
  ...params,
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    "io.modelcontextprotocol/clientInfo": { name: "agent", version: "1" },
  },
});
