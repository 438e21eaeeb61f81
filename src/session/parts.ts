/** Makes the parts of a session that live as long as the factory's instance, and joins them to each other. */

import { type CatalogStore, createCatalogStore } from "../catalog/store.ts";
import type { Pi } from "../pi/api.ts";
import type { Runtime } from "../runtime/contract.ts";
import { PROXY_TOOL, TOOL_SEARCH } from "../shared/naming.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { SnapshotKey } from "../shared/snapshot/contract.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { createLoadedSkills } from "../skills/skills.ts";
import { directRule } from "../tools/book.ts";
import type { ToolHost } from "../tools/host.ts";
import { createLateTools } from "../tools/late-tools.ts";
import { createRegistrar, type Registrar } from "../tools/registrar.ts";
import type { Instructions } from "../tools/told.ts";
import { createInstructions, createSearchTools, type SearchTools } from "../tools/tools.ts";
import { screens } from "../ui/command/command.ts";
import type { McpHost } from "../ui/mcp-host.ts";
import { createPromptCommands } from "../ui/prompts/prompts.ts";
import { createResourceMentions } from "../ui/resources/resources.ts";
import { createSessionCalls, type SessionCalls } from "./calls.ts";
import { createFirstRequest, isLearning } from "./first-request.ts";
import {
  askedPlanWithin,
  type Running,
  type SessionWaits,
  serversOf,
  type WhileRunning,
  within,
} from "./running.ts";

interface ToolHostOptions {
  store: Pick<CatalogStore, "current">;
  registrar: Pick<Registrar, "activate" | "provide">;
  calls: Pick<SessionCalls, "forModel">;
  instructions: Pick<Instructions, "tell">;
  running: WhileRunning;
  /** Throws `runtime_stopped` after the session's end. */
  runningOrThrow: () => Running;
  waits: Pick<SessionWaits, "searchWaitMs">;
}

function createToolHost(options: ToolHostOptions): ToolHost {
  const { store, registrar, calls, instructions, running, runningOrThrow, waits } = options;
  /** A call is near: a worker that is not needed yet starts behind the search. */
  const wake = (): void => void setImmediate(() => running()?.runtime.post("ping", {}));
  return {
    settle: async (signal, servers) => {
      const { runtime, settings, statuses } = runningOrThrow();
      wake();
      // What is known needs no answer of the worker. Before the first plan nothing is, nor after an edit that it has not read, nor
      // whether the user has signed in in another session.
      if (
        settings &&
        !(await runtime.isBehind()) &&
        ![...statuses.values()].some(
          (server) =>
            (!servers || servers.includes(server.name)) &&
            (server.state === "needs-auth" || isLearning(server, store.current)),
        )
      )
        return [];
      return runtime.settleTools({ timeoutMs: waits.searchWaitMs, ...(servers ? { servers } : {}) }, signal);
    },
    catalog: store.current,
    servers: () => serversOf(running()),
    activate: (tools) => {
      wake();
      return registrar.activate(tools);
    },
    provide: registrar.provide,
    forModel: calls.forModel,
    tell: instructions.tell,
    connect: async (server, signal) => {
      await runningOrThrow().runtime.ask("reconnect", { server }, signal);
    },
    matchTools: async (params) => runningOrThrow().runtime.ask("matchTools", params),
    log: (message) => running()?.runtime.log("info", message),
    // Without a worker the reason stays unknown; the call that asks for it has failed already.
    whyMissing: async (name) =>
      within(
        running()
          ?.runtime.ask("explainMissing", { name })
          .catch(() => undefined),
        LIMITS.rpcShortMs,
      ),
  };
}

interface SessionSnapshotKey {
  current(): SnapshotKey;
  /** For `session_start`: withdraws a project's tools that the factory registered and this session must not have. */
  correct(actual: SnapshotKey, projectTrusted: boolean): void;
}

interface SnapshotKeyOptions {
  /** The factory's guess. */
  key: SnapshotKey;
  store: Pick<CatalogStore, "open" | "clear" | "current">;
  registrar: Pick<Registrar, "withdrawAll">;
  searchTools: Pick<SearchTools, "declare">;
}

