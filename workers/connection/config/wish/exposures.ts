/**
 * What becomes of tools: the decision about each, and the edits that change it. An edit sets exact names in `toolExposure`,
 * or takes them away again where the other rules say the same already, so that a change back leaves the file as it was.
 */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { type EntryEdit, editEntry } from "../edit/edit.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type Decision, decideExposure, type Exposure, exposureOf, namesInRules } from "../entry/exposure.ts";
import { UNSAFE_KEY } from "../entry/interpolate.ts";
import type { Settings } from "../entry/settings.ts";
import type { Edit } from "./edit-type.ts";

/** What decides about tools beside the server's own rules. */
export type Judged = Pick<Settings, "toolPrefix" | "directTools">;

export function decideIn(definition: ServerDefinition, settings: Judged): (tool: string) => Decision {
  const prefix = definition.toolPrefix ?? settings.toolPrefix;
  return (tool) =>
    decideExposure(tool, definition, settings.directTools, namesInRules(definition.name, tool, prefix));
}

/** As it is written: `search` is our word for what Pi calls deferred. */
const written = (to: Exposure): string => (to === "search" ? "deferred" : to);

const rulesIn = ({ entry }: EntryEdit, key: string): Record<string, unknown> | undefined =>
  isObject(entry[key]) ? (entry[key] as Record<string, unknown>) : undefined;

/** The exact rules of these tools go. */
function withoutRules(edit: EntryEdit, tools: readonly string[]): void {
  const rules = rulesIn(edit, "toolExposure");
  if (!rules) return;
  const kept = Object.keys(rules).filter((name) => !tools.includes(name));
  if (kept.length === 0) edit.remove(["toolExposure"]);
  else for (const tool of tools) if (Object.hasOwn(rules, tool)) edit.remove(["toolExposure", tool]);
}

/** `inherited`: rules of files below, which this file's rules would replace. */
function withRules(
  edit: EntryEdit,
  tools: readonly string[],
  { to, inherited }: { to: Exposure; inherited: Record<string, string> },
): void {
  if (rulesIn(edit, "toolExposure")) {
    for (const tool of tools) edit.set(["toolExposure", tool], written(to));
    return;
  }
  const own = Object.fromEntries(tools.map((tool) => [tool, written(to)]));
  edit.set(["toolExposure"], {
    ...own,
    ...Object.fromEntries(Object.entries(inherited).filter(([name]) => !Object.hasOwn(own, name))),
  });
}

/** The tools leave the lists of this file that hide them by their exact names, and join the list that lets others in. */
function unhidden(edit: EntryEdit, tools: readonly string[]): void {
  const { excludeTools, includeTools } = edit.entry;
  if (Array.isArray(excludeTools)) {
    for (let at = excludeTools.length - 1; at >= 0; at--) {
      if (tools.includes(String(excludeTools[at]))) edit.removeItem(["excludeTools"], at);
    }
  }
  if (Array.isArray(includeTools)) {
    const missing = tools.filter((tool) => !includeTools.includes(tool));
    if (missing.length > 0) edit.append(["includeTools"], missing);
  }
}

/** Rules of lower files, as they would be written. */
const inheritedRules = ({ raw }: ServerDefinition): Record<string, string> =>
  isObject(raw.toolExposure) ? (raw.toolExposure as Record<string, string>) : {};

export interface ExposureChange {
  server: string;
  /** The server's own names. */
  tools: readonly string[];
  /** These are all tools of the server. */
  all: boolean;
  to: Exposure;
  settings: Judged;
}

/** Edits of one file, the smallest first. */
export function exposureEdits(
  file: string,
  definition: ServerDefinition,
  { server, tools, all, to, settings }: ExposureChange,
): Edit[] {
  const names = tools.filter((tool) => tool !== UNSAFE_KEY);
  const inherited = file === definition.file ? {} : inheritedRules(definition);
  const isShown = to !== "hidden";
  const edit =
    (change: (edit: EntryEdit) => void): Edit =>
    (text) =>
      editEntry(text, server, file, change);
  const exact = edit((one) => {
    if (isShown) unhidden(one, names);
    withRules(one, names, { to, inherited });
  });
  const forgotten = edit((one) => {
    if (isShown) unhidden(one, names);
    withoutRules(one, names);
  });
  const whole = edit((one) => {
    one.set(["exposure"], written(to));
    if (isShown) unhidden(one, names);
    withoutRules(one, names);
  });
  // Exact rules only for the tools about which something else decides.
  const wholeAndExact = edit((one) => {
    one.set(["exposure"], written(to));
    if (isShown) unhidden(one, names);
    withoutRules(one, names);
    const rules = { ...definition, exposure: to };
    const prefix = definition.toolPrefix ?? settings.toolPrefix;
    const others = names.filter(
      (tool) => exposureOf(tool, rules, settings.directTools, namesInRules(server, tool, prefix)) !== to,
    );
    if (others.length > 0) withRules(one, others, { to, inherited });
  });
  return all ? [forgotten, whole, wholeAndExact, exact] : [forgotten, exact];
}
