/** Reads the resources that an input names into the message, and suggests resources for what is being typed. */

import type { CompletionProvider, InputEvent, InputResult, PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import type { Runtime } from "../../runtime/contract.ts";
import {
  type CallResult,
  decode,
  type ReadResourceParams,
  type SuggestedResource,
} from "../../shared/protocol/calls.ts";
import { describeThrown } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { isTextBlock } from "../../shared/text/clean-blocks.ts";
import { cleanText, oneLine, shownName } from "../../shared/text/unprintable.ts";
import { printable, visibleWidth } from "../../shared/text/width.ts";

export interface ResourceHost {
  ask: Runtime["ask"];
  servers: () => string[];
  /** Settles when the configured servers are known, or after a moment. */
  planned: () => Promise<void>;
}

const START = /(?:^|[\s([{<`"'])@/g;
const SCHEME = /^[a-z][a-z0-9+.-]*:[^\s]/i;
/** Signs that more often belong to the sentence than to the URI. */
const SIGNS = ".,;:!?)]}>'\"`";

/** A loop, because an expression for the end of a text begins anew at each sign before the end. */
function withoutSigns(typed: string): string {
  let end = typed.length;
  while (end > 0 && SIGNS.includes(typed.charAt(end - 1))) end--;
  return typed.slice(0, end);
}

/** Each resource once, in the order of the text. `servers`: the known names; of two that fit, the longer one counts. */
export function mentionsIn(text: string, servers: readonly string[]): ReadResourceParams[] {
  const found = new Map<string, ReadResourceParams>();
  const byLength = [...servers].sort((a, b) => b.length - a.length);
  for (const { index, 0: start } of text.matchAll(START)) {
    const at = index + start.length;
    const server = byLength.find((name) => text.startsWith(`${name}:`, at));
    if (server === undefined) continue;
    const from = at + server.length + 1;
    const typed = /^\S*/.exec(text.slice(from, from + LIMITS.mentionChars + 1))?.[0] ?? "";
    const uri = withoutSigns(typed);
    if (!SCHEME.test(uri) || typed.length > LIMITS.mentionChars) continue;
    found.set(JSON.stringify([server, uri]), { server, uri });
  }
  return [...found.values()];
}

type Content = CallResult["content"];
type Suggestions = Awaited<ReturnType<CompletionProvider["getSuggestions"]>>;

const TITLE_CHARS = 200;
/** Pi begins a file's name at the same places. */
const TYPED = /(?:^|[\s([{<`])@(\S+)$/;
/** Pi's own suggestions wait no longer for ours. */
const SUGGEST_MS = 300;

/** A resource that cannot be read becomes a sentence: the model knows what is missing, and what is typed is not lost. */
async function read(host: ResourceHost, mention: ReadResourceParams, ctx: PiContext): Promise<Content> {
  const name = oneLine(`${shownName(mention.server)}:${mention.uri}`, TITLE_CHARS);
  try {
    const { content } = decode(await host.ask("readResource", mention)) as CallResult;
    return [{ type: "text", text: `[@${name}]` }, ...content];
  } catch (error) {
    const text = `@${name} could not be read: ${describeThrown(error)}`;
    notify(ctx, text, "warning");
    // Pi draws a message of the user as it is.
    return [{ type: "text", text: `[${printable(cleanText(text))}]` }];
  }
}

/** The text with the resources behind it. Images go beside those that the person attached. */
export async function readMentions(
  host: ResourceHost,
  { text, images = [] }: InputEvent,
  ctx: PiContext,
): Promise<InputResult> {
  await host.planned();
  const mentions = mentionsIn(text, host.servers());
  if (mentions.length === 0) return { action: "continue" };
  const most = LIMITS.resourcesInMessage;
  if (mentions.length > most)
    notify(ctx, `Only the first ${most} of ${mentions.length} resources are read.`, "warning");
  const parts = (
    await Promise.all(mentions.slice(0, most).map((mention) => read(host, mention, ctx)))
  ).flat();
  const texts = parts.filter(isTextBlock).map((part) => part.text);
  return {
    action: "transform",
    text: [text, ...texts].join("\n\n"),
    images: [...images, ...parts.filter((part) => !isTextBlock(part))],
  };
}

/** The completion so far, with resources where the text before the cursor may be a mention. */
export const withResources = (host: ResourceHost, current: CompletionProvider): CompletionProvider => ({
  ...(current.triggerCharacters && { triggerCharacters: current.triggerCharacters }),
  getSuggestions: (lines, line, column, options) => {
    const others = current.getSuggestions(lines, line, column, options);
    // No mention is longer, and the expression would begin anew at each `@` of a long line.
    const before = (lines[line] ?? "").slice(Math.max(0, column - LIMITS.mentionChars), column);
    const typed = TYPED.exec(before)?.[1];
    return typed === undefined ? others : suggest(host, typed, others);
  },
  applyCompletion: (...args) => current.applyCompletion(...args),
  shouldTriggerFileCompletion: (...args) => current.shouldTriggerFileCompletion?.(...args) ?? true,
});

/** Cells of a label in Pi's list. */
const LABEL_CELLS = 30;

/** Resources of one server begin alike, so the end of a long mention is shown. */
function labelOf(mention: string): string {
  const label = `@${mention}`;
  if (visibleWidth(label) <= LABEL_CELLS) return label;
  let from = 0;
  let cells = visibleWidth(label);
  for (const char of label) {
    if (cells < LABEL_CELLS) break;
    from += char.length;
    cells -= visibleWidth(char);
  }
  return `…${label.slice(from)}`;
}

/** Ours behind Pi's own, or alone once a server is named. `typed`: without the `@`. */
async function suggest(
  host: ResourceHost,
  typed: string,
  others: Promise<Suggestions>,
): Promise<Suggestions> {
  // Without an answer of the worker the person types on; the worker's own trouble is reported elsewhere.
  const asked = host.ask("suggestResources", { typed }).catch((): SuggestedResource[] => []);
  const isNamed = host.servers().some((name) => typed.startsWith(`${name}:`));
  const theirs = isNamed ? null : await others;
  const late = new Promise<[]>((resolve) => {
    setTimeout(() => resolve([]), theirs ? SUGGEST_MS : LIMITS.completionMs).unref();
  });
  const items = (await Promise.race([asked, late])).map(({ mention, title }) => ({
    value: `@${mention}`,
    label: labelOf(mention),
    description: title,
  }));
  if (items.length === 0) return others;
  const prefix = `@${typed}`;
  return { prefix, items: [...(theirs?.prefix === prefix ? theirs.items : []), ...items] };
}
