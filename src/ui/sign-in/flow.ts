/**
 * One sign-in from the first request to its end: the worker's questions, the dialog with the link, the pasted text. The
 * dialog closes when the worker tells the end, when the time is over, or when the worker ends.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { openableUrl } from "../../report/server-name.ts";
import { messageOf, ThreadsError } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type {
  SignInAgreed,
  SignInQuestion,
  SignInResult,
  SignInStep,
} from "../../shared/protocol/session.ts";
import { orAborted, screenOf } from "../dialog.ts";
import { afterPause, whileTyped } from "../typing.ts";
import type { SignInHost, SignIns } from "./host.ts";
import {
  again,
  DEVICE,
  deviceText,
  dialogText,
  endText,
  fitsDialog,
  noticeText,
  problemText,
  questionText,
  TAKE_OVER,
  TRUST,
} from "./words.ts";

/** `declined`: the user did not want it. */
export type Outcome = "signed-in" | "declined" | "failed";

export interface FlowOptions {
  ctx: PiContext;
  host: SignInHost;
  /** Hears the ends of sign-ins from now on. */
  listen: (take: SignIns["ended"]) => void;
  /** Aborts when the worker or the session ends. */
  cut: AbortSignal;
}

/** The worker asks three different questions. More would mean that it does not take the answers. */
const QUESTIONS = 4;
/** Over RPC a program may answer every dialog at once, with anything. */
const PASTES = 10;
/** A person who presses Enter means to wait on. */
const mostDialogs = ({ mode }: PiContext): number => (mode === "tui" ? Number.POSITIVE_INFINITY : PASTES);
/** An address of a browser, with what an authorization server may add to it. */
const PASTE_CHARS = 16 * 1024;
const LONGEST_MS = 15 * 60 * 1_000;
const GRACE_MS = LIMITS.startupTimeoutMs + LIMITS.rpcGraceMs;

const cutOff = (): ThreadsError => new ThreadsError("runtime_restarted", "The connection worker ended.");

/** Over RPC the other program may answer anything. Enter at once means no. */
async function agrees(
  server: string,
  question: SignInQuestion,
  { ctx, cut }: Pick<FlowOptions, "ctx" | "cut">,
): Promise<boolean> {
  const [title, text] = questionText(server, question);
  const [no, yes] = question.about === "pi" ? TAKE_OVER : TRUST;
  const ask = () => whileTyped(ctx, ctx.ui.select(`${title}\n${text}`, [no, yes], { signal: cut }), cut);
  return (await orAborted(afterPause(ctx, ask), cut)) === yes;
}

type Begun = Exclude<SignInStep, { step: "ask" }>;

/** Begins the sign-in and hands the user's answers on. `agreed`: before any question. Undefined: the user refused. */
async function begin(
  server: string,
  { ctx, host, cut }: FlowOptions,
  agreed: SignInAgreed | undefined,
): Promise<Begun | undefined> {
  for (let asked = 0; asked <= QUESTIONS; asked++) {
    const step = await orAborted(host.ask("signIn", { server, ...(agreed ? { agreed } : {}) }), cut);
    if (step === undefined) throw cutOff();
    if (step.step !== "ask") return step;
    const { question } = step;
    const yes = await agrees(server, question, { ctx, cut });
    if (cut.aborted) throw cutOff();
    if (question.about === "pi") agreed = { ...agreed, fromPi: yes };
    else if (!yes) return undefined;
    else if (question.about === "issuer") agreed = { ...agreed, issuer: question.issuer };
    else agreed = { ...agreed, endpoints: question.endpoints };
  }
  throw new ThreadsError("internal", "The sign-in asks the same question again and again.");
}

type Conversation = FlowOptions & { closing: AbortSignal };

function openable(address: string): string {
  const url = openableUrl(address);
  if (url !== undefined) return url;
  throw new ThreadsError("connect_failed", "The address of its sign-in page cannot be opened.", {
    remedy: "Only its operator can change that.",
  });
}

/** Shows the code for another device until `closing` aborts. `link`: the user wants a link instead. */
async function showCode(
  server: string,
  step: Extract<SignInStep, { step: "device" }>,
  { ctx, closing }: Conversation,
): Promise<boolean | "link"> {
  const url = openable(step.url);
  const screen = screenOf(ctx);
  if (!screen || !fitsDialog(url, screen)) {
    ctx.ui.notify(noticeText(server, url, screen, step.userCode), "info");
  }
  const title = deviceText(server, step, screen);
  for (let shown = 0; shown < mostDialogs(ctx); shown++) {
    const dialog = ctx.ui.select(title, [...DEVICE], { signal: closing });
    const choice: unknown = await whileTyped(ctx, orAborted(dialog, closing), closing);
    if (closing.aborted) return true;
    if (choice === DEVICE[1]) return "link";
    if (choice !== DEVICE[0]) return false;
  }
  return false;
}

