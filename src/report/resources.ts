/** The text of `/mcp resources`. Pure. */
import type { ServerResources, ShownResource } from "../shared/protocol/resources.ts";
import { counted } from "../shared/text/amounts.ts";
import { serverName } from "./server-name.ts";

/** Longest list in a notice. */
const LINES = 300;
const CHARS = 50_000;

const line = (server: string, { uri, title }: ShownResource): string => `  @${server}:${uri} - ${title}`;

function linesOf({ server, resources, templates }: ServerResources): string[] {
  const name = serverName(server);
  if (!resources) return [`${name}: its resources are not known`];
  const and = templates.length === 0 ? "" : ` and ${counted(templates.length, "template")}`;
  return [
    `${name}: ${counted(resources.length, "resource")}${and}`,
    ...resources.map((resource) => line(name, resource)),
    ...templates.map((template) => `${line(name, template)} (fill in the braces)`),
  ];
}

/** The lines that a notice holds. */
function bounded(lines: readonly string[]): string[] {
  let chars = 0;
  return lines.slice(0, LINES).filter((text) => {
    chars += text.length;
    return chars <= CHARS;
  });
}

export function renderResources(servers: readonly ServerResources[]): string {
  const lines = servers.flatMap(linesOf);
  if (lines.length === 0) return "No servers are configured.";
  const kept = bounded(lines);
  const hasAny = servers.some(({ resources = [], templates }) => resources.length + templates.length > 0);
  const hint = "Write such an @ into a message to hand the resource to the model.";
  const more = lines.length - kept.length;
  if (more > 0) return [...kept, `and ${more} more lines: /mcp resources <server>`].join("\n");
  return [...kept, ...(hasAny ? [hint] : [])].join("\n");
}
