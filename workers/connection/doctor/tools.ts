/** What the tools of servers cost, what had to be changed about them, and starts and calls that come near their limits. */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Finding } from "../../../src/shared/protocol/person.ts";
import { counted, formatMs } from "../../../src/shared/text/amounts.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { commandFor } from "../../shared/commands.ts";
import type { CatalogFacts } from "../catalog/notices.ts";
import { callTimeoutMs } from "../servers/call.ts";
import type { ServerTimings } from "../servers/status.ts";
import { allWell, DIRECT_TOKENS, type DoctorInput } from "./check.ts";

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

/** A start that takes more than this part of its limit fails on a slower day. */
const SLOW_START = 0.5;
const SLOW_CALL = 0.8;

interface TimeLimits {
  startMs: number;
  callMs: number;
}

export function judgeTimes(
  server: string,
  timings: ServerTimings,
  { startMs, callMs }: TimeLimits,
): Finding[] {
  const { startMs: tookMs = 0, slowestCallMs, lateCalls } = timings;
  const about = { id: "time-out", server } as const;
  const found: Finding[] = [];
  if (tookMs > SLOW_START * startMs) {
    found.push({
      ...about,
      severity: "warning",
      title: `Its last start took ${formatMs(tookMs)} of the ${formatMs(startMs)} that it may take.`,
      remedy: `Set "startupTimeoutMs" of the server to ${2 * Math.ceil(tookMs / 10_000) * 10_000}, or "lifecycle": "eager".`,
    });
  }
  if (lateCalls > 0) {
    found.push({
      ...about,
      severity: "warning",
      // The limit may have been another one when they were made.
      title: `${counted(lateCalls, "call")} got no answer in time; a call may take ${formatMs(callMs)} now.`,
      remedy: `Set "timeout" (seconds) of the server to more than ${callMs / 1_000} if its tools need more time.`,
    });
  } else if (slowestCallMs > SLOW_CALL * callMs) {
    found.push({
      ...about,
      severity: "note",
      title: `Its slowest call took ${formatMs(slowestCallMs)}, and ${formatMs(callMs)} is the limit without progress.`,
      remedy: `Set "timeout" (seconds) of the server to more than ${callMs / 1_000} if its tools need more time.`,
    });
  }
  return found;
}

export const checkTimes = ({ servers }: DoctorInput): Finding[] =>
  servers.flatMap(({ name, timings, definition }) =>
    judgeTimes(name, timings, {
      startMs: definition.startupTimeoutMs ?? LIMITS.startupTimeoutMs,
      callMs: callTimeoutMs(definition),
    }),
  );
