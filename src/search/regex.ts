/**
 * Regular expressions in time linear in the text, whatever the pattern: a pattern becomes a small
 * non-deterministic machine, and all its states advance together, character by character. Letters match in
 * either case. Backreferences and look-around cannot be had in linear time and are refused, as is what
 * expands beyond a bound. Own code, since the libraries that do this weigh more than the rest of main
 * (re2js: 147 KB). Pure.
 */

/** What is refused, in words for whoever wrote the pattern. */
export class PatternError extends Error {}

export interface Pattern {
  /** Whether the pattern occurs anywhere in the text. */
  test(text: string): boolean;
}

const MAX_CHARACTERS = 500;
const MAX_STATES = 1_000;
/** Also parts without a state cost time to compile: `(((){100}){100}){100}`. */
const MAX_STEPS = 20_000;
const MAX_REPEAT = 100;

type Accepts = (code: number) => boolean;
type Assertion = "start" | "end" | "boundary" | "inside";

type Node =
  | { kind: "character"; accepts: Accepts }
  | { kind: "assertion"; assertion: Assertion }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "choice"; options: Node[] }
  | { kind: "repeat"; part: Node; least: number; most: number };

type State =
  | { kind: "character"; accepts: Accepts; next: number }
  | { kind: "assertion"; assertion: Assertion; next: number }
  | { kind: "split"; next: number[] }
  | { kind: "match" };

const between =
  (first: number, last: number): Accepts =>
  (code) =>
    code >= first && code <= last;
const isDigit = between(0x30, 0x39);
const isWord: Accepts = (code) =>
  isDigit(code) || between(0x41, 0x5a)(code) || between(0x61, 0x7a)(code) || code === 0x5f;
const isSpace: Accepts = (code) => /\s/.test(String.fromCharCode(code));
const not =
  (accepts: Accepts): Accepts =>
  (code) =>
    !accepts(code);

const CLASSES: ReadonlyMap<string, Accepts> = new Map([
  ["d", isDigit],
  ["D", not(isDigit)],
  ["w", isWord],
  ["W", not(isWord)],
  ["s", isSpace],
  ["S", not(isSpace)],
]);
const CONTROLS: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
]);

/** In either case: the other case of a letter is accepted as well. */
function inEitherCase(accepts: Accepts): Accepts {
  return (code) => {
    if (accepts(code)) return true;
    const letter = String.fromCharCode(code);
    const lower = letter.toLowerCase();
    const other = lower === letter ? letter.toUpperCase() : lower;
    return other.length === 1 && other !== letter && accepts(other.charCodeAt(0));
  };
}

