/** Reads the tables of bench/figures, as `npm run bench -- all --markdown` writes them. Pure. */

export interface Figure {
  scenario: string;
  case: string;
  metric: string;
  /** The median. */
  value: number;
  unit: string;
  /** The difference to the baseline, in the same unit; undefined: the row has none. */
  over: number | undefined;
}

const numberOf = (text: string): number => Number(text.replaceAll(",", ""));

/** Each row with a number. A row without a case belongs to the case above it. */
export function readFigures(page: string): Figure[] {
  const figures: Figure[] = [];
  let scenario = "";
  let name = "";
  for (const line of page.split("\n")) {
    scenario = /^#{2,3} (.+)/.exec(line)?.[1] ?? scenario;
    const [, first, metric = "", median = "", over = ""] = line.split("|").map((cell) => cell.trim());
    if (first === undefined) continue;
    if (first !== "") name = first;
    const [, digits, unit = ""] = /^([\d.,]+) (\S+)/.exec(median.replace(/:$/, "")) ?? [];
    if (digits === undefined) continue;
    const [, difference] = /^([+-][\d.,]+) /.exec(over) ?? [];
    figures.push({
      scenario,
      case: name,
      metric,
      value: numberOf(digits),
      unit: unit.replace(/:$/, ""),
      over: difference === undefined ? undefined : numberOf(difference),
    });
  }
  return figures;
}

/** On which machine the figures were made, with which Pi, and when. */
export const machineOf = (page: string): string | undefined =>
  /^.*, \d+ cores?, .*Pi \d.*, \d{4}-\d\d-\d\d/m.exec(page)?.[0];

/** Throws an error if the figures have no such row. */
export function figureOf(figures: readonly Figure[], scenario: string, name: string, metric: string): Figure {
  const found = figures.find(
    (figure) => figure.scenario === scenario && figure.case === name && figure.metric === metric,
  );
  if (!found) throw new Error(`the figures have no row ${scenario} | ${name} | ${metric}`);
  return found;
}
