/**
 * Tells the model, with the next message, which servers and tools have come, changed and gone since it was told last: the
 * description that names them must not change, because any changed byte of a declaration costs the user their prompt
 * cache. Owns: the text and what of it the transcript keeps (run.ts, loaded with the first change). Keeps no state: what
 * the model knows stands in the description and in the earlier texts of the branch. Called by: tools.ts.
 */
import type { AddedMessage } from "../../pi/context.ts";
import type { describedPlan, NewsFacts } from "./run.ts";

export type { NewsBranch } from "./run.ts";

/** Undefined if the model knows what there is, or if the settings name nothing to it. */
export async function newsOf(facts: NewsFacts): Promise<AddedMessage | undefined> {
  const { tellNews } = await import("./run.ts");
  return tellNews(facts);
}

/** The description of the tool that finds others, for servers of the configuration that the catalog may lack. */
export async function describePlan(...plan: Parameters<typeof describedPlan>): Promise<string> {
  return (await import("./run.ts")).describedPlan(...plan);
}
