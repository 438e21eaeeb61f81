/**
 * Which patterns every provider takes. Providers hand a pattern to an engine of their own: OpenAI to one without
 * lookaround, back references and sets of Unicode, and llama.cpp makes a grammar of it, which must begin with `^`, end with
 * `$` and hold literals, classes, groups and repetitions alone (json-schema-to-grammar.cpp, llama-grammar.cpp). One
 * pattern of another kind fails every request. The rule is conservative: a pattern that it cannot judge counts as refused.
 * Pure.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";

/** `value`: the pattern of a value. `name`: a pattern of names, of which llama.cpp makes no grammar. */
export type PatternUse = "value" | "name";

/** llama.cpp refuses a repetition from here on. */
export const REPETITIONS = 2_000;

const PRINTABLE = /^[ -~]$/;
/** What llama.cpp takes behind a backslash, outside of a class and within one. */
const ESCAPED = /^\\[\^$.[\]()|{}*+?\\nrt]$/;
const ESCAPED_IN_CLASS = /^\\[\]\\\-nrt]$/;
/** Operators of sets, or the start of a class, in the classes of Rust's engine. */
const SET_OPERATORS = /\[|&&|--|~~/;

const isOneOf = (raw: string, escaped: RegExp): boolean => PRINTABLE.test(raw) || escaped.test(raw);

function isPlainClass({ raw, elements }: AST.CharacterClass): boolean {
  if (elements.length === 0) return false;
  return (
    elements.every((element) => {
      if (element.type === "Character") return isOneOf(element.raw, ESCAPED_IN_CLASS);
      if (element.type !== "CharacterClassRange") return false;
      return [element.min, element.max].every((end) => isOneOf(end.raw, ESCAPED_IN_CLASS));
    }) && !SET_OPERATORS.test(raw.slice(1))
  );
}

/** Whether llama.cpp makes of the part what it means. */
function isPlain(node: AST.Element): boolean {
  switch (node.type) {
    case "Character":
      return isOneOf(node.raw, ESCAPED);
    case "CharacterClass":
      return isPlainClass(node);
    case "CharacterSet":
      return node.kind === "any";
    case "Group":
    case "CapturingGroup":
      return isPlainGroup(node);
    case "Quantifier": {
      const { element, greedy, min, max } = node;
      // llama.cpp repeats an escaped character together with the literals before it.
      if (!greedy || element.raw.startsWith("\\")) return false;
      return min < REPETITIONS && (max === Infinity || max < REPETITIONS) && isPlain(element);
    }
    default:
      return false;
  }
}

function isPlainGroup(node: AST.Group | AST.CapturingGroup): boolean {
  if (node.type === "Group" ? node.modifiers : node.name !== null) return false;
  return node.alternatives.every(({ elements }) => elements.length > 0 && elements.every(isPlain));
}

/** Whether every engine for regular expressions knows the part. */
function isCommon(node: AST.Element): boolean {
  switch (node.type) {
    case "Character":
      return !node.raw.startsWith("\\u{");
    case "CharacterClass":
      return !SET_OPERATORS.test(node.raw.slice(1)) && !/\\[pPu]/.test(node.raw);
    case "CharacterSet":
      return node.kind !== "property";
    case "Group":
    case "CapturingGroup":
      if (node.type === "Group" ? node.modifiers : node.name !== null) return false;
      return node.alternatives.every(({ elements }) => elements.every(isCommon));
    case "Quantifier":
      return (
        node.min < REPETITIONS && (node.max === Infinity || node.max < REPETITIONS) && isCommon(node.element)
      );
    case "Assertion":
      return node.kind !== "lookahead" && node.kind !== "lookbehind";
    default:
      return false;
  }
}

function isWhole({ alternatives: [only, ...more] }: AST.Pattern): boolean {
  const first = only?.elements[0];
  const last = only?.elements.at(-1);
  if (first?.type !== "Assertion" || first.kind !== "start" || more.length > 0) return false;
  if (last?.type !== "Assertion" || last.kind !== "end") return false;
  const inner = (only as AST.Alternative).elements.slice(1, -1);
  return inner.length > 0 && inner.every(isPlain);
}

/** `source`: the source of a regular expression with the flag `u`. */
export function isTakenEverywhere(source: string, use: PatternUse): boolean {
  const parser = new RegExpParser({ ecmaVersion: 2025 });
  const pattern = parser.parsePattern(source, 0, source.length, { unicode: true });
  if (use === "value") return isWhole(pattern);
  return pattern.alternatives.every(({ elements }) => elements.every(isCommon));
}
