/** Draws the view of one server: what is known of it, and the menu. Pure. */
import { signInText } from "../../../report/sign-in.ts";
import type { ServerStatus } from "../../../shared/protocol/status.ts";
import { offerText } from "../../../shared/text/counts.ts";
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

function costLine(status: ServerStatus, { costs }: World): string {
  const cost = costs.get(status.name);
  const offer = offerText(status);
  if (!cost) return offer;
  if (!cost.isWhole) return `${offer} · counting tokens`;
  return `${offer} · ${cost.declaredTools} declared (~${tokensText(cost.declared)} of ~${tokensText(cost.all)} tokens)`;
}

function facts(status: ServerStatus, world: World): Parts[] {
  const { source, pid, protocol, transport, lifecycle, signIn } = status;
  const process = [
    transport,
    ...(pid === undefined ? [] : [`pid ${pid}`]),
    ...(protocol === undefined ? [] : [`MCP ${clean(protocol)}`]),
    lifecycle,
  ];
  return [
    fact("runs", process.join(" · ")),
    fact("from", withTilde(source, world.home)),
    fact("tools", costLine(status, world)),
    ...(signIn ? [fact("sign-in", signInText(signIn, world.now))] : []),
  ];
}

export function serverPicture(
  { server, list }: { server: string; list: ListState },
  world: World,
  { width }: Area,
): Picture {
  const status = statusOf(world, server);
  const rows = status ? menuOf(status) : [];
  const at = chosenAt(list, rows);
  const mark = status && markOf(status);
  const labelCells = Math.max(0, ...rows.map(({ label }) => label.length));
  const words = status?.error ? wordsOf(status, world) : undefined;
  return {
    title: clean(server),
    subtitle: mark ? `${mark.sign} ${mark.word}` : "",
    head: [
      ...(status ? facts(status, world) : []),
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