/** Recursive descent over the pattern; its depth is bounded by the length of the pattern. */
class Parser {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#pattern.length) throw new PatternError(`unexpected ${this.#peek()}`);
    return node;
  }

  #peek(): string {
    return this.#pattern[this.#at] ?? "";
  }

  #take(): string {
    const character = this.#peek();
    if (character === "") throw new PatternError("the pattern ends too early");
    this.#at++;
    return character;
  }

  #skip(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #choice(): Node {
    const options = [this.#sequence()];
    while (this.#skip("|")) options.push(this.#sequence());
    return options.length === 1 ? (options[0] as Node) : { kind: "choice", options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#peek() !== "" && this.#peek() !== "|" && this.#peek() !== ")") parts.push(this.#repeated());
    return { kind: "sequence", parts };
  }

  #repeated(): Node {
    let part = this.#single();
    for (;;) {
      const range = this.#range();
      if (!range) return part;
      // Lazy or greedy makes no difference to whether it matches.
      this.#skip("?");
      part = { kind: "repeat", part, ...range };
    }
  }

  #range(): { least: number; most: number } | undefined {
    if (this.#skip("*")) return { least: 0, most: Number.POSITIVE_INFINITY };
    if (this.#skip("+")) return { least: 1, most: Number.POSITIVE_INFINITY };
    if (this.#skip("?")) return { least: 0, most: 1 };
    const counted = /^\{(\d+)(,(\d*))?\}/.exec(this.#pattern.slice(this.#at, this.#at + 20));
    if (!counted) return undefined;
    this.#at += counted[0].length;
    const least = Number(counted[1]);
    const open = counted[2] !== undefined && counted[3] === "";
    const most = open ? Number.POSITIVE_INFINITY : Number(counted[3] ?? counted[1]);
    if (least > MAX_REPEAT || (most > MAX_REPEAT && !open)) {
      throw new PatternError(`more than ${MAX_REPEAT} repetitions`);
    }
    if (most < least) throw new PatternError("a repetition that ends before it begins");
    return { least, most };
  }

  #single(): Node {
    const character = this.#take();
    switch (character) {
      case "(":
        return this.#group();
      case "[":
        return { kind: "character", accepts: inEitherCase(this.#set()) };
      case ".":
        return { kind: "character", accepts: not((code) => code === 0x0a) };
      case "^":
        return { kind: "assertion", assertion: "start" };
      case "$":
        return { kind: "assertion", assertion: "end" };
      case "\\":
        return this.#escape();
      case "*":
      case "+":
      case "?":
        throw new PatternError(`nothing to repeat before ${character}`);
      default:
        return this.#literal(character);
    }
  }

  #literal(character: string): Node {
    const code = character.charCodeAt(0);
    return { kind: "character", accepts: inEitherCase((other) => other === code) };
  }

  #group(): Node {
    if (this.#skip("?")) {
      if (this.#skip("=") || this.#skip("!") || this.#skip("<=") || this.#skip("<!")) {
        throw new PatternError("look-around is not supported");
      }
      if (this.#skip("<")) while (this.#take() !== ">");
      else if (!this.#skip(":")) throw new PatternError("flags inside a pattern are not supported");
    }
    const node = this.#choice();
    if (!this.#skip(")")) throw new PatternError("a group is not closed");
    return node;
  }

  #escape(): Node {
    const character = this.#take();
    if (character === "b") return { kind: "assertion", assertion: "boundary" };
    if (character === "B") return { kind: "assertion", assertion: "inside" };
    const accepts = CLASSES.get(character);
    if (accepts) return { kind: "character", accepts };
    return this.#literal(this.#escaped(character));
  }

  #escaped(character: string): string {
    if (/[1-9k]/.test(character)) throw new PatternError("backreferences are not supported");
    const control = CONTROLS.get(character);
    if (control !== undefined) return control;
    if (/[A-Za-z0-9]/.test(character)) throw new PatternError(`\\${character} is not supported`);
    return character;
  }

  #set(): Accepts {
    const negated = this.#skip("^");
    const members: Accepts[] = [];
    for (let first = true; first || this.#peek() !== "]"; first = false) members.push(this.#member());
    this.#take();
    const any: Accepts = (code) => members.some((accepts) => accepts(code));
    return negated ? not(inEitherCase(any)) : any;
  }

  #member(): Accepts {
    const from = this.#take();
    const group = from === "\\" ? CLASSES.get(this.#peek()) : undefined;
    if (group) {
      this.#take();
      return group;
    }
    const first = from === "\\" ? this.#escaped(this.#take()) : from;
    const isRange = this.#peek() === "-" && this.#pattern[this.#at + 1] !== "]";
    if (!isRange) return (code) => code === first.charCodeAt(0);
    this.#take();
    const to = this.#take();
    const last = to === "\\" ? this.#escaped(this.#take()) : to;
    if (last < first) throw new PatternError(`${first}-${last} is out of order`);
    return between(first.charCodeAt(0), last.charCodeAt(0));
  }
}

interface Machine {
  states: State[];
  steps: number;
}

/** Adds the states of `node`, which go on at `next`; answers the state it begins at. */
function compile(node: Node, next: number, machine: Machine): number {
  const { states } = machine;
  if (++machine.steps > MAX_STEPS) throw new PatternError("the pattern is too large");
  const add = (state: State): number => {
    if (states.length >= MAX_STATES) throw new PatternError("the pattern is too large");
    return states.push(state) - 1;
  };
  switch (node.kind) {
    case "character":
    case "assertion":
      return add({ ...node, next });
    case "sequence":
      return node.parts.reduceRight((after, part) => compile(part, after, machine), next);
    case "choice":
      return add({ kind: "split", next: node.options.map((option) => compile(option, next, machine)) });
    case "repeat": {
      const { part, least, most } = node;
      let after = next;
      if (most === Number.POSITIVE_INFINITY) {
        const loop = { kind: "split" as const, next: [next] };
        after = add(loop);
        loop.next.push(compile(part, after, machine));
      } else {
        for (let count = least; count < most; count++) {
          after = add({ kind: "split", next: [next, compile(part, after, machine)] });
        }
      }
      for (let count = 0; count < least; count++) after = compile(part, after, machine);
      return after;
    }
  }
}

function holds(assertion: Assertion, text: string, at: number): boolean {
  if (assertion === "start") return at === 0;
  if (assertion === "end") return at === text.length;
  const before = at > 0 && isWord(text.charCodeAt(at - 1));
  const after = at < text.length && isWord(text.charCodeAt(at));
  return (before !== after) === (assertion === "boundary");
}

/** Throws a PatternError for what is no pattern, or none that can be had in linear time. */
export function compilePattern(pattern: string): Pattern {
  if (pattern.length > MAX_CHARACTERS)
    throw new PatternError(`it is longer than ${MAX_CHARACTERS} characters`);
  const states: State[] = [{ kind: "match" }];
  const start = compile(new Parser(pattern).parse(), 0, { states, steps: 0 });
  /** At which character a state was last entered, so that each is entered once. */
  const entered = new Int32Array(states.length);

  /** The states that wait for a character at `at`, reached from `seeds`; undefined once the pattern has matched. */
  function closure(seeds: readonly number[], text: string, at: number): number[] | undefined {
    const waiting: number[] = [];
    const open = [...seeds];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (entered[id] === at + 1) continue;
      entered[id] = at + 1;
      const state = states[id] as State;
      if (state.kind === "match") return undefined;
      if (state.kind === "character") waiting.push(id);
      else if (state.kind === "split") open.push(...state.next);
      else if (holds(state.assertion, text, at)) open.push(state.next);
    }
    return waiting;
  }

  return {
    test(text) {
      entered.fill(0);
      let seeds: number[] = [];
      for (let at = 0; at <= text.length; at++) {
        const waiting = closure([...seeds, start], text, at);
        if (!waiting) return true;
        const code = text.charCodeAt(at);
        seeds = [];
        for (const id of waiting) {
          const state = states[id] as State;
          if (state.kind === "character" && state.accepts(code)) seeds.push(state.next);
        }
      }
      return false;
    },
  };
}