/** Shows the link until the user has pasted something that fits, or `closing` aborts. False: the user cancelled. */
async function converse(
  server: string,
  step: Extract<SignInStep, { step: "open" }>,
  { ctx, host, closing }: Conversation,
): Promise<boolean> {
  const url = openable(step.url);
  const screen = screenOf(ctx);
  // Past `notify`, which removes links. The address holds nothing that a terminal acts on.
  if (!screen || !fitsDialog(url, screen)) ctx.ui.notify(noticeText(server, url, screen), "info");
  const title = dialogText(server, step, url, screen);
  for (let pasted = 0; pasted < mostDialogs(ctx); pasted++) {
    const dialog = ctx.ui.input(title, "address or code", { signal: closing });
    const text: unknown = await whileTyped(ctx, orAborted(dialog, closing), closing);
    if (closing.aborted) return true;
    if (typeof text !== "string") return false;
    const problem = await problemOf(text, step.id, { host, closing });
    if (problem === undefined) return true;
    notify(ctx, problemText(server, problem), "warning");
  }
  return false;
}

/** What is wrong with the pasted text; undefined if the sign-in goes on with it. */
async function problemOf(
  pasted: string,
  id: string,
  { host, closing }: { host: SignInHost; closing: AbortSignal },
): Promise<string | undefined> {
  const text = pasted.trim();
  if (text === "") return "Nothing was pasted. Paste the address or the code, or press Escape to cancel.";
  if (text.length > PASTE_CHARS) return "That is too long for the address of a page or a code.";
  return (await orAborted(host.ask("pasteSignIn", { id, text }), closing))?.problem;
}

/**
 * Waits for the end that the worker tells, while the user sees the dialog. Undefined: the user cancelled; `link`: the same, for
 * a sign-in with a link.
 */
async function finish(
  server: string,
  step: Begun,
  options: FlowOptions,
): Promise<SignInResult | "link" | undefined> {
  const { host, cut, listen } = options;
  const closing = new AbortController();
  const close = (): void => closing.abort();
  const closed = new Promise<void>((resolve) => {
    closing.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  let result: SignInResult | undefined;
  listen((end) => {
    if (end.id !== step.id) return;
    result = end.result;
    close();
  });
  const ownMs = "endsInMs" in step ? Math.max(0, Math.min(step.endsInMs, LONGEST_MS)) : 0;
  const timer = setTimeout(close, ownMs + (host.graceMs ?? GRACE_MS)).unref();
  cut.addEventListener("abort", close, { once: true });
  if (cut.aborted) close();
  try {
    const shown = { ...options, closing: closing.signal };
    if (step.step === "open" && !(await converse(server, step, shown))) return undefined;
    if (step.step === "device") {
      const wanted = await showCode(server, step, shown);
      if (wanted !== true) return wanted || undefined;
    }
    await closed;
    if (result) return result;
    if (cut.aborted) throw cutOff();
    throw new ThreadsError("deadline", "The sign-in did not end in time.", { remedy: again(server) });
  } finally {
    clearTimeout(timer);
    cut.removeEventListener("abort", close);
    if (!result && !cut.aborted) {
      await host.ask("cancelSignIn", { id: step.id }).catch((error: unknown) => {
        host.log(`the sign-in to ${server} could not be cancelled: ${messageOf(error)}`);
      });
    }
  }
}

/** Rejects if the sign-in could not begin, or was cut off. Every other end is told to the user. */
export async function runFlow(server: string, options: FlowOptions): Promise<Outcome> {
  const { ctx, host } = options;
  const run = async (agreed?: SignInAgreed): ReturnType<typeof finish> => {
    const step = await begin(server, options, agreed);
    return step && finish(server, step, options);
  };
  const first = await run();
  const result = first === "link" ? await run({ device: false }) : first;
  if (host.over()) return "failed";
  if (!result || result === "link") {
    notify(ctx, problemText(server, "the sign-in is cancelled."), "info");
    return "declined";
  }
  notify(ctx, ...endText(server, result));
  return result.ok ? "signed-in" : "failed";
}
