/**
 * Patterns of one schema: which ones a host may run, and what is told of those that are left to the server. Pi
 * checks arguments on its main thread, so it gets only patterns that provably take linear time.
 */
import { isLinear, PATTERN_CHARS } from "./time.ts";

/** `broken`: no regular expression of JavaScript. `slow`: not provably fast. */
export type Judgement = "sound" | "slow" | "broken";

export interface Patterns {
  judge(source: unknown): Judgement;
  /** `/^a$/`, cut and printable. Undefined where enough of them have been told. */
  show(source: string): string | undefined;
}

/** Patterns of one schema that are judged, in characters: all that real schemas have. */
const JUDGED_CHARS = 64 * 1024;
/** Of one schema. */
const SHOWN = 50;
const SHOWN_CHARS = 120;

/** Control characters, invisible ones, what turns the order of the letters around, and broken ones. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`;

/** As Pi's validator reads patterns. */
function compiles(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}

/** For one schema, whose patterns share one budget. */
export function openPatterns(): Patterns {
  const known = new Map<string, Judgement>();
  let chars = 0;
  let shown = 0;
  const judge = (source: string): Judgement => {
    chars += source.length;
    if (source.length > PATTERN_CHARS || chars > JUDGED_CHARS) return "slow";
    if (!compiles(source)) return "broken";
    return isLinear(source) ? "sound" : "slow";
  };
  return {
    judge: (source) => {
      if (typeof source !== "string") return "broken";
      let judgement = known.get(source);
      if (!judgement) {
        judgement = judge(source);
        known.set(source, judgement);
      }
      return judgement;
    },
    show: (source) => {
      if (++shown > SHOWN) return undefined;
      const characters = [...source.slice(0, SHOWN_CHARS + 1)];
      const cut = source.length > SHOWN_CHARS ? [...characters.slice(0, -1), "…"] : characters;
      return `/${cut.join("").replace(UNPRINTABLE, escaped)}/`;
    },
  };
}
