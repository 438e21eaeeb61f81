/** What the tools of servers cost, and what had to be changed about them. */

import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { commandFor } from "../../shared/commands.ts";
import type { CatalogFacts } from "../catalog/notices.ts";
import { allWell, type DoctorInput } from "./check.ts";
import { DIRECT_TOKENS } from "./limits.ts";

const NAME_CHARS = 80;
const shown = (name: string): string => oneLine(name, NAME_CHARS);

const tokens = ({ server, direct, directTokens }: CatalogFacts["tools"][number]): Finding => ({
  id: "tokens",
  severity: "warning",
  server,
  title: `Its ${counted(direct, "tool")} declared from the start cost about ${directTokens.toLocaleString("en")} tokens of each request.`,
  remedy: `Name only the tools that are always needed in "directTools"; the model finds the others by a search.`,
});

const cutNames = (
  server: string,
  { count, tool, name }: NonNullable<CatalogFacts["tools"][number]["cut"]>,
): Finding => ({
  id: "tool-names",
  severity: "note",
  server,
  title: `${counted(count, "tool name")} too long for providers, cut and marked: ${shown(tool)} is ${name}.`,
  remedy: 'A shorter name of the server, or "toolPrefix": "short" or "none", leaves more room.',
});

/** `wanted`: the servers that are looked at. */
export function judgeTools(facts: CatalogFacts, wanted: ReadonlySet<string>): Finding[] {
  const about = <T extends { server: string }>(lines: readonly T[]): T[] =>
    lines.filter(({ server }) => wanted.has(server));
  return [
    ...facts.leftOut
      .filter((server) => wanted.has(server))
      .map(
        (server): Finding => ({
          id: "left-out",
          severity: "warning",
          server,
          title: "Its tools are left out: preparing them fails or takes too long.",
          remedy: `${commandFor("reconnect", server)} tries again, ${commandFor("disable", server)} switches it off.`,
        }),
      ),
    ...facts.problems.map(
      (problem): Finding => ({
        id: "left-out",
        severity: "warning",
        title: `${problem}.`,
        remedy: 'Hide tools that nobody needs, with "excludeTools", or switch servers off.',
      }),
    ),
    ...about(facts.tools).flatMap((one) => [
      ...(one.directTokens > DIRECT_TOKENS ? [tokens(one)] : []),
      ...(one.cut ? [cutNames(one.server, one.cut)] : []),
    ]),
    ...about(facts.taken).map(
      ({ server, text }): Finding => ({
        id: "tool-names",
        severity: "note",
        server,
        title: `Tools are renamed: ${text}.`,
        remedy: 'Another "toolPrefix", or another name of the server, avoids it.',
      }),
    ),
    ...about(facts.repairs).map(
      ({ server, text }): Finding => ({
        id: "schemas",
        severity: "note",
        server,
        title: `${text.charAt(0).toUpperCase()}${text.slice(1)}.`,
        detail: "The tools work; a provider or Pi would not take the schemas as they are.",
      }),
    ),
  ];
}

export async function checkTools({ servers, catalog }: DoctorInput, signal: AbortSignal): Promise<Finding[]> {
  const facts = await catalog.inspect(signal);
  if (!facts) {
    return [
      {
        id: "unfinished",
        severity: "note",
        title: "The catalog of tools could not be made.",
        remedy: "The log says why.",
      },
    ];
  }
  const found = judgeTools(facts, new Set(servers.map(({ name }) => name)));
  const all = facts.tools.reduce((sum, { directTokens }) => sum + directTokens, 0);
  if (found.length > 0 || all === 0) return found;
  return [allWell("tokens", `Tools declared from the start cost about ${all.toLocaleString("en")} tokens.`)];
}
