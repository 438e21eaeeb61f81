/** Draws lines over a number of something, one for each program, named at their ends. Pure. */
import { escaped, round, SANS, svgOf } from "./svg.ts";

export interface Series {
  name: string;
  /** For 1, 2, 3, ... */
  values: readonly number[];
  /** `main`: the one that the picture is about; `own`: the same program without it. */
  role: "main" | "own" | "other";
}

export interface LinesOptions {
  title: string;
  /** Where the figures are from. */
  source: string;
  /** Below the numbers 1, 2, 3, ... */
  axis: string;
  unit: string;
  /** The distance of two lines of the grid, in the unit of the values. */
  step: number;
  series: readonly Series[];
}

const WIDTH = 760;
const [LEFT, RIGHT, TOP, PLOT, FOOT] = [64, 170, 54, 260, 76];
/** Names at the ends of lines are at least so far apart. */
const NAME_GAP = 17;

const CSS = [
  `text{font-family:${SANS};font-size:13px;fill:#1f2328}.title{font-size:16px;font-weight:600}.source,.tick{font-size:11px;fill:#59636e}`,
  ".card{fill:#ffffff;stroke:#d1d9e0}.grid{stroke:#d1d9e0;stroke-width:1}path{fill:none;stroke-width:2}",
  ".main{stroke:#1a7f5a;stroke-width:3}.own{stroke:#1a7f5a;stroke-dasharray:6 4}.other{stroke:#8c96a3}",
  "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.source,.tick{fill:#9198a1}.card{fill:#151b23;stroke:#3d444d}",
  ".grid{stroke:#3d444d}.main{stroke:#3fb68b}.own{stroke:#3fb68b}.other{stroke:#6e7783}}",
].join("");

/** The heights of the names, from those of the ends of lines: in their order, and none over another. */
function namePlaces(ends: readonly number[]): number[] {
  const places = [...ends];
  const order = ends.map((_, index) => index).sort((a, b) => (ends[a] ?? 0) - (ends[b] ?? 0));
  let lowest = Number.NEGATIVE_INFINITY;
  for (const index of order) {
    lowest = Math.max(places[index] ?? 0, lowest + NAME_GAP);
    places[index] = lowest;
  }
  return places;
}

export function linesSvg({ title, source, axis, unit, step, series }: LinesOptions): string {
  const most = Math.max(...series.flatMap(({ values }) => values));
  const top = Math.ceil(most / step) * step;
  const count = Math.max(...series.map(({ values }) => values.length));
  const x = (index: number): number =>
    LEFT + (count === 1 ? 0 : (index / (count - 1)) * (WIDTH - LEFT - RIGHT));
  const y = (value: number): number => TOP + PLOT - (value / top) * PLOT;
  const grid = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step).flatMap(
    (value) => [
      `<line class="grid" x1="${LEFT}" y1="${round(y(value))}" x2="${WIDTH - RIGHT}" y2="${round(y(value))}"/>`,
      `<text class="tick" x="${LEFT - 8}" y="${round(y(value) + 4)}" text-anchor="end">${round(value)} ${escaped(unit)}</text>`,
    ],
  );
  const numbers = Array.from(
    { length: count },
    (_, index) =>
      `<text class="tick" x="${round(x(index))}" y="${TOP + PLOT + 18}" text-anchor="middle">${index + 1}</text>`,
  );
  const ends = series.map(({ values }) => y(values.at(-1) ?? 0));
  const places = namePlaces(ends);
  const lines = series.flatMap(({ name, values, role }, index) => {
    const points = values.map((value, at) => `${round(x(at))} ${round(y(value))}`);
    return [
      `<path class="${role}" d="M${points.join("L")}"/>`,
      `<text x="${WIDTH - RIGHT + 10}" y="${round((places[index] ?? 0) + 4)}">${escaped(name)}</text>`,
    ];
  });
  const height = TOP + PLOT + FOOT;
  const said = series
    .map(
      ({ name, values }) => `${name} from ${round(values[0] ?? 0)} to ${round(values.at(-1) ?? 0)} ${unit}`,
    )
    .join(", ");
  const body = [
    `<rect class="card" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    `<text class="title" x="20" y="30">${escaped(title)}</text>`,
    ...grid,
    ...numbers,
    `<text class="tick" x="${round((LEFT + WIDTH - RIGHT) / 2)}" y="${TOP + PLOT + 36}" text-anchor="middle">${escaped(axis)}</text>`,
    ...lines,
    `<text class="source" x="20" y="${height - 14}">${escaped(source)}</text>`,
  ];
  return svgOf({
    title: `${title}. From 1 to ${count} ${axis}: ${said}.`,
    width: WIDTH,
    height,
    css: CSS,
    body: body.join("\n"),
  });
}
