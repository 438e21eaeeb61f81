/**
 * Owns: the checks that all rows share. Each check returns a text for each broken rule.
 * Must not: start or end anything.
 * Called by: run-row.ts.
 */
import { readFile } from "node:fs/promises";
import { toolResultTexts } from "../../support/model.ts";
import { extensionErrors } from "../../support/rpc-events.ts";
import { clockSlowness, coreSlowness } from "../../support/slowdown.ts";
import type { Answered, Arena, Spent } from "./arena.ts";
import type { Waited } from "./calls.ts";
import type { Place } from "./row.ts";

/**
 * A healthy server answers within this time on the machine on which it was chosen, if that has nothing else to do. A slower call
 * is repeated. If it stays slow, the time is multiplied by what this machine is slower.
 */
const ANSWER_MS = 2_000;
/** A busy machine alone does not make a call this slow. */
const HOPELESS_MS = 10_000;
const TRIES = 3;

/**
 * CPU time by which one turn of the main thread's loop may exceed bare Pi's longest. On slower cores the same work takes more:
 * the time is multiplied by what they take more.
 */
const MAIN_CPU_MS = 50;

const NOTICES = 25;
/** Characters of a notice, and of the answer to a command. */
const NOTICE_CHARS = 8_000;
const ASKED_CHARS = 100_000;
const SEARCH_DESCRIPTION_CHARS = 12_000;
const SHOWN_CHARS = 160;
/** Far more than one result with its notices and instructions may have, and less than twice as much. */
const RESULT_CHARS = 80_000;

/** Control characters except tab and line feed, marks of writing direction, and Unicode line separators. */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Tags, variation selectors of the supplement, and the zero-width space: what carries hidden text. */
const UNSEEN = /[\u200b\u{e0000}-\u{e0fff}]/u;

const shown = (text: string): string => JSON.stringify(text.slice(0, SHOWN_CHARS));

/** Calls the healthy server, unless it was just called; `note` gets the milliseconds of each call. */
export async function neighbourProblem(
  arena: Arena,
  server: string,
  note: (ms: number) => void,
  before?: Answered,
): Promise<string[]> {
  let best: Answered = { failure: "it was not asked", ms: Number.POSITIVE_INFINITY };
  for (let count = 0; count < TRIES; count++) {
    const answered = (count === 0 ? before : undefined) ?? (await arena.echo(server));
    note(answered.ms);
    if (answered.failure !== undefined) return [`${server} failed: ${answered.failure}`];
    if (answered.ms > HOPELESS_MS) return [`${server} took ${Math.round(answered.ms)} ms`];
    if (answered.ms < best.ms) best = answered;
    if (best.ms <= ANSWER_MS) return [];
  }
  const slowness = await clockSlowness();
  if (best.ms <= ANSWER_MS * slowness) return [];
  return [
    `${server} took ${Math.round(best.ms)} ms in the best of ${TRIES} calls (machine ${slowness.toFixed(1)} times slower)`,
  ];
}

/** Repeats calls of the healthy server for `watchMs`. */
export async function watchedProblem(
  arena: Arena,
  { server, watchMs }: { server: string; watchMs: number },
  note: (ms: number) => void,
): Promise<string[]> {
  const endsAtMs = performance.now() + watchMs;
  for (;;) {
    const problems = await neighbourProblem(arena, server, note);
    if (problems.length > 0 || performance.now() > endsAtMs) return problems;
  }
}

/** Judges the answers of the healthy server that were due while another call ran. */
export async function besideProblem(
  waited: readonly Waited[],
  note: (ms: number) => void,
): Promise<string[]> {
  for (const { lateMs } of waited) note(lateMs);
  const failed = waited.find(({ failure }) => failure !== undefined);
  if (failed) return [`the healthy server failed beside the call: ${failed.failure}`];
  const latest = Math.max(...waited.map(({ lateMs }) => lateMs));
  return latest > ANSWER_MS && latest > ANSWER_MS * (await clockSlowness())
    ? [`the healthy server answered ${Math.round(latest)} ms late beside the call`]
    : [];
}

export async function mainProblem(
  when: string,
  spent: Spent,
  bare: Spent,
  mostMs = MAIN_CPU_MS,
): Promise<string[]> {
  if (spent.polluted.length > 0) return [`every object of main has ${spent.polluted}`];
  if (spent.mostCpuMs <= bare.mostCpuMs + mostMs) return [];
  const slowness = await coreSlowness();
  if (spent.mostCpuMs <= bare.mostCpuMs + mostMs * slowness) return [];
  const [most, least, wall] = [spent.mostCpuMs, bare.mostCpuMs, spent.longestMs].map(Math.round);
  return [
    `main computed ${most} ms at a stretch ${when} (bare Pi ${least} ms; ${wall} ms by the clock; cores ${slowness.toFixed(1)} times slower)`,
  ];
}

export async function canaryProblems({ canaryFile, canary }: Place) {
  const written = await readFile(canaryFile, "utf8").catch(() => undefined);
  return {
    runs: written === undefined ? [] : [`a program of the attack ran: ${shown(written)}`],
    leaves: canary.requests.map((request) => `a request left: ${request}`),
  };
}

function textProblems(what: string, text: string, most: number): string[] {
  const at = UNPRINTABLE.exec(text)?.index;
  return [
    ...(at === undefined
      ? []
      : [`${what} holds control characters: ${shown(text.slice(Math.max(0, at - 40)))}`]),
    ...(text.length > most ? [`${what} has ${text.length} characters: ${shown(text)}`] : []),
  ];
}

/** Judges texts that the user and the model did not ask for, and the results that the model reads. */
export function wordsProblems(arena: Arena): string[] {
  const { notices, dialogs, requests } = arena;
  const search = new Set(
    requests.flatMap(({ tools }) =>
      tools
        .filter(({ function: { name } }) => name === "ToolSearch" || name === "mcp")
        .map(({ function: { description = "" } }) => description),
    ),
  );
  const unasked = notices.filter(({ message }) => !arena.asked.has(message));
  const many =
    unasked.length > NOTICES
      ? [`${unasked.length} notices, the last: ${shown(unasked.at(-1)?.message ?? "")}`]
      : [];
  const results = new Set(requests.flatMap(toolResultTexts));
  return [
    ...many,
    ...[...results].flatMap((text) => [
      ...textProblems("a result for the model", text.replaceAll("\r\n", "\n"), RESULT_CHARS),
      ...(UNSEEN.test(text) ? [`a result for the model holds hidden characters: ${shown(text)}`] : []),
    ]),
    ...notices
      .slice(0, NOTICES)
      .flatMap(({ message }) =>
        textProblems("a notice", message, arena.asked.has(message) ? ASKED_CHARS : NOTICE_CHARS),
      ),
    ...dialogs.flatMap(({ title }) => textProblems("a question", title, NOTICE_CHARS)),
    ...[...search].flatMap((text) =>
      textProblems("the declaration of ToolSearch", text, SEARCH_DESCRIPTION_CHARS),
    ),
  ];
}

/** Reports output outside Pi's protocol, and handlers that throw. */
export function protocolProblems({ rpc }: Arena): string[] {
  return [
    ...rpc.strayLines.slice(0, 3).map((line) => `a stray line on stdout: ${shown(line)}`),
    ...(rpc.stderr === "" ? [] : [`on stderr: ${shown(rpc.stderr)}`]),
    ...extensionErrors(rpc.events).map((error) => `a handler threw: ${shown(error)}`),
  ];
}
