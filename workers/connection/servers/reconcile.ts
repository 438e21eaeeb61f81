/** Which servers a plan creates, replaces, keeps and removes, given those that exist. Pure. */
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Plan } from "../config/plan/plan.ts";

export type Step =
  /** `replaces`: a server of this name exists; it finishes its calls and is closed. */
  | { action: "create"; name: string; definition: ServerDefinition; replaces: boolean }
  /** The server that exists takes this definition, which may say the same as before. */
  | { action: "keep"; name: string; definition: ServerDefinition }
  /** The server, if it exists, finishes its calls and is closed. */
  | { action: "remove"; name: string };

/** `before`: names of the servers that exist. Steps are in the order of the plan. */
export function reconcile(before: ReadonlySet<string>, { servers }: Pick<Plan, "servers">): Step[] {
  return servers.map((change): Step => {
    const { name } = change;
    if (change.action === "stop") return { action: "remove", name };
    const definition = change.after;
    const isThere = before.has(name);
    const isKept = isThere && (change.action === "update" || change.action === "keep");
    return isKept
      ? { action: "keep", name, definition }
      : { action: "create", name, definition, replaces: isThere };
  });
}
