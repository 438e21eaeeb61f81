/**
 * Checks an object key by key, and turns zod's issues into words: what is wrong, and what to write instead. Never
 * shows a value, which could be a secret. Pure.
 */
import * as z from "zod";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { slipsBetween } from "../../../../src/shared/text/reading.ts";
import { foreignKey } from "./foreign-keys.ts";

export interface Mistake {
  severity: "error" | "warning";
  /** Path of the key below the checked object; empty for the object itself. */
  path: string[];
  message: string;
  remedy: string;
  /** The known key in whose place an unknown one probably stands. */
  meant?: string;
}

export const mistake = (path: string[], message: string, remedy: string): Mistake => ({
  severity: "error",
  path,
  message,
  remedy,
});

export const warning = (path: string[], message: string, remedy: string): Mistake => ({
  ...mistake(path, message, remedy),
  severity: "warning",
});

/** Errors with what counts before they are mended. */
export const untilMended = (mistakes: readonly Mistake[], until: string): Mistake[] =>
  mistakes.map((one) => (one.severity === "error" ? { ...one, remedy: `${one.remedy} ${until}` } : one));

type Issue = z.core.$ZodIssue;
/** Schemas by key. Reading a key may make its schema. */
type Shape = Record<string, z.ZodType>;

const EXPECTED: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

/** The kind of a value in words, for example `a number`. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );

/**
 * The message for a value that fits none of several shapes. If one shape nearly fits: what is wrong inside the value.
 */
function unionMessage(issue: z.core.$ZodIssueInvalidUnion, value: unknown): { path: string[]; text: string } {
  const inner = issue.errors.flat().find((nested) => nested.path.length > 0);
  if (inner) return { path: inner.path.map(String), text: issueMessage(inner, valueAt(value, inner.path)) };
  const shapes = issue.errors.flat().map((nested) => expectationOf(nested));
  return {
    path: [],
    text: `expected ${[...new Set(shapes)].filter(Boolean).join(" or ")}, found ${kindOf(value)}`,
  };
}

function expectationOf(issue: Issue): string {
  if (issue.code === "invalid_type") return EXPECTED[issue.expected] ?? String(issue.expected);
  if (issue.code === "invalid_value") return issue.values.map((value) => JSON.stringify(value)).join(", ");
  return "";
}

function issueMessage(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${expectationOf(issue)}, found ${kindOf(value)}`;
    case "invalid_value":
      return `expected one of ${expectationOf(issue)}`;
    case "too_small":
      if (issue.origin === "string") return "must not be empty";
      return `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    case "invalid_union":
      return unionMessage(issue, value).text;
    default:
      return issue.message.replace(/^Invalid input: /, "");
  }
}

const exampleOf = (shape: Shape, key: string | undefined): unknown => {
  const field = key !== undefined && Object.hasOwn(shape, key) ? shape[key] : undefined;
  return (field?.meta()?.examples as unknown[] | undefined)?.[0];
};

function remedyOf(shape: Shape, path: readonly string[], value: unknown): string {
  const [key] = path;
  if (path.length > 1 && ["number", "boolean"].includes(typeof value)) return "Put the value in quotes.";
  const example = exampleOf(shape, key);
  return example === undefined
    ? "Correct or remove this key."
    : `Write for example ${JSON.stringify(key)}: ${JSON.stringify(example)}.`;
}

/** An issue of `value` as a mistake. */
function explainIssue(shape: Shape, value: unknown, issue: Issue): Mistake {
  const base = issue.path.map(String);
  const wrong = valueAt(value, issue.path);
  const remedy = remedyOf(shape, base, wrong);
  if (issue.code !== "invalid_union") return mistake(base, issueMessage(issue, wrong), remedy);
  const { path, text } = unionMessage(issue, wrong);
  return mistake([...base, ...path], text, remedy);
}

/** The shape of the object that a field may hold, beside values of other kinds. */
function objectOf(field: z.ZodType | undefined): Shape | undefined {
  if (field instanceof z.ZodOptional) return objectOf(field.unwrap() as z.ZodType);
  if (field instanceof z.ZodUnion) {
    return field.options.map((option) => objectOf(option as z.ZodType)).find((shape) => shape !== undefined);
  }
  return field instanceof z.ZodObject ? (field.shape as Shape) : undefined;
}

/**
 * The first mistakes of one kind, and a last one that counts the others. A hostile file can hold half a million
 * mistakes, and nobody reads more than the first ones.
 */
export function firstOf<T>(all: readonly T[], explain: (one: T) => Mistake, path: string[] = []): Mistake[] {
  const first = all.slice(0, LIMITS.problemsPerFile).map(explain);
  const [sample] = first;
  if (!sample || all.length === first.length) return first;
  const count = (all.length - first.length).toLocaleString("en");
  const remedy = "Correct these first; the others are reported then.";
  return [...first, { severity: sample.severity, path, message: `and ${count} more such mistakes`, remedy }];
}

/** Whether nothing is lost with the value: other programs write empty lists, and a list of all tools. */
const saysNothing = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.every((one) => one === "*"));

