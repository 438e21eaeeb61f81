/**
 * Owns: the problems and figures of one attack, as they come in.
 * Must not: look at Pi.
 * Called by: attack.ts, story.ts and run-row.ts.
 */
import type { Spent } from "./arena.ts";
import { mainProblem } from "./checks.ts";
import type { Check, Problem, Row } from "./row.ts";

export const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\nlast records")[0] ?? "") : String(error);

/** What an attack came to. */
export interface Outcome {
  readonly list: readonly Problem[];
  readonly figures: Readonly<{ callMs: number; mainCpuMs: number; mainGapMs: number }>;
}

/** Problems of one attack, and how each is added. */
export class Problems {
  /** The longest that a call of the healthy server took, and the most that main computed at a stretch. */
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
  main(when: string, spent: Spent, bare: Spent): void {
    this.figures.mainCpuMs = Math.max(this.figures.mainCpuMs, spent.mostCpuMs - bare.mostCpuMs);
    this.figures.mainGapMs = Math.max(this.figures.mainGapMs, spent.longestMs);
    this.add("main", ...mainProblem(when, spent, bare, this.#mainMs));
  }
  /** A step that fails is the problem of what it looks at; the next steps are taken all the same while Pi lives. */
  async step(check: Check | "row", name: string, run: () => Promise<readonly string[]>): Promise<boolean> {
    try {
      this.add(check, ...(await run()));
      return true;
    } catch (error) {
      // A step that got no answer says more of Pi than of itself.
      this.list.push({ check, text: `${name}: ${messageOf(error)}` });
      return false;
    }
  }
}
