/** How the question shows a value: as it is written, or, if it may be a secret, only where it comes from. Pure. */
import { variablesIn } from "../entry/interpolate.ts";
import { quoted, shown } from "../entry/shown-text.ts";

/** Whether the value is a whole `!command`; `!!` stands for a literal `!`. */
export const isCommand = (value: string): boolean => /^!(?!!)/.test(value);

export const fromCommand = (value: string): string => `from running ${quoted(value.slice(1))}`;

/** Where a value comes from, without the value. */
function origin(value: string): string {
  const { names, hasText, hasDefault } = variablesIn(value);
  if (names.length === 0) return value === "" ? "empty" : `${value.length} characters`;
  const from = `${hasText ? "text with" : "from"} ${names.map((name) => `$${name}`).join(", ")}`;
  return hasDefault ? `${from}, or a default` : from;
}

/** A value that may be a secret. */
export const withOrigin = (what: string, value: string): string =>
  isCommand(value) ? `${what} ${fromCommand(value)}` : `${what} (${origin(value)})`;

/** A value that is not a secret. */
export const withValue = (what: string, value: string, show: (text: string) => string = shown): string =>
  `${what} ${isCommand(value) ? fromCommand(value) : show(value)}`;

/** Every text in a value, however deep. */
export const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
};
