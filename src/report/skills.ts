/** The text of `/mcp skills`: which skills servers offer, and why some cannot be loaded. Pure. */
import type { ServerSkills, ShownSkill } from "../shared/protocol/calls.ts";
import { counted } from "../shared/text/amounts.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { serverName } from "./server-name.ts";

const LINES = 200;
/** Of a description: a skill has two lines on a small screen. */
const DESCRIPTION_CHARS = 100;

/** For example `pdf-processing - Extract and fill PDF documents (3 files, 1.2 KB)`. */
export const skillLine = ({ name, description, size, problem }: ShownSkill): string =>
  problem === undefined
    ? `${name} - ${oneLine(description, DESCRIPTION_CHARS)} (${size})`
    : `${name} - cannot be loaded: ${problem}`;

function linesOf({ server, policy, skills }: ServerSkills): string[] {
  const name = serverName(server);
  if (policy === false) return [`${name}: its skills are switched off ("skills": false)`];
  if (skills === undefined) return [`${name}: serves no skills, or has never been connected`];
  const how = policy === "allow" ? ", each without a question" : "";
  return [
    `${name}: ${counted(skills.length, "skill")}${how}`,
    ...skills.map((skill) => `  ${skillLine(skill)}`),
  ];
}

export function renderSkills(servers: readonly ServerSkills[]): string {
  // Most servers serve none: of several servers only those are named that have something to say.
  const shown =
    servers.length === 1
      ? servers
      : servers.filter(({ policy, skills }) => policy === false || skills !== undefined);
  if (shown.length === 0) return "No server offers a skill, as far as is known.";
  const lines = shown.flatMap(linesOf);
  const more = lines.length - LINES;
  const hint = "A skill is loaded when the model selects it, or by its command /mcp__<server>__<skill>.";
  return [
    ...lines.slice(0, LINES),
    ...(more > 0 ? [`and ${more} more lines: /mcp skills <server>`] : []),
    hint,
  ].join("\n");
}
