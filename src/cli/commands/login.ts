/**
 * `login`, and the commands that `/mcp` carries out alike. A sign-in opens the browser and shows the address; its end comes from the page to which the
 * browser returns, or from what the person pastes on the terminal.
 */
import { ACTIONS, type ActionName } from "../../report/actions.ts";
import { deviceLines } from "../../report/device-code.ts";
import { openableUrl, serverName } from "../../report/server-name.ts";
import { ThreadsError } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type {
  SignInAgreed,
  SignInQuestion,
  SignInResult,
  SignInStep,
} from "../../shared/protocol/session.ts";
import { counted } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { isYes } from "../console/console.ts";
import { asFailure, EXIT, type ExitCode, Failure, usage } from "../console/failure.ts";
import type { CliSession } from "../session/session.ts";
import { asked, type Command, type Context, configured } from "./known.ts";

/** The worker asks three different questions. More would mean that it does not take the answers. */
const QUESTIONS = 4;
const PASTES = 10;
/** Lines in a pipe are as wide as a usual terminal. */
export const COLUMNS = 100;
const QUESTION_CHARS = 2_000;
const LONGEST_MS = 15 * 60 * 1_000;
const GRACE_MS = LIMITS.startupTimeoutMs + LIMITS.rpcGraceMs;

type Begun = Exclude<SignInStep, { step: "ask" }>;
type Opened = Extract<SignInStep, { step: "open" }>;

/** `--yes` was written before anybody saw the addresses that a server chose, so it agrees to none. */
async function agrees(
  { console, options, signal }: Context,
  { about, text }: SignInQuestion,
): Promise<boolean> {
  return console.inTurn(async () => {
    console.warn(oneLine(text, QUESTION_CHARS));
    if (options.yes && about === "pi") return true;
    return console.canAsk && isYes(await console.ask("Agree? [y/N] ", signal));
  });
}

async function begin(context: Context, session: CliSession, server: string): Promise<Begun> {
  const { device, link } = context.options;
  if (device && link) throw usage("--device and --link exclude each other.");
  let agreed: SignInAgreed | undefined = device || link ? { device: device === true } : undefined;
  for (let count = 0; count <= QUESTIONS; count++) {
    const step = await session.runtime.ask("signIn", { server, ...(agreed ? { agreed } : {}) });
    if (step.step !== "ask") return step;
    const { question } = step;
    const yes = await agrees(context, question);
    if (question.about === "pi") agreed = { ...agreed, fromPi: yes };
    else if (!yes) {
      throw new Failure(EXIT.consent, `${serverName(server)}: the sign-in needs your yes.`, {
        remedy: context.console.canAsk ? undefined : "Run it in a terminal.",
      });
    } else if (question.about === "issuer") agreed = { ...agreed, issuer: question.issuer };
    else agreed = { ...agreed, endpoints: question.endpoints };
  }
  throw new Failure(EXIT.internal, "The sign-in asks the same question again and again.");
}

/** Hands pasted lines to the worker until one fits. Settles when no more can be pasted. */
async function paste(context: Context, session: CliSession, id: string, closing: AbortSignal): Promise<void> {
  const { console } = context;
  for (let count = 0; count < PASTES; count++) {
    const line = await console.askBetween("Address or code: ", closing);
    if (line === undefined || closing.aborted) return;
    if (line.trim() === "") continue;
    const { problem } = await session.runtime.ask("pasteSignIn", { id, text: line.trim() });
    if (problem === undefined) return;
    console.warn(oneLine(problem, QUESTION_CHARS));
  }
}

function checkPage(server: string, url: string): void {
  if (openableUrl(url) !== undefined) return;
  throw new Failure(EXIT.signIn, `${serverName(server)}: the address of its sign-in page cannot be opened.`);
}

function showPage({ console }: Context, server: string, { url, browser, listens, codeGoesTo }: Opened): void {
  const name = serverName(server);
  checkPage(server, url);
  const lines = [
    browser === "started"
      ? `Sign in to ${name} in the browser. If it has not opened, open this page:`
      : `To sign in to ${name}, open this page in a browser:`,
    url,
    `The code of this sign-in goes to ${oneLine(codeGoesTo, QUESTION_CHARS)}.`,
    ...(console.canAsk
      ? [
          "If the browser ends on a page that it cannot show, paste the address of that page, or the code that it shows.",
        ]
      : []),
  ];
  for (const line of lines) console.warn(line);
  if (listens || console.canAsk) return;
  throw new Failure(EXIT.signIn, `${name}: its sign-in ends with an address that must be pasted.`, {
    remedy: "Run it in a terminal.",
  });
}

