/**
 * The patterns of one schema: which of them a host may run, and how the others are shown in a description. Pi checks
 * arguments on its main thread, so it gets only patterns that provably take linear time. The server checks the others.
 */
import { isLinear, PATTERN_CHARS } from "./time.ts";

/** `broken`: not a regular expression of JavaScript. `slow`: not provably fast. */
export type Judgement = "sound" | "slow" | "broken";

export interface Patterns {
  judge(source: unknown): Judgement;
  /** The pattern as `/^a$/`, cut and printable. Undefined after `SHOWN` patterns. */
  show(source: string): string | undefined;
}

/** Characters of the patterns of one schema that are judged. Real schemas have fewer. */
const JUDGED_CHARS = 64 * 1024;
/** Patterns of one schema that are shown. */
const SHOWN = 50;
const SHOWN_CHARS = 120;

/** Control characters, invisible characters, marks of direction and halves of characters, all shown by their codes. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`;

/** Pi's validator compiles patterns with the flag `u`. */
function compiles(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}

/** Opens the patterns of one schema, which share one budget. */
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
