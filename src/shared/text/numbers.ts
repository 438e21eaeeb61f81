/** Numbers in texts that a number of JavaScript, an IEEE 754 double, cannot hold. Pure. */

/** `source`: the text of a value that is no list and no object. Older engines tell nothing. */
type Revived = { source?: string } | undefined;

/** False for a whole number that would become another one, and for one beyond the range. `text`: a decimal number. */
export function isExact(text: string): boolean {
  const number = Number(text);
  return Number.isFinite(number) && (!/^[+-]?\d+$/.test(text) || BigInt(number) === BigInt(text));
}

/** Like `JSON.parse`, and throws for a number that would be sent as another one. */
export const parseArguments = (json: string): unknown =>
  JSON.parse(json, (_key, value: unknown, context?: Revived) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || isExact(source)) return value;
    const sent = JSON.stringify(value);
    throw new Error(
      `the number ${source.slice(0, 40)} would be sent as ${sent}: write it as a text if the tool takes one`,
    );
  });

/** Of Node 22 and later (ECMA-262, JSON.rawJSON): `JSON.stringify` writes the text as it is. */
const { rawJSON: rawJson } = JSON as { rawJSON?: (text: string) => unknown };

/** Only a text with such a run of digits, or with an exponent, may hold a number that parsing changes. */
const MAY_CHANGE = /\d{16}|\d\.\d{15}|\d[eE][+-]?\d/;

/** Like `JSON.parse`; `JSON.stringify` then writes each number as the text has it. Such a value is only for that. */
export const parseToPrint = (json: string): unknown =>
  MAY_CHANGE.test(json)
    ? JSON.parse(json, (_key, value: unknown, context?: Revived) => {
        const source = context?.source;
        return typeof value === "number" && source !== undefined && String(value) !== source
          ? (rawJson?.(source) ?? value)
          : value;
      })
    : JSON.parse(json);