async function finish(
  context: Context,
  session: CliSession,
  server: string,
  step: Begun,
): Promise<SignInResult> {
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const ownMs = "endsInMs" in step ? Math.max(0, Math.min(step.endsInMs, LONGEST_MS)) : 0;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Failure(EXIT.timeout, `${serverName(server)}: the sign-in did not end in time.`)),
      ownMs + GRACE_MS,
    );
  });
  try {
    if (step.step === "device") {
      checkPage(server, step.url);
      for (const line of deviceLines(server, step, (address) => address)) context.console.warn(line);
    }
    if (step.step === "open") {
      showPage(context, server, step);
      // A failure of the pasting leaves the browser's way open.
      if (context.console.canAsk) {
        const over = AbortSignal.any([context.signal, closing.signal]);
        paste(context, session, step.id, over).catch((error: unknown) =>
          context.console.warn(asFailure(error).message),
        );
      }
    }
    return await Promise.race([session.signInEnd(step.id), late]);
  } catch (error) {
    await session.runtime.ask("cancelSignIn", { id: step.id }).catch(() => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
    closing.abort();
  }
}

function told(
  { console }: Context,
  server: string,
  { result, where }: { result: SignInResult; where: string },
): ExitCode {
  if (!result.ok) {
    const { code, message, remedy } = result.error;
    const failure = asFailure(new ThreadsError(code, message, { remedy }));
    // Whatever hinders a sign-in: the server still needs one.
    const exitCode = failure.exitCode === EXIT.internal ? EXIT.signIn : failure.exitCode;
    throw new Failure(exitCode, failure.message, failure);
  }
  const name = serverName(server);
  const { tools } = result;
  const text =
    tools === undefined
      ? `${name}: signed in, but the server did not connect. pi-mcp-threads doctor ${name} says why.`
      : `${name}: signed in, ${counted(tools, "tool")}.${where}`;
  console.answer({ server, signedIn: true, tools: tools ?? null }, () => [text]);
  return tools === undefined ? EXIT.unreachable : EXIT.ok;
}

async function remote(context: Context): Promise<{ session: CliSession; server: string }> {
  const [written] = context.arguments;
  const { session, server = "", report } = await asked(context, written, () => false, "exact");
  const transport = report.servers.find(({ name }) => name === server)?.transport;
  if (transport === "stdio" || transport === "socket") {
    throw usage(`${serverName(server)} is a local program and needs no sign-in.`);
  }
  return { session, server };
}

export const login: Command = async (context) => {
  const { session, server } = await remote(context);
  const step = await begin(context, session, server);
  const result = await finish(context, session, server, step);
  const { signIn } = (await session.status()).servers.find(({ name }) => name === server) ?? {};
  const isInSystem = signIn?.state === "signed-in" && signIn.isInSystem;
  const where = isInSystem ? " The system's credential store keeps its tokens." : "";
  return told(context, server, { result, where });
};

/** The session with what the action takes: a server, or none. */
async function takenBy(context: Context, takes: (typeof ACTIONS)[ActionName]["takes"]) {
  if (takes === "remote") return remote(context);
  if (takes === "server") return configured(context, context.arguments[0] ?? "", "exact");
  const session = await context.session();
  await session.planned();
  return { session, server: "" };
}

/** What `/mcp` carries out alike. */
export const carryOut =
  (word: ActionName): Command =>
  async (context) => {
    const { console, options } = context;
    const { takes, fits, run } = ACTIONS[word];
    const words = takes === "words" ? context.arguments.join(" ") : "";
    if (fits?.(words) === false) {
      const help = `pi-mcp-threads help ${word} shows how it is used.`;
      throw usage(`${word} does not take ${JSON.stringify(words)}.`, help);
    }
    const { session, server } = await takenBy(context, takes);
    const columns = console.columns ?? COLUMNS;
    const given = { server, words, project: options.project === true, columns };
    const { text, but, document } = await run(session.runtime.ask, given);
    console.answer(document, () => [text]);
    if (but) console.warn(but);
    return EXIT.ok;
  };
