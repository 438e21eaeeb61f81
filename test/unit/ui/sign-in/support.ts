/** Owns: the sign-ins of a session on a Pi in memory, with a worker that answers as the test says. */
import type { Runtime } from "../../../../src/runtime/contract.ts";
import type { SignInResult, SignInStep, StatusReport } from "../../../../src/shared/protocol/session.ts";
import { createDialogs } from "../../../../src/ui/dialogs/dialogs.ts";
import { createSignIns, type SignIns } from "../../../../src/ui/sign-in/sign-in.ts";
import { tickLines } from "../../../../src/ui/ticks.ts";
import {
  createRecordingContext,
  type RecordingContext,
  type RecordingOptions,
} from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";

export const URL_OF_PAGE = "https://auth.example.com/authorize?client_id=abc&state=xyz";

export const OPEN: Extract<SignInStep, { step: "open" }> = {
  step: "open",
  id: "1",
  url: URL_OF_PAGE,
  codeGoesTo: "as.example",
  redirectUri: "http://127.0.0.1:5000/callback",
  browser: "started",
  listens: true,
  endsInMs: 300_000,
};

export const CODE: Extract<SignInStep, { step: "device" }> = {
  step: "device",
  id: "1",
  url: "https://as.example/device",
  userCode: "WDJB-MJHT",
  urlWithCode: "https://as.example/device?user_code=WDJB-MJHT",
  codeFrom: "as.example",
  endsInMs: 300_000,
};

export const NEEDING: StatusReport = makeReport({
  servers: [
    makeStatus("linear", { state: "needs-auth", signIn: { state: "needed" } }),
    makeStatus("files"),
    makeStatus("keyed", { state: "needs-auth" }),
  ],
});

/** The worker's answers; a request without an answer here fails. */
export type WorkerAnswers = Partial<Record<string, (params: never) => unknown>>;

export interface Signing extends RecordingContext {
  signIns: SignIns;
  /** Requests in order: method and parameters. The status is left out. */
  asked: [method: string, params: unknown][];
  logged: string[];
  /** Tells the end of the sign-in `id`. */
  end(result: SignInResult, id?: string): void;
  /** Ends the session. */
  stop(): void;
}

export interface SigningOptions extends RecordingOptions {
  answers?: WorkerAnswers;
  graceMs?: number;
}

export function signing(options: SigningOptions = {}): Signing {
  const recording = createRecordingContext(options);
  const { ctx, notices } = recording;
  const asked: Signing["asked"] = [];
  const logged: string[] = [];
  let isOver = false;
  const answers: WorkerAnswers = { status: () => NEEDING, cancelSignIn: () => undefined, ...options.answers };
  const ask = async (method: string, params: unknown): Promise<unknown> => {
    if (method !== "status") asked.push([method, params]);
    const answer = answers[method];
    if (!answer) throw new Error(`${method} was not expected`);
    return answer(params as never);
  };
  const over = (): boolean => isOver;
  const failed = (text: string): void => void (isOver || notices.push([text, "error"]));
  const dialogs = createDialogs(ctx, {
    tick: tickLines,
    skill: async () => "no" as const,
    consent: async () => undefined,
    applyHeld: async () => undefined,
    over,
    failed: (error) => failed(String(error)),
  });
  const signIns = createSignIns(ctx, {
    ask: ask as Runtime["ask"],
    inTurn: dialogs.inTurn,
    log: (message) => void logged.push(message),
    over,
    failed,
    ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
  });
  return {
    ...recording,
    signIns,
    asked,
    logged,
    end: (result, id = "1") => signIns.ended({ type: "sign-in", id, server: "linear", result }),
    stop: () => {
      isOver = true;
      signIns.interrupt();
    },
  };
}
