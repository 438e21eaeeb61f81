/** What each event of the worker does to a session on the main thread. One handler per session. */
import type { CatalogStore } from "../catalog/store.ts";
import type { PiContext } from "../pi/api.ts";
import { guardStale, notify } from "../pi/extension.ts";
import { refusedLine } from "../report/server-name.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";
import { messageOf } from "../shared/protocol/errors.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { describeProblem } from "../shared/text/failure.ts";
import type { Registrar } from "../tools/registrar.ts";
import type { Dialogs } from "../ui/dialogs/dialogs.ts";
import { createConfigNotices, createStatusLine } from "../ui/notices.ts";
import type { SignIns } from "../ui/sign-in/sign-in.ts";
import { withdrawAbsent } from "./first-request.ts";
import { type Running, type SessionState, serversOf, type WhileRunning } from "./running.ts";

export interface EventTargets {
  ctx: PiContext;
  state: WhileRunning<SessionState & Pick<Running, "called" | "known">>;
  store: CatalogStore;
  registrar: Registrar;
  dialogs: Dialogs;
  signIns: Pick<SignIns, "isRunning" | "ended">;
  /** Tells the person, while the session runs. Does not throw. */
  failed: (text: string) => void;
  /** Called with each new plan, after the state holds it. */
  onPlanned: () => void;
  /** The catalog has prompts that it did not have. */
  onPrompts: () => void;
  onProgress: (event: Extract<WorkerEvent, { type: "progress" }>) => void;
}

/** What a change of a server's status does: the line below the editor, and a notice if the person must know. */
function createServerEvents(
  targets: Pick<EventTargets, "ctx" | "state" | "signIns" | "failed">,
  statusLine: ReturnType<typeof createStatusLine>,
) {
  const { ctx, signIns } = targets;
  const load = async () => {
    const { createGathering, createHealthNotices } = await import("../ui/health-notices.ts");
    const gathering = createGathering(
      ({ text, level }) => {
        // Shown later than its event, perhaps after the session: Pi refuses then, and nobody reads it.
        guardStale(
          () => {
            if (targets.state()) notify(ctx, text, level);
          },
          () => undefined,
        );
      },
      // Without a UI each notice is a line on stderr, and the process may end at any time.
      ctx.hasUI,
    );
    return { health: createHealthNotices(), gathering };
  };
  let loaded: ReturnType<typeof load> | undefined;
  return (state: NonNullable<ReturnType<EventTargets["state"]>>, status: ServerStatus): void => {
    const { name } = status;
    state.statuses.set(name, status);
    statusLine.show(serversOf(state));
    const surroundings = {
      isCalled: state.called.has(name),
      isSigningIn: signIns.isRunning(name),
      known: state.known.get(name),
    };
    if (status.state === "connected") state.known.delete(name);
    const isBusy = serversOf(state).some((server) => server.state === "connecting");
    loaded ??= load();
    loaded
      .then(({ health, gathering }) => gathering.add(name, health.onStatus(status, surroundings), isBusy))
      .catch((error: unknown) => targets.failed(`MCP: ${messageOf(error)}`));
  };
}

export function createEventHandler(targets: EventTargets): (event: WorkerEvent) => void {
  const { ctx, store, registrar, dialogs, signIns } = targets;
  const statusLine = createStatusLine(ctx);
  const onServer = createServerEvents(targets, statusLine);
  const configNotices = createConfigNotices(ctx);

  const followCatalog = (state: SessionState): void => {
    const wantsDirect = serversOf(state).some(({ name, direct }) => registrar.concernsDirect(name, direct));
    registrar.follow(store.current, wantsDirect);
    // The catalog may be one that was made before the plan.
    withdrawAbsent(registrar, state);
  };

  const onPlanned = (state: SessionState, report: Extract<WorkerEvent, { type: "planned" }>): void => {
    state.settings = report.settings;
    state.accepted = report.accepted;
    state.statuses = new Map(report.servers.map((status) => [status.name, status]));
    // A server that the plan before lacked may be back, with the same tools: then no catalog follows.
    followCatalog(state);
    targets.onPlanned();
    state.planned.resolve();
    configNotices.show([...report.problems.map(describeProblem), ...report.refused.map(refusedLine)]);
    statusLine.show(report.servers);
    dialogs.consents(report.questions);
  };

  return (event) => {
    const state = targets.state();
    if (!state) return;
    switch (event.type) {
      case "progress":
        targets.onProgress(event);
        break;
      case "catalog":
        store.replace(event.snapshot);
        if (event.prompts) targets.onPrompts();
        followCatalog(state);
        break;
      case "removed":
        store.leaveOut(event);
        followCatalog(state);
        break;
      case "planned":
        onPlanned(state, event);
        break;
      case "notice":
        notify(ctx, event.level === "error" ? `MCP: ${event.text}` : event.text, event.level);
        break;
      case "trying":
        statusLine.show(serversOf(state), event);
        break;
      case "sign-in":
        signIns.ended(event);
        break;
      case "held":
        dialogs.held(event.id, event.text);
        break;
      case "unopened":
        dialogs.unopened(event);
        break;
      case "server":
        onServer(state, event.status);
        break;
    }
  };
}