/**
 * A mistake for each unknown key of the object itself, with the key that was probably meant: an error if that is one of
 * `protecting` and its value says something, or else a warning.
 */
export function unknownKeys(shape: Shape, value: object, protecting: readonly string[] = []): Mistake[] {
  const known = Object.keys(shape);
  const unknown = Object.keys(value).filter(
    (key) => !known.includes(key) && !key.startsWith("$") && !key.startsWith("//"),
  );
  return firstOf(unknown, (key) => {
    const { what, remedy, widens } = foreignKey(key, known) ?? {};
    const near = nearestKey(key, known);
    if (!near) return warning([key], "unknown key, it has no effect", "Remove it.");
    const told = mistake([key], what ?? `unknown key, did you mean "${near}"?`, remedy ?? `Write "${near}".`);
    const isError = protecting.includes(near) && !widens && !saysNothing(value[key as keyof typeof value]);
    return { ...told, severity: isError ? "error" : "warning", meant: near };
  });
}

/** A warning for each unknown key in the objects that its keys hold, such as `oauth`. */
function unknownKeysBelow(shape: Shape, value: object): Mistake[] {
  return Object.entries(value).flatMap(([key, below]) => {
    const field = isObject(below) && Object.hasOwn(shape, key) ? objectOf(shape[key]) : undefined;
    if (!field) return [];
    const found = [...unknownKeys(field, below), ...unknownKeysBelow(field, below)];
    return found.map((mistake) => ({ ...mistake, path: [key, ...mistake.path] }));
  });
}

/** Keys that hold names of tools. Each name is compared with every tool of a server, under several names. */
const RULE_KEYS: readonly string[] = [
  "approve",
  "approveTools",
  "directTools",
  "excludeTools",
  "includeTools",
  "searchKeywords",
  "toolExposure",
  "tools",
];

/** The items of a list, or the keys of an object. */
function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.keys(value) : [];
}

/** The mistake of a value that is too large to check item by item, or to compare with every tool. */
function tooMuch(key: string, value: unknown): Mistake | undefined {
  const items = itemsOf(value);
  const isRule = RULE_KEYS.includes(key);
  const most = isRule ? LIMITS.toolRules : LIMITS.configItems;
  if (items.length > most) {
    const count = `has ${items.length.toLocaleString("en")} items, at most ${most.toLocaleString("en")} are possible`;
    const remedy = isRule ? "Write patterns with *, which stands for any characters." : "Remove some.";
    return mistake([key], count, remedy);
  }
  const isLong = (item: unknown): boolean => typeof item === "string" && item.length > LIMITS.toolRuleChars;
  if (!isRule || !items.some(isLong)) return undefined;
  const message = `holds a name of more than ${LIMITS.toolRuleChars} characters`;
  return mistake([key], message, "Write a shorter pattern with *.");
}

type Checked<S extends Shape> = z.infer<z.ZodObject<S, z.core.$loose>>;

/**
 * Checks one object, all of whose keys are optional. Gives its mistakes, and its data if there is no error. Goes key
 * by key, so that only the schemas of existing keys are made. `protecting`: keys that must not be missed for a slip.
 */
export function check<S extends Shape>(
  shape: S,
  value: object,
  protecting: readonly string[] = [],
): { data: Checked<S> | undefined; mistakes: Mistake[] } {
  const data: Record<string, unknown> = { ...value };
  const errors: Mistake[] = [];
  for (const key of Object.keys(shape)) {
    if (!Object.hasOwn(value, key)) continue;
    const mistake = tooMuch(key, data[key]);
    if (mistake) {
      errors.push(mistake);
      continue;
    }
    const checked = z.safeParse(shape[key] as z.ZodType, data[key]);
    if (checked.success) data[key] = checked.data;
    else {
      const explain = (issue: Issue): Mistake =>
        explainIssue(shape, value, { ...issue, path: [key, ...issue.path] });
      errors.push(...firstOf(checked.error.issues, explain, [key]));
    }
  }
  const unknown = [...unknownKeys(shape, value, protecting), ...unknownKeysBelow(shape, value)];
  const mistakes = [...errors, ...unknown];
  const isWrong = mistakes.some(({ severity }) => severity === "error");
  return { data: isWrong ? undefined : (data as Checked<S>), mistakes };
}

/** A longer key is not compared, so that a hostile file cannot make this slow. */
const COMPARED_CHARS = 40;

const plain = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, "");

/** Undefined if no known key is near. Near: one slip for every three letters of the word, two slips at most. */
export function nearestKey(key: string, known: readonly string[]): string | undefined {
  if (key.length > COMPARED_CHARS) return undefined;
  const other = foreignKey(key, known);
  if (other) return other.ours;
  const limit = Math.min(2, Math.floor(key.length / 3));
  const wanted = plain(key);
  let best: { key: string; slips: number } | undefined;
  for (const candidate of known) {
    const slips = slipsBetween(wanted, plain(candidate), limit);
    if (slips <= limit && slips < (best?.slips ?? Number.POSITIVE_INFINITY)) best = { key: candidate, slips };
  }
  return best?.key;
}
