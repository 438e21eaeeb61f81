/** Halves of a character that takes two UTF-16 code units. Pure. */

/** Whether a code unit is the first half. */
export const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/** Whether a code unit is the second half. */
export const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** The text without a first half at its end: a cut may have taken the second half away. */
export const withoutHalfAtEnd = (text: string): string =>
  isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
