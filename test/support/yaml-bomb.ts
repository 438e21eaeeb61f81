/** Owns: a short YAML that makes a large value. Each level names the one before it ten times. */
export function bombOf(levels: number): string {
  const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
  for (let level = 1; level <= levels; level++)
    lines.push(
      `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(", ")}]`,
    );
  return lines.join("\n");
}
