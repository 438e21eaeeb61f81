/**
 * What a server says of a tool in `_meta`, as far as this client acts on it: MCP Apps' visibility and Claude Code's keys.
 * Servers are untrusted: each sign has one meaning for whatever is written there, and nothing else of `_meta` is kept.
 * Also says which addresses are pages of MCP Apps. Pure.
 */
import { isObject } from "../../src/shared/protocol/values.ts";

/** As servers write them, so that a kept list is read as a server's list is. Absent: the server says nothing of that kind. */
export interface ToolSigns {
  /**
   * Only if the tool is for the server's own pages alone: MCP Apps (SEP-1865, `io.modelcontextprotocol/ui`, 2026-01-26,
   * "Visibility"): "Host MUST NOT include tools in the agent's tool list when their visibility does not include "model"".
   * The extension never had a flat key for it, as it had `ui/resourceUri`.
   */
  ui?: { visibility: ["app"] };
  /**
   * Each call needs a person's yes, also where a rule allows the tool, and no answer lasts. Claude Code
   * (code.claude.com/docs/en/mcp): it prompts on each call in every permission mode, offers no "don't ask again", and
   * denies the call where nobody can be asked.
   */
  "anthropic/requiresUserInteraction"?: true;
  /** Declared without a search. Claude Code (as above, "Exempt a server from deferral"): the tool is never deferred. */
  "anthropic/alwaysLoad"?: true;
  /**
   * How long a text of a result may be, in place of the default. Claude Code (as above, "Raise the limit for a specific
   * tool"): in characters, 500,000 at most. Here in bytes, as every limit of a result.
   */
  "anthropic/maxResultSizeChars"?: number;
}

interface Signed {
  _meta?: ToolSigns | undefined;
}

/** Entries of `visibility` that are read. */
const AUDIENCES = 100;
const LEAST_RESULT = 1_000;
const MOST_RESULT = 500_000;

/**
 * Without a visibility, or with null, the model may have the tool. Whatever else is written there must be a list with
 * "model" in it: a server that meant to hide the tool and wrote it wrong has hidden it.
 */
const hides = (visibility: unknown): boolean =>
  visibility !== undefined &&
  visibility !== null &&
  !(Array.isArray(visibility) && visibility.slice(0, AUDIENCES).includes("model"));

/** Undefined for whatever is no whole number above 0. */
const resultSize = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) > 0
    ? Math.min(Math.max(value as number, LEAST_RESULT), MOST_RESULT)
    : undefined;

/**
 * `meta`: a tool's `_meta`. `kept`: the visibility that pi-mcp-adapter keeps of a tool in `mcp-cache.json`
 * (`uiVisibility`). Undefined: no sign.
 */
export function signsOf(meta: unknown, kept?: unknown): ToolSigns | undefined {
  const written = isObject(meta) ? meta : {};
  const ui = isObject(written.ui) ? written.ui.visibility : undefined;
  const size = resultSize(written["anthropic/maxResultSizeChars"]);
  const signs: ToolSigns = {
    ...(hides(ui) || hides(kept) ? { ui: { visibility: ["app"] } } : {}),
    ...(written["anthropic/requiresUserInteraction"] === true
      ? { "anthropic/requiresUserInteraction": true }
      : {}),
    ...(written["anthropic/alwaysLoad"] === true ? { "anthropic/alwaysLoad": true } : {}),
    ...(size === undefined ? {} : { "anthropic/maxResultSizeChars": size }),
  };
  return Object.keys(signs).length === 0 ? undefined : signs;
}

/** Whether the tool is for the server's own pages: no model gets it, and nothing here calls it. */
export const isAppOnly = ({ _meta }: Signed): boolean => _meta?.ui !== undefined;

/** Whether each call needs a yes of its own. */
export const asksEachTime = ({ _meta }: Signed): boolean =>
  _meta?.["anthropic/requiresUserInteraction"] === true;

/** Whether the server wants the tool declared without a search. */
export const wantsDeclared = ({ _meta }: Signed): boolean => _meta?.["anthropic/alwaysLoad"] === true;

/** Bytes of a result's text that the server wants shown; undefined: it says nothing. */
export const wantedResultBytes = ({ _meta }: Signed): number | undefined =>
  _meta?.["anthropic/maxResultSizeChars"];

const unescaped = (uri: string): string =>
  uri.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

/**
 * Whether an address, or the start of a template, is that of a page of MCP Apps: such a resource is for no model. Also in a
 * spelling that is no address, which a server may take for one.
 */
export const isPage = (uri: string): boolean => /^[\s\p{Cc}]*ui:/iu.test(unescaped(uri));
