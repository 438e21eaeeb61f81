/** Joins a new list of resources to those known before: each once, within the limit. Notes templates of no use. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json/same.ts";
import {
  boundResources,
  type CachedResources,
  type CachedTemplate,
  normalizeResources,
  normalizeTemplates,
} from "../../shared/listed/resource.ts";
import type { ListedResources } from "../mcp/connection.ts";
import { parseUriTemplate } from "./uri-template.ts";

const TEMPLATES_SHOWN = 5;
const TEMPLATE_CHARS = 100;

/** Names the templates whose expressions are not closed, or whose variables cannot be parameters; undefined if none. */
function unusableNote(templates: readonly CachedTemplate[]): string | undefined {
  const unusable = templates.filter(({ uriTemplate }) => !parseUriTemplate(uriTemplate));
  if (unusable.length === 0) return undefined;
  const shown = unusable
    .slice(0, TEMPLATES_SHOWN)
    .map(({ uriTemplate }) => JSON.stringify(uriTemplate.slice(0, TEMPLATE_CHARS)));
  if (unusable.length > shown.length) shown.push(`${unusable.length - shown.length} more`);
  return `has resource templates that nobody could fill in, so they are no tools: ${shown.join(", ")}`;
}

/** Distinct notes about one server in a session: the server may give its templates new names each time. */
const NOTES = 20;

/** The notes about a list and about the lists before it in this session. */
const noted = new WeakMap<CachedResources, ReadonlySet<string>>();

/** Answers the resources known now, each once and within the limit. Writes each note once a session. */
export function mergeListed(
  before: CachedResources | undefined,
  { resources, templates }: ListedResources,
  onNote: (note: string) => void,
): CachedResources {
  const { leftOut, known: listed } = boundResources({
    resources: normalizeResources(resources ?? before?.resources),
    templates: normalizeTemplates(templates ?? before?.templates),
  });
  const known = keepSame(before, listed);
  const reported = new Set(before && noted.get(before));
  const note = (text: string | undefined): void => {
    if (text === undefined || reported.has(text) || reported.size >= NOTES) return;
    reported.add(text);
    onNote(text);
  };
  const limit = LIMITS.resourcesPerServer;
  if (leftOut > 0) note(`has more than ${limit} resources: only the first ${limit} are offered as tools`);
  note(unusableNote(known.templates));
  noted.set(known, reported);
  return known;
}
