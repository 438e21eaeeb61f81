/** Draws a question of the panel. Pure. */
import { type ChoiceView, chosenAt } from "../model/model.ts";
import { type Area, listLines, type Picture, paragraph, pointer } from "./frame.ts";
import { cell, clean, part } from "./line.ts";

export function choicePicture({ title, text, options, list }: ChoiceView, { width }: Area): Picture {
  const at = chosenAt(list, options);
  const cells = Math.max(0, ...options.map(({ label }) => label.length));
  return {
    title: clean(title),
    head: [...paragraph(clean(text), width, 4, "text"), []],
    list: (rows) =>
      listLines({ count: options.length, at, rows, empty: "" }, (index, isChosen) => {
        const option = options[index];
        return [
          pointer(isChosen),
          part(cell(option?.label ?? "", cells), isChosen ? "accent" : "text"),
          part(option?.hint === undefined ? "" : `  ${option.hint}`, "muted"),
        ];
      }),
    hints: [
      ["↑↓", "move"],
      ["enter", "choose"],
      ["esc", "back"],
    ],
  };
}
