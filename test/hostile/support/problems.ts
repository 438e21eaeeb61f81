/**
 * Owns: the problems and figures of one attack, collected while it runs.
 * Must not: look at Pi.
 * Called by: attack.ts, story.ts and run-row.ts.
 */
import type { Spent } from "./arena.ts";
import { mainProblem } from "./checks.ts";
import type { Check, Problem, Row } from "./row.ts";

export const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\nlast records")[0] ?? "") : String(error);

/** The problems and figures of an attack that is over. */
export interface Outcome {
  readonly list: readonly Problem[];
  readonly figures: Readonly<{ callMs: number; mainCpuMs: number; mainGapMs: number }>;
}

/** Collects the problems and figures of one attack. */
export class Problems {
  /** The longest call of the healthy server, and by how much main exceeded bare Pi; milliseconds. */
  readonly figures = { callMs: 0, mainCpuMs: 0, mainGapMs: 0 };
  readonly list: Problem[] = [];
  readonly #checks: ReadonlySet<Check | "row">;
  readonly #mainMs: number | undefined;
  constructor({ checks, mainMs }: Row) {
    this.#mainMs = mainMs;
    this.#checks = new Set<Check | "row">([...checks, "row"]);
  }
  add(check: Check | "row", ...texts: readonly string[]): void {
    if (this.#checks.has(check)) this.list.push(...texts.map((text) => ({ check, text })));
  }
  readonly called = (ms: number): void => {
    this.figures.callMs = Math.max(this.figures.callMs, ms);
  };
  async main(when: string, spent: Spent, bare: Spent): Promise<void> {
    this.figures.mainCpuMs = Math.max(this.figures.mainCpuMs, spent.mostCpuMs - bare.mostCpuMs);
    this.figures.mainGapMs = Math.max(this.figures.mainGapMs, spent.longestMs);
    this.add("main", ...(await mainProblem(when, spent, bare, this.#mainMs)));
  }
  /** Runs a step and records its problems, or its error as a problem of `check`. Resolves with false after an error. */
  async step(check: Check | "row", name: string, run: () => Promise<readonly string[]>): Promise<boolean> {
    try {
      this.add(check, ...(await run()));
      return true;
    } catch (error) {
      // An error counts even if the row does not name `check`: a step without an answer is a problem of Pi.
      this.list.push({ check, text: `${name}: ${messageOf(error)}` });
      return false;
    }
  }
}