const textOf = ({ cwd, configFile, only, off }: SnapshotKey): string =>
  JSON.stringify([cwd, configFile, only, off]);

function createSnapshotKey(options: SnapshotKeyOptions): SessionSnapshotKey {
  const { store, registrar, searchTools } = options;
  let { key } = options;
  return {
    current: () => key,
    correct: (actual, projectTrusted) => {
      const isOther = textOf(actual) !== textOf(key);
      if (!isOther && (projectTrusted || !store.current().servers.some(({ project }) => project))) return;
      key = actual;
      registrar.withdrawAll(({ server }) => server.project);
      if (isOther && projectTrusted) store.open(key);
      else store.clear();
      searchTools.declare(store.current());
    },
  };
}

interface PartsOptions {
  agentDir: string;
  /** The factory's guess. */
  key: SnapshotKey;
  waits: SessionWaits;
  running: WhileRunning;
  /** Throws `runtime_stopped` when no session runs. */
  runningOrThrow: () => Running;
  onChange: McpHost["onChange"];
}

export function createParts(
  pi: Pi,
  { agentDir, key, waits, running, runningOrThrow, onChange }: PartsOptions,
) {
  const store = createCatalogStore(agentDir, key);
  const direct = directRule(process.env.MCP_DIRECT_TOOLS);
  const instructions = createInstructions(store.current);
  const skills = createLoadedSkills({
    pi,
    catalog: store.current,
    agentDir,
    ownTool: (name) => registrar.known(name, store.current()),
    judge: async (...about) => (await screens()).judge(...about),
    inTurn: (task) => runningOrThrow().dialogs.inTurn(task),
    log: (message) => running()?.runtime.log("info", message),
  });
  const calls = createSessionCalls(runningOrThrow, { instructions, skills });
  const tell = (text: string): void => {
    const session = running();
    session?.runtime.log("warn", text);
    session?.warn(text);
  };
  const registrar = createRegistrar(pi, {
    call: calls.call,
    direct,
    onTooMany: (server) =>
      running()?.runtime.log(
        "warn",
        `${server}: ${LIMITS.goneTools} of its tools are gone, its new direct ones are left to searches`,
      ),
    onTaken: ({ server, tool, name: wanted }, name) =>
      tell(
        `MCP tool ${oneLine(tool, 200)} of ${server.name} is called ${name}: another extension has a tool ${wanted}.`,
      ),
  });
  const host = createToolHost({ store, registrar, calls, instructions, running, runningOrThrow, waits });
  const searchTools = createSearchTools(pi, host);
  const snapshotKey = createSnapshotKey({ key, store, registrar, searchTools });
  const shared = { store, registrar, searchTools, running };
  const ask: Runtime["ask"] = async (method, params) => runningOrThrow().runtime.ask(method, params);
  const prompts = createPromptCommands({
    pi,
    ask,
    catalog: store.current,
    onChange,
    settle: () => host.settle(undefined),
    onSkill: skills.sending,
  });
  const resources = createResourceMentions({
    ask,
    servers: () => [
      ...new Set([...serversOf(running()), ...store.current().servers].map(({ name }) => name)),
    ],
    planned: () => askedPlanWithin(running, waits.searchWaitMs),
  });
  return {
    ...shared,
    skills,
    prompts,
    resources,
    calls,
    instructions,
    snapshotKey,
    unknownCallHost: {
      ...host,
      withdrawn: registrar.withdrawn,
      searchTool: searchTools.name,
      tell,
    },
    firstRequest: createFirstRequest(pi, { ...shared, agentDir, key: snapshotKey.current, direct, waits }),
    lateTools: createLateTools(pi, {
      registrar,
      catalog: store.current,
      ownTools: [TOOL_SEARCH, PROXY_TOOL],
      // Before the first plan no server is known.
      isLearning: () => {
        const servers = serversOf(running());
        return servers.length === 0 || servers.some((server) => isLearning(server, store.current));
      },
      settle: () => host.settle(undefined),
      isOver: () => running() === undefined,
    }),
  };
}
