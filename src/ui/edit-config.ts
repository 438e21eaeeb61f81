/** Editing a configuration file within Pi. */
import type { PiContext } from "../pi/api.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { BOM } from "../shared/text/bom.ts";

/** Opens the user's file, or the project's, in Pi's editor. Answers in a sentence what became of it. */
export async function editConfig(project: boolean, ctx: PiContext, ask: Runtime["ask"]): Promise<string> {
  const { file, text: before } = await ask("readConfig", { project });
  // An editor may show a BOM as a character, or drop it, so the editor gets the text without it.
  const bom = before.startsWith(BOM) ? BOM : "";
  const text = before.slice(bom.length);
  if (!ctx.hasUI) return `Edit ${file}; the change is applied when it is saved.`;
  const edited = await ctx.ui.editor(file, text === "" ? '{\n  "mcpServers": {}\n}\n' : text);
  if (edited === undefined || edited === text) return `${file} is unchanged.`;
  await ask("writeConfig", { project, before, text: bom + edited });
  return `${file} is written.`;
}
