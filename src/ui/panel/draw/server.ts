/** Draws the view of one server: what is known of it, and the menu. Pure. */
import { signInText } from "../../../report/sign-in.ts";
import type { ServerDetails } from "../../../shared/protocol/panel.ts";
import type { ServerStatus } from "../../../shared/protocol/status.ts";
import { durationText, offerText } from "../../../shared/text/amounts.ts";
import { cutOff, wrap } from "../../../shared/text/width.ts";
import { chosenAt, type ListState, menuOf, statusOf, type World } from "../model/model.ts";
import { type Area, listLines, type Picture, paragraph, pointer } from "./frame.ts";
import { cell, clean, type Parts, part, withTilde } from "./line.ts";
import { markOf, tokensText, wordsOf } from "./state.ts";

const LABEL_CELLS = 9;
const fact = (label: string, value: string): Parts => [
  " ",
  part(cell(label, LABEL_CELLS), "muted"),
  " ",
  part(value, "text"),
];

/** On two lines at most. */
function longFact(label: string, value: string, width: number): Parts[] {
  const cells = Math.max(1, width - LABEL_CELLS - 3);
  const { lines, rest } = wrap(value, cells, 2);
  const [first = "", second] = lines;
  if (second === undefined) return [fact(label, first)];
  return [fact(label, first), fact("", rest < value.length ? cutOff(second, cells) : second)];
}

const exposureCounts = ({ tools }: ServerDetails): string => {
  const count = (wanted: string): number => tools.exposures.filter((one) => one === wanted).length;
  const words = [
    [count("direct"), "direct"],
    [count("search"), "deferred"],
    [count("hidden"), "hidden"],
  ] as const;
  return words
    .flatMap(([number, word]) => (number > 0 ? [`${number.toLocaleString("en")} ${word}`] : []))
    .join(" · ");
};

function toolsText(status: ServerStatus, { costs, details }: World): string {
  const cost = costs.get(status.name);
  const known = details.get(status.name);
  const offer = known && known.tools.names.length > 0 ? exposureCounts(known) : offerText(status);
  if (!cost) return offer;
  if (!cost.isWhole) return `${offer} · counting tokens`;
  return `${offer} · ${tokensText(cost.declared)}/${tokensText(cost.all)} tokens`;
}

function fromText({ source }: ServerStatus, details: ServerDetails | undefined): string {
  const file = details?.line === undefined ? source : `${source}:${details.line}`;
  const { overrides = [] } = details ?? {};
  return [file, ...overrides.map((one) => `changed by ${one}`)].join(", ");
}

function facts(status: ServerStatus, world: World, width: number): Parts[] {
  const { pid, protocol, transport, lifecycle, signIn, name } = status;
  const details = world.details.get(name);
  const { home, now } = world;
  const process = [
    transport,
    ...(details?.connectedAt === undefined || status.state !== "connected"
      ? [lifecycle]
      : [`up ${durationText(Math.max(0, now - details.connectedAt))}`]),
    ...(pid === undefined ? [] : [`pid ${pid}`]),
    ...(protocol === undefined ? [] : [`MCP ${clean(protocol)}`]),
    ...(details?.timeouts ?? []),
  ];
  const env =
    details && details.env.length > 0
      ? [fact(transport === "stdio" ? "env" : "headers", clean(details.env.join(", ")))]
      : [];
  const runs = details ? longFact("runs", withTilde(details.runs, home), width) : [];
  return [
    ...runs,
    ...(details?.cwd === undefined ? [] : [fact("in", withTilde(details.cwd, home))]),
    ...env,
    fact("from", withTilde(fromText(status, details), home)),
    fact("process", process.join(" · ")),
    fact("tools", toolsText(status, world)),
    ...(signIn ? [fact("sign-in", signInText(signIn, now))] : []),
  ];
}

export function serverPicture(
  { server, list }: { server: string; list: ListState },
  world: World,
  { width }: Area,
): Picture {
  const status = statusOf(world, server);
  const rows = status ? menuOf(status, world.details.get(server)) : [];
  const at = chosenAt(list, rows);
  const mark = status && markOf(status);
  const labelCells = Math.max(0, ...rows.map(({ label }) => label.length));
  const words = status?.error || status?.waits ? wordsOf(status, world) : undefined;
  return {
    title: clean(server),
    subtitle: mark ? `${mark.sign} ${mark.word}` : "",
    head: [
      ...(status ? facts(status, world, width) : []),
      ...(words ? paragraph(words.text, width, 3, words.colour) : []),
      [],
    ],
    list: (size) =>
      listLines({ count: rows.length, at, rows: size, empty: "This server is gone." }, (index, isChosen) => {
        const row = rows[index];
        return [
          pointer(isChosen),
          part(cell(row?.label ?? "", labelCells), isChosen ? "accent" : "text"),
          part(row?.value === undefined ? "" : `  ${clean(row.value)}`, "muted"),
        ];
      }),
    hints: [
      ["↑↓", "move"],
      ["enter", "choose"],
      ["esc", "back"],
    ],
  };
}
