/** Draws bars of one quantity for several programs, some such groups below each other. Pure. */
import { escaped, round, SANS, svgOf } from "./svg.ts";

export interface Bar {
  name: string;
  value: number;
  /** The value as it is written behind the bar. */
  label: string;
  /** The bar of this package, which has a colour of its own. */
  isOurs: boolean;
}

export interface Group {
  title: string;
  bars: readonly Bar[];
}

export interface ChartOptions {
  title: string;
  /** Where the figures are from. */
  source: string;
  groups: readonly Group[];
}

const WIDTH = 760;
const PADDING = 20;
const NAMES = 130;
/** Room for the label behind the longest bar. */
const LABELS = 110;
const HEAD = 44;
const GROUP_TITLE = 26;
const BAR = 16;
const GAP = 6;
const GROUP_GAP = 16;
const FOOT = 30;

const CSS = [
  `text{font-family:${SANS};font-size:13px;fill:#1f2328}.title{font-size:16px;font-weight:600}.group{font-weight:600}`,
  ".source{font-size:11px;fill:#59636e}.card{fill:#ffffff;stroke:#d1d9e0}.ours{fill:#1a7f5a}.other{fill:#8c96a3}",
  "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.source{fill:#9198a1}.card{fill:#151b23;stroke:#3d444d}",
  ".ours{fill:#3fb68b}.other{fill:#6e7783}}",
].join("");

function groupSvg({ title, bars }: Group, top: number): string[] {
  const most = Math.max(...bars.map(({ value }) => value));
  const room = WIDTH - 2 * PADDING - NAMES - LABELS;
  const rows = bars.flatMap(({ name, value, label, isOurs }, i) => {
    const y = top + GROUP_TITLE + i * (BAR + GAP);
    const width = Math.max(1, (value / most) * room);
    const middle = y + BAR - 3.5;
    return [
      `<text x="${PADDING}" y="${middle}">${escaped(name)}</text>`,
      `<rect class="${isOurs ? "ours" : "other"}" x="${PADDING + NAMES}" y="${y}" width="${round(width)}" height="${BAR}" rx="2"/>`,
      `<text x="${round(PADDING + NAMES + width + 8)}" y="${middle}">${escaped(label)}</text>`,
    ];
  });
  return [`<text class="group" x="${PADDING}" y="${top + 14}">${escaped(title)}</text>`, ...rows];
}

const heightOf = ({ bars }: Group): number => GROUP_TITLE + bars.length * (BAR + GAP) + GROUP_GAP;

export function chartSvg({ title, source, groups }: ChartOptions): string {
  let top = HEAD + 10;
  const body = groups.flatMap((group) => {
    const drawn = groupSvg(group, top);
    top += heightOf(group);
    return drawn;
  });
  const height = top + FOOT;
  const card = `<rect class="card" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`;
  const head = `<text class="title" x="${PADDING}" y="30">${escaped(title)}</text>`;
  const foot = `<text class="source" x="${PADDING}" y="${height - 16}">${escaped(source)}</text>`;
  const said = groups
    .map((group) => `${group.title}: ${group.bars.map(({ name, label }) => `${name} ${label}`).join(", ")}`)
    .join(". ");
  return svgOf({
    title: `${title}. ${said}.`,
    width: WIDTH,
    height,
    css: CSS,
    body: [card, head, ...body, foot].join("\n"),
  });
}
