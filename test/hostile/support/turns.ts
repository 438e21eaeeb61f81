/**
 * Owns: the order of the rows of a test file, and the Pi in which each of them runs.
 * Must not: run an attack, or judge results.
 * Called by: suite.ts.
 */
import { messageOf, type Outcome } from "./problems.ts";
import type { Row } from "./row.ts";
import { type FilePi, prepare, type RowContext, runAlone, startFilePi } from "./run-row.ts";
import type { Round } from "./together.ts";

/** Attacks that are in the configuration at the same time, unless the file says otherwise. */
const BESIDE = 20;
const NOTHING = { callMs: 0, mainCpuMs: 0, mainGapMs: 0 };

/** True if the row's own session is the first thing that needs its home, so that the row before may start it. */
const startsAtOnce = ({ alone, story }: Row): boolean => alone === "home" && story === undefined;

/**
 * Rows that share a session come first: the Pi of the file begins with their session, and leaves it only once. Then the
 * rows whose sessions follow each other.
 */
export const inTurn = (rows: readonly Row[]): Row[] => {
  const rank = (row: Row): number => (row.alone === undefined ? 0 : startsAtOnce(row) ? 1 : 2);
  return rows.toSorted((a, b) => rank(a) - rank(b));
};

/** The first row and the rows after it that run beside it. */
function roundOf([first, ...others]: readonly Row[], most: number): Row[] {
  if (first === undefined) return [];
  if (first.beside === false) return [first];
  const beside = others.filter((row) => row.alone === undefined && row.beside !== false);
  return [first, ...beside.slice(0, most - 1)];
}

export interface Turns {
  /** Runs a row, with others beside it if that saves time: their outcomes wait until their turn. */
  run(row: Row): Promise<Outcome>;
  /** Runs a row once more, with no other beside it. */
  again(row: Row): Promise<Outcome>;
  /** Ends the Pi of the file. Resolves with a text for each problem. */
  end(): Promise<string[]>;
  kill(): Promise<void>;
}

/** `rows`: what runs, in the order of `inTurn`. `beside`: how many attacks are there at the same time. */
export function createTurns(rows: readonly Row[], context: RowContext, beside = BESIDE): Turns {
  const known = new Map<Row, Outcome>();
  let pi: FilePi | undefined;

  const kill = async (): Promise<void> => {
    const killed = pi;
    pi = undefined;
    await killed?.kill();
  };
  /** A Pi that an attack has damaged must not affect the next row. */
  const replaceIf = async (isDamaged: boolean): Promise<void> => {
    if (isDamaged) await kill();
  };
  const runShared = async (round: readonly Row[]): Promise<Round> => {
    pi ??= await startFilePi(context);
    const ended = await pi.runShared(round).catch((error: unknown): Round => {
      const text = `the attacks had no end: ${messageOf(error)}`;
      return { outcomes: [], together: [{ check: "lives", text }] };
    });
    await replaceIf(ended.together.length > 0 || ended.outcomes.some(({ list }) => list.length > 0));
    return ended;
  };
  const again = async (row: Row, next?: Row): Promise<Outcome> => {
    if (row.alone === "process") return runAlone(await prepare(row, context.caches), context);
    if (row.alone === "home") {
      pi ??= await startFilePi(context);
      const outcome = await pi.runInHome(row, next);
      await replaceIf(outcome.list.length > 0);
      return outcome;
    }
    const { outcomes, together } = await runShared([row]);
    return outcomes[0] ?? { figures: NOTHING, list: together };
  };
  const runRound = async (round: readonly Row[]): Promise<void> => {
    const { outcomes, together } = await runShared(round);
    if (together.length === 0) {
      for (const [at, outcome] of outcomes.entries()) known.set(round[at] as Row, outcome);
      return;
    }
    // One of the attacks broke something for all: each one runs by itself, so that the right row fails.
    for (const row of round) known.set(row, await again(row));
    if (round.some((row) => (known.get(row)?.list.length ?? 0) > 0)) return;
    // What main computes for one attack decides; many at a time may take longer.
    const wrong = together.filter(({ check }) => check !== "main");
    const names = round.map(({ name }) => name).join("; ");
    const list = wrong.map(({ check, text }) => ({
      check,
      text: `${text}, but only beside each other: ${names}`,
    }));
    for (const row of round) known.set(row, { figures: NOTHING, list });
  };
  return {
    run: async (row) => {
      if (row.alone !== undefined) {
        const next = rows[rows.indexOf(row) + 1];
        return again(row, next && startsAtOnce(next) ? next : undefined);
      }
      if (!known.has(row)) {
        const after = rows.slice(rows.indexOf(row) + 1);
        await runRound(roundOf([row, ...after.filter((one) => !known.has(one))], beside));
      }
      const outcome = known.get(row);
      if (outcome === undefined) throw new Error(`no outcome of ${row.name}`);
      return outcome;
    },
    again: (row) => again(row),
    end: async () => {
      const ended = pi;
      pi = undefined;
      return (await ended?.end()) ?? [];
    },
    kill,
  };
}
