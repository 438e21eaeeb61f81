/** Owns: a user who signs in: begins, answers the questions, opens the browser, and reads how it ended. */
import type { Runtime } from "../../src/runtime/contract.ts";
import { describeError, ThreadsError, toWireError } from "../../src/shared/protocol/errors.ts";
import type {
  SignInAgreed,
  SignInQuestion,
  SignInResult,
  SignInStep,
} from "../../src/shared/protocol/session.ts";
import { browse, type Page } from "./browser.ts";

type Opened = Extract<SignInStep, { step: "open" }>;
export type Shown = Extract<SignInStep, { step: "device" }>;

export interface SignedIn {
  /** Absent: the sign-in failed before an address could be opened, or needed none. */
  opened?: Opened;
  /** Absent: no code for another device was shown. */
  shown?: Shown;
  /** The questions that were asked, in order. */
  questions: SignInQuestion[];
  /** What the browser showed at the end. */
  page?: Page;
  result: SignInResult;
  /** What the user reads at the end: `signed in`, or the error's sentence and its remedy. */
  says: string;
}

export interface User {
  /** Which questions are answered with yes. Default: every one. */
  agrees?: boolean | ((question: SignInQuestion) => boolean);
  /** Default: opens the address and follows it to its end. */
  open?: (opened: Opened) => Promise<Page | undefined>;
  /** Whether the user wants a code for another device. Default: the entry decides. */
  device?: boolean;
  /** Enters the code at another device. Default: does nothing. */
  enter?: (shown: Shown) => Promise<unknown>;
}

const MOST_QUESTIONS = 4;

/** The result of a request that may fail. */
const asResult = (error: unknown): SignInResult => {
  if (!(error instanceof ThreadsError)) throw error;
  return { ok: false, error: toWireError(error) };
};

const saysOf = (result: SignInResult): string => (result.ok ? "signed in" : describeError(result.error));

/** Whether the address belongs to the sign-in and not to a server: `stopsAt` of a browser that cannot reach it. */
export const isCallback =
  ({ redirectUri }: Opened) =>
  (url: URL): boolean =>
    `${url.origin}${url.pathname}` === redirectUri;

/** `ended` waits for the event of the sign-in with this id. */
export async function signInAs(
  user: User,
  { runtime, ended }: { runtime: Runtime; ended: (id: string) => Promise<SignInResult> },
  server: string,
): Promise<SignedIn> {
  const questions: SignInQuestion[] = [];
  const agreed: SignInAgreed = user.device === undefined ? {} : { device: user.device };
  for (;;) {
    const step = await runtime.ask("signIn", { server, agreed: { ...agreed } }).catch(asResult);
    if ("ok" in step) return { questions, result: step, says: saysOf(step) };
    if (step.step === "renewed") {
      const result = await ended(step.id);
      return { questions, result, says: saysOf(result) };
    }
    if (step.step === "open") {
      const page = await (user.open ?? (({ url }: Opened) => browse(url)))(step);
      const result = await ended(step.id);
      return { opened: step, questions, ...(page ? { page } : {}), result, says: saysOf(result) };
    }
    if (step.step === "device") {
      await user.enter?.(step);
      const result = await ended(step.id);
      return { shown: step, questions, result, says: saysOf(result) };
    }
    questions.push(step.question);
    const { agrees = true } = user;
    const isAgreed = typeof agrees === "function" ? agrees(step.question) : agrees;
    if (!isAgreed || questions.length > MOST_QUESTIONS) {
      return {
        questions,
        result: { ok: false, error: { code: "cancelled", message: "" } },
        says: step.question.text,
      };
    }
    if (step.question.about === "issuer") agreed.issuer = step.question.issuer;
    else if (step.question.about === "endpoints") agreed.endpoints = step.question.endpoints;
    else agreed.fromPi = true;
  }
}
