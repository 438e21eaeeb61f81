/** What `*` means in names and values of the configuration. Pure. */

/** Whether a text fits a pattern. `*` stands for any characters. */
export function matchesPattern(pattern: string, text: string): boolean {
  const first = pattern.indexOf("*");
  if (first === -1) return pattern === text;
  const last = pattern.lastIndexOf("*");
  const end = text.length - (pattern.length - last - 1);
  if (end < first || !text.startsWith(pattern.slice(0, first)) || !text.endsWith(pattern.slice(last + 1)))
    return false;
  // Each middle part is taken where it first follows the part before: linear, whatever the pattern.
  let at = first;
  for (let from = first + 1; from <= last; ) {
    const star = pattern.indexOf("*", from);
    const part = pattern.slice(from, star);
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
    from = star + 1;
  }
  return true;
}

/** The patterns of each list that the other one holds, too: no tool is there that only one of them has. */
export const inBoth = (some: readonly string[], others: readonly string[]): string[] => [
  ...new Set(
    [
      [some, others],
      [others, some],
    ].flatMap(([these = [], those = []]) =>
      these.filter((one) => those.some((other) => matchesPattern(other, one))),
    ),
  ),
];
