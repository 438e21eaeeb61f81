/**
 * Owns: prompts in which the model calls several servers: an attacking one and a healthy one, in turn or at the same time.
 * Must not: judge what they answer.
 * Called by: attack.ts.
 */
import type { ModelTurn } from "../../support/model.ts";
import type { RpcToolEnd } from "../../support/rpc-events.ts";
import { type Answered, type Arena, failureOf } from "./arena.ts";
import type { Call } from "./row.ts";

/** Pauses between the answers of the healthy server. */
const BESIDE_MS = 250;

/** A call that asks the server to answer after a given time. */
export interface Waited {
  failure: string | undefined;
  /** Milliseconds by which the answer came after the time that the call asked for. */
  lateMs: number;
}

/** The end of what a search answers while servers connect, and how long the model repeats the search. */
const LATER = "search again later";
const LATER_MS = 40_000;

/** Sends a prompt that begins with these searches. While one of them comes too early, the model begins anew. */
async function promptOnceFound(
  arena: Arena,
  finds: NonNullable<ModelTurn["toolCalls"]>,
  ...turns: ModelTurn[]
): Promise<{ found: RpcToolEnd[]; called: RpcToolEnd[] }> {
  const endsAtMs = performance.now() + LATER_MS;
  for (;;) {
    const ends = await arena.prompt({ toolCalls: finds }, ...turns);
    const [found, called] = [ends.slice(0, finds.length), ends.slice(finds.length)];
    const isEarly = found.some(({ text }) => text.includes(LATER)) && called.some(({ isError }) => isError);
    if (!isEarly || performance.now() > endsAtMs) return { found, called };
  }
}

/** How the call of `echo` ended, with the time that the call itself took. */
const answeredBy = (end: RpcToolEnd | undefined, text: string): Answered => ({
  failure: failureOf(end, text),
  ms: end?.durationMs ?? 0,
});

/**
 * Loads the tools of the attacking server and calls them one after the other, then the healthy server. One prompt does
 * it all: each request to the model costs Pi as much as many calls.
 */
export async function useInTurn(
  arena: Arena,
  calls: readonly Call[],
  healthy: string,
): Promise<{ attacks: (RpcToolEnd | undefined)[]; answered: Answered }> {
  const { server } = arena.place;
  const text = arena.nextText();
  const turns = calls.map(({ tool, args = {} }) => arena.turnsOf(server, tool, args));
  const finds = turns.flatMap(([find]) => find.toolCalls ?? []);
  const { found, called } = await promptOnceFound(
    arena,
    finds,
    ...turns.map(([, call]) => call),
    arena.callOf(healthy, "echo", { text }),
  );
  const attacks = calls.map((_call, at) => {
    const end = called[at];
    return end?.isError
      ? { ...end, text: `${end.text}; the search answered: ${found[at]?.text.slice(0, 300)}` }
      : end;
  });
  return { attacks, answered: answeredBy(called[calls.length], text) };
}

/** Loads the tool of a server that is new, and calls it and the healthy server at the same time. */
export async function echoBoth(
  arena: Arena,
  newcomer: string,
  healthy: string,
): Promise<{ newcomer: Answered; healthy: Answered }> {
  const texts = [arena.nextText(), arena.nextText()] as const;
  const [find, call] = arena.turnsOf(newcomer, "echo", { text: texts[0] });
  const echo = arena.callOf(healthy, "echo", { text: texts[1] });
  const [found, ...called] = await arena.prompt(find, {
    toolCalls: [call, echo].flatMap(({ toolCalls = [] }) => toolCalls),
  });
  const answerOf = (text: string): RpcToolEnd | undefined =>
    called.find((end) => end.text === `echo: ${text}`);
  const [first, second] = [answerOf(texts[0]), answerOf(texts[1])];
  const other = called.find((end) => end !== first && end !== second);
  const answered = answeredBy(first ?? other, texts[0]);
  return {
    newcomer: {
      ...answered,
      failure: answered.failure && `${answered.failure}; the search: ${found?.text.slice(0, 200)}`,
    },
    healthy: answeredBy(second ?? other, texts[1]),
  };
}

/**
 * Loads a tool and calls it, and the healthy server at the same time, whose answers are due one after the other within
 * `watchMs`.
 */
export async function useBeside(
  arena: Arena,
  { tool, args = {} }: Call,
  { healthy, watchMs }: { healthy: string; watchMs: number },
): Promise<{ attack: RpcToolEnd | undefined; waited: Waited[] }> {
  const waits = Array.from({ length: Math.ceil(watchMs / BESIDE_MS) }, (_, i) => i * BESIDE_MS);
  const echoes = waits.map((waitMs) => arena.callOf(healthy, "echo", { text: `after ${waitMs}`, waitMs }));
  const [find, call] = arena.turnsOf(arena.place.server, tool, args);
  const { called } = await promptOnceFound(arena, find.toolCalls ?? [], {
    toolCalls: [call, ...echoes].flatMap(({ toolCalls = [] }) => toolCalls),
  });
  const waited = waits.map((waitMs) => {
    const end = called.find(({ text }) => text === `echo: after ${waitMs}`);
    const failure = end ? undefined : called.find(({ isError }) => isError)?.text.slice(0, 200);
    return {
      failure: end ? undefined : (failure ?? "it was not called"),
      lateMs: (end?.durationMs ?? 0) - waitMs,
    };
  });
  const answered = new Set(waits.map((waitMs) => `echo: after ${waitMs}`));
  return { attack: called.find(({ text }) => !answered.has(text)), waited };
}
