/**
 * Rules of `approve` that look at one argument of a call: `run_sql(sql=select *)`. Owns: how such a rule is written, and when
 * it fits. A rule that allows fits narrowly, and one that asks or denies fits widely, so that what cannot be judged is asked
 * or denied and never allowed. A pattern compares texts: what a server makes of the text, it cannot know. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { matchesPattern } from "./patterns.ts";

interface ArgumentRule {
  /** Name or pattern of the tool. */
  tool: string;
  /** Name of the argument; a pattern in a rule that asks or denies. */
  argument: string;
  /** Pattern of its value. */
  value: string;
}

/** Characters of a value that a pattern is compared with, and values that are looked at within one argument. */
const MOST_CHARS = 65_536;
const MOST_VALUES = 1_000;

const RULE = /^([^(]+)\(([^=]+)=(.*)\)$/s;

/** Undefined: the key is the name or the pattern of a tool. */
export function readArgumentRule(key: string): ArgumentRule | undefined {
  if (!key.endsWith(")")) return undefined;
  const [, tool = "", argument = "", value = ""] = RULE.exec(key) ?? [];
  const rule = { tool: tool.trim(), argument: argument.trim(), value: value.trim() };
  return rule.tool === "" || rule.argument === "" ? undefined : rule;
}

/** Whether a name cannot stand for itself as a key of `approve`: it is such a rule, or would be taken for a broken one. */
export const isLikeRule = (name: string): boolean => /\(.*=/s.test(name);

/** What is wrong with a key of `approve`, and what to write; undefined: nothing. */
export function problemOfRule(key: string, rule: string): string | undefined {
  const about = readArgumentRule(key);
  if (!about) {
    return isLikeRule(key)
      ? "is no rule about an argument: write tool(argument=pattern), for example run_sql(sql=select *)"
      : undefined;
  }
  if (rule === "destructive") return "is about an argument: write allow, ask or deny";
  if (rule === "allow" && about.argument.includes("*"))
    return "allows by any argument: write the name of one; only ask and deny take a pattern there";
  return undefined;
}

/** Invisible characters, line ends and other control characters: a person who wrote the pattern did not mean them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
/** What a reader of URLs drops as well (UTS 46, section 4): a host with one of them is the host without it. */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

const isPlain = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

/** The whole value is one short plain text that the pattern fits, letter by letter. */
export const fitsNarrowly = ({ argument, value }: ArgumentRule, args: Record<string, unknown>): boolean => {
  const given = Object.hasOwn(args, argument) ? args[argument] : undefined;
  if (!isPlain(given)) return false;
  const text = String(given);
  return text.length <= MOST_CHARS && !UNSEEN.test(text) && matchesPattern(value, text);
};

/** One spelling for what reads alike: case, width and kind of letters, invisible characters, and white space. */
const plain = (text: string): string =>
  text
    // First, since what they divided composes only then, and once more, since some come from the composing.
    .replace(INVISIBLE, "")
    .normalize("NFKC")
    .replace(INVISIBLE, "")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .toLowerCase();

/** Every text within a value, names of keys included; undefined: there are too many, or one is too long. */
function textsIn(value: unknown): string[] | undefined {
  const texts: string[] = [];
  const open: unknown[] = [value];
  for (let seen = 0; open.length > 0; seen++) {
    if (seen > MOST_VALUES) return undefined;
    const one = open.pop();
    if (Array.isArray(one) || isObject(one)) {
      const entries = Object.entries(one);
      if (entries.length > MOST_VALUES) return undefined;
      for (const [key, inner] of entries) open.push(inner, ...(Array.isArray(one) ? [] : [key]));
    } else {
      const text = String(one);
      if (text.length > MOST_CHARS) return undefined;
      texts.push(plain(text));
    }
  }
  return texts;
}

const defaultsOf = (schema: unknown): Record<string, unknown> => {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, one]) =>
      isObject(one) && Object.hasOwn(one, "default") ? [[name, one.default]] : [],
    ),
  );
};

/**
 * The pattern fits a text anywhere within the argument, however it is spelled; an argument that is not given counts with the
 * default that the tool's schema declares. True as well if the value is too large to be judged.
 */
export function fitsWidely(
  { argument, value }: ArgumentRule,
  args: Record<string, unknown>,
  inputSchema: unknown,
): boolean {
  const [name, pattern] = [plain(argument), plain(value)];
  // JSON has no undefined: the server takes its default.
  const sent = Object.fromEntries(Object.entries(args).filter(([, given]) => given !== undefined));
  return Object.entries({ ...defaultsOf(inputSchema), ...sent }).some(([key, given]) => {
    if (!matchesPattern(name, plain(key))) return false;
    const texts = textsIn(given);
    return texts === undefined || texts.some((text) => matchesPattern(pattern, text));
  });
}
