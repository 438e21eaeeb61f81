/**
 * The requests that an open session answers, each as `(params, signal)` like the contract of main and worker
 * (ConnectionMethods), so that rpc.ts hands them on by name. Each waits until the first plan is carried out, and
 * rejects with the error of a start that failed. To add a request: a line in ConnectionMethods, its answer here.
 */
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import type { Approvals } from "../approval/approval.ts";
import type { SessionAsks } from "../asks/asks.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { createDiagnose } from "../doctor/doctor.ts";
import type { Results } from "../results/results.ts";
import { unknownTool } from "../servers/status.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import type { AllowedSkills } from "../skills/allowed.ts";
import { allTools } from "../tools/listed.ts";
import { createPromptRequests, createResourceRequests, runCall } from "./calls.ts";
import { statusReport } from "./carry-out.ts";
import { declaredSchema, declaredTool, explainAbsent, explainMissing } from "./explain-server.ts";
import type { SessionRequests } from "./first-request.ts";
import { createPanelRequests } from "./panel.ts";
import { createSetupRequests } from "./setup.ts";
import type { SignInRequests } from "./sign-ins.ts";
import type { UserEdits } from "./user-edits.ts";

export interface SessionParts {
  /** Settles when the first plan is carried out. */
  started: Promise<RunningConfiguration>;
  /** The first plan has been carried out: settles before `started`, or rejects as that does. */
  callable: Promise<unknown>;
  supervisor: Supervisor;
  catalog: Pick<CatalogPublisher, "flush" | "retry" | "inspect">;
  results: Results;
  signIns: SignInRequests;
  approvals: Pick<Approvals, "turnEnded" | "forgetSkills">;
  allowedSkills: AllowedSkills;
  asks: SessionAsks;
  edits: Promise<UserEdits>;
  emit: (event: WorkerEvent) => void;
  agentDir: string;
  cwd: string;
}

export function createSessionRequests(parts: SessionParts): Omit<SessionRequests, "firstRequest"> {
  const { started, callable, supervisor, catalog, results, signIns, approvals, asks, edits, emit } = parts;
  const { allowedSkills } = parts;
  const afterStart = async (act: (running: RunningConfiguration) => unknown): Promise<undefined> => {
    await act(await started);
    return undefined;
  };

  return {
    settleTools: async ({ timeoutMs, ...which }, signal) => {
      await started;
      const endsAt = performance.now() + timeoutMs;
      await settledWithin(supervisor.connectSignedIn(which.servers), timeoutMs);
      const left = { ...which, timeoutMs: Math.max(0, endsAt - performance.now()) };
      const pending = await supervisor.settleTools(left, signal);
      await catalog.flush();
      return pending;
    },
    callTool: async (params, signal) => {
      await callable;
      return runCall(params, { supervisor, emit, signal, results });
    },
    explainMissing: async ({ name }) => {
      await started;
      return explainMissing(name, supervisor);
    },
    reconnect: ({ server }) =>
      afterStart(async ({ state }) => {
        const isThere = server === undefined || supervisor.servers.some(({ name }) => name === server);
        const absent = isThere ? undefined : explainAbsent(server, state);
        if (absent) throw absent;
        catalog.retry(server);
        await supervisor.reconnect(server);
        await catalog.flush();
      }),
    turnEnded: () => {
      asks.turnEnded();
      approvals.turnEnded();
      return afterStart(() => supervisor.reconnectDropped());
    },
    answerConsent: ({ hash, allow }) =>
      afterStart((running) => running.answer(hash, allow ? "allowed" : "refused")),
    askAgain: () => afterStart((running) => running.askAgain()),
    applyHeld: ({ id, apply }) => afterStart((running) => running.applyHeld(id, apply)),
    setRegistered: ({ servers }) => afterStart((running) => running.register(servers)),
    setEnabled: async (params) => (await edits).setEnabled(params),
    captureStats: async () => (await edits).captureStats(),
    decisions: async () => [...(await started).decisions, ...(await allowedSkills.decisions())],
    takeBack: ({ id }) =>
      afterStart(async (running) => {
        if (await allowedSkills.takeBack(id)) approvals.forgetSkills();
        else await running.takeBack(id);
      }),
    readConfig: async (params) => (await edits).readConfig(params),
    writeConfig: async (params) => (await edits).writeConfig(params),
    stats: async () => {
      await started;
      return results.statsReport();
    },
    declaredSchema: async ({ server, tool }) => {
      await started;
      return declaredSchema(supervisor.get(server), tool);
    },
    declaredTool: async ({ server, tool }) => {
      await started;
      return declaredTool(supervisor.get(server), tool);
    },
    toolForm: async ({ server, tool }) => {
      await started;
      const { toolForm } = await import("../asks/tool-form.ts");
      const called = supervisor.get(server);
      const found = allTools(called).find(({ name }) => name === tool);
      if (!found) throw unknownTool(server, tool);
      return toolForm(found.inputSchema, called.redact);
    },
    ...signIns,
    ...createPanelRequests(parts),
    ...createSetupRequests({ started, supervisor, emit }),
    ...createPromptRequests({ started, supervisor, results }),
    ...createResourceRequests({ started, supervisor, results }),
    diagnose: createDiagnose(parts),
    hub: async (params) => (await import("../hub/ask.ts")).answerHub(parts.agentDir, params),
    status: async () => statusReport(supervisor, (await started).state),
  };
}
