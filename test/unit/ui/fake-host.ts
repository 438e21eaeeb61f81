/** Owns: a session as `/mcp` sees it, whose worker gives the answers of a test. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { trySearch } from "../../../src/session/late.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { createMcpTool } from "../../../src/tools/definition.ts";
import type { McpHost } from "../../../src/ui/mcp-host.ts";
import { makeCatalog } from "../make-catalog.ts";

/** The worker's answers; a request without an answer here must not be made. */
export type Answers = Readonly<Record<string, (params: never, signal?: AbortSignal) => unknown>>;

export interface FakeHost {
  host: McpHost;
  /** Requests in order, with their parameters. */
  asked: [method: string, params: unknown][];
  /** Tells an event of the worker, or the session's end. */
  tell: (event: Partial<WorkerEvent> | undefined) => void;
  listeners: () => number;
}

export function fakeHost(answers: Answers, rest: Partial<McpHost> = {}): FakeHost {
  const asked: FakeHost["asked"] = [];
  const listeners = new Set<Parameters<McpHost["onChange"]>[0]>();
  const answer = async (method: string, params: unknown, signal?: AbortSignal): Promise<unknown> => {
    asked.push([method, params]);
    const given = answers[method];
    if (!given) throw new Error(`${method} was asked`);
    return given(params as never, signal);
  };
  const catalog = makeCatalog([]);
  const host: McpHost = {
    ask: answer as McpHost["ask"],
    askConsents: async () => void asked.push(["askConsents", {}]),
    signIn: async (server) => {
      asked.push(["signIn", server]);
      await answers.signIn?.(server as never);
    },
    catalog: () => catalog,
    servers: () => [],
    search: async (query, limit) => trySearch(host.catalog(), query, limit),
    makeTool: createMcpTool,
    declared: () => [],
    surroundings: () => ({
      agentDir: join(tmpdir(), `pmt-command-${process.pid}`),
      otherClients: ["/ext/other.ts"],
      crashes: { count: 1, last: "exit code 9" },
    }),
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ...rest,
  };
  const tell: FakeHost["tell"] = (event) => {
    for (const listener of [...listeners]) listener(event as WorkerEvent | undefined);
  };
  return { host, asked, tell, listeners: () => listeners.size };
}
