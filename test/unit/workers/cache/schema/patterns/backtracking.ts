/**
 * A backtracking matcher in its plainest form, which counts its steps. Engines do at most as many, so a pattern
 * whose steps grow faster than the text here is slow for some text, and the time of a machine decides nothing.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";

/** `either`: goes on at both places, first at `first`. `progress`: fails where its loop has matched nothing. */
type Instruction =
  | { do: "take"; raw: string }
  | { do: "either"; first: number; second: number }
  | { do: "jump"; to: number }
  | { do: "mark" | "progress"; loop: number }
  | { do: "assert"; node: AST.EdgeAssertion | AST.WordBoundaryAssertion }
  | { do: "look"; program: Instruction[]; negate: boolean }
  | { do: "done" };

function compile(alternatives: readonly AST.Alternative[]): Instruction[] {
  const program: Instruction[] = [];
  let loops = 0;
  const add = <T extends Instruction>(instruction: T): T => {
    program.push(instruction);
    return instruction;
  };
  const choices = (list: readonly AST.Alternative[]): void => {
    const ends: { to: number }[] = [];
    list.forEach((alternative, i) => {
      const either =
        i < list.length - 1
          ? add({ do: "either", first: program.length + 1, second: 0 } as const)
          : undefined;
      for (const element of alternative.elements) one(element);
      if (!either) return;
      ends.push(add({ do: "jump", to: 0 }));
      Object.assign(either, { second: program.length });
    });
    for (const end of ends) end.to = program.length;
  };
  /** The body, or not. */
  const optional = (greedy: boolean, body: () => void): void => {
    const either = add({ do: "either", first: 0, second: 0 });
    const inside = program.length;
    body();
    const behind = program.length;
    Object.assign(either, greedy ? { first: inside, second: behind } : { first: behind, second: inside });
  };
  const quantifier = ({ min, max, greedy, element }: AST.Quantifier): void => {
    for (let i = 0; i < min; i++) one(element);
    const round = (more: () => void): void => {
      const loop = loops++;
      optional(greedy, () => {
        add({ do: "mark", loop });
        one(element);
        add({ do: "progress", loop });
        more();
      });
    };
    if (max === Infinity) {
      const start = program.length;
      round(() => add({ do: "jump", to: start }));
      return;
    }
    const rounds = (left: number): void => {
      if (left > 0) round(() => rounds(left - 1));
    };
    rounds(max - min);
  };
  const one = (node: AST.Element): void => {
    switch (node.type) {
      case "Character":
      case "CharacterClass":
      case "CharacterSet":
        add({ do: "take", raw: node.raw });
        break;
      case "Group":
      case "CapturingGroup":
        choices(node.alternatives);
        break;
      case "Quantifier":
        quantifier(node);
        break;
      case "Assertion":
        if (node.kind === "lookahead") {
          add({ do: "look", program: compile(node.alternatives), negate: node.negate });
        } else if (node.kind !== "lookbehind") add({ do: "assert", node });
        break;
      default:
        throw new Error(`${node.type} is not known here`);
    }
  };
  choices(alternatives);
  add({ do: "done" });
  return program;
}

const sets = new Map<string, Map<string, boolean>>();
/** Whether the character is one of a class, by the class's own spelling. */
function takes(raw: string, character: string): boolean {
  const known = sets.get(raw) ?? new Map<string, boolean>();
  sets.set(raw, known);
  let taken = known.get(character);
  if (taken === undefined) {
    taken = new RegExp(`^(?:${raw})$`, "u").test(character);
    known.set(character, taken);
  }
  return taken;
}

const isWord = (character: string | undefined): boolean => /^\w$/.test(character ?? "");

/** Thrown when there are more steps than asked for. */
export class TooManySteps extends Error {}

/** Steps of a search for the pattern (flag `u`) anywhere in the text, as `RegExp.prototype.test` does it. */
export function countSteps(source: string, text: string, limit: number): { steps: number; matches: boolean } {
  const { alternatives } = new RegExpParser({ ecmaVersion: 2025 }).parsePattern(source, 0, source.length, {
    unicode: true,
  });
  const program = compile(alternatives);
  const characters = [...text];
  let steps = 0;

  const holds = ({ kind, ...node }: AST.EdgeAssertion | AST.WordBoundaryAssertion, at: number): boolean => {
    if (kind === "start") return at === 0;
    if (kind === "end") return at === characters.length;
    const isEdge = isWord(characters[at - 1]) !== isWord(characters[at]);
    return isEdge !== ("negate" in node && node.negate);
  };
  const run = (code: readonly Instruction[], from: number): boolean => {
    const open = [{ next: 0, at: from, marks: new Map<number, number>() }];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      let { next, at, marks } = state;
      for (let runs = true; runs; ) {
        if (++steps > limit) throw new TooManySteps();
        const instruction = code[next++] as Instruction;
        switch (instruction.do) {
          case "take":
            runs = at < characters.length && takes(instruction.raw, characters[at++] ?? "");
            break;
          case "either":
            open.push({ next: instruction.second, at, marks });
            next = instruction.first;
            break;
          case "jump":
            next = instruction.to;
            break;
          case "mark":
            marks = new Map(marks).set(instruction.loop, at);
            break;
          case "progress":
            runs = marks.get(instruction.loop) !== at;
            break;
          case "assert":
            runs = holds(instruction.node, at);
            break;
          case "look":
            runs = run(instruction.program, at) !== instruction.negate;
            break;
          case "done":
            return true;
        }
      }
    }
    return false;
  };

  for (let at = 0; at <= characters.length; at++) if (run(program, at)) return { steps, matches: true };
  return { steps, matches: false };
}
