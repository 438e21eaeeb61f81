/**
 * A server that a person wants to add, as the worker sees it: its definition, what it would run, the file that would be
 * written, and the server that has the name already.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type {
  DefinedIn,
  EntryMistake,
  ProposedServer,
  ServerPreview,
} from "../../../src/shared/protocol/person.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { editableFile } from "../config/edit/edit.ts";
import { type Origin, parseEntry, type ServerDefinition, transportOf } from "../config/entry/definition.ts";
import { describeTarget, leastChars } from "../config/trust/trust.ts";
import { secretsOf } from "../secrets/find.ts";
import { createRedactor } from "../secrets/redact.ts";

const OWNERS: Readonly<Record<Origin, DefinedIn["by"]>> = {
  user: "user",
  "project-pi": "project",
  "project-file": "project",
  import: "import",
  extension: "extension",
};

export const definedIn = ({ file, origin }: Pick<ServerDefinition, "file" | "origin">): DefinedIn => ({
  file,
  by: OWNERS[origin],
});

/** Without the values of arguments and of the URL that are secret by their name or their form. */
function masked(definition: ServerDefinition): ServerDefinition {
  const { target } = definition;
  const redact = createRedactor(secretsOf(target, target));
  if (target.kind === "http") return { ...definition, target: { ...target, url: redact(target.url) } };
  return {
    ...definition,
    target: { ...target, command: redact(target.command), args: target.args.map(redact) },
  };
}

/**
 * All that would run or be sent, in one line, as the question for consent shows it. `masks`: takes secrets out, which
 * nothing of a project's file may hide behind. Undefined: the line would be too long to be read.
 */
export function shownLine(definition: ServerDefinition, masks: boolean): string | undefined {
  if (leastChars(definition) > LIMITS.consentChars) return undefined;
  const line = describeTarget(masks ? masked(definition) : definition);
  return line.length > LIMITS.consentChars ? undefined : line;
}

export interface Proposed {
  file: string;
  mistakes: EntryMistake[];
  /** Undefined: there is an error among the mistakes. */
  definition: ServerDefinition | undefined;
}

/** Throws `bad_config` if the file of the project does not count. */
export function parseProposed(
  { name, entry, project }: ProposedServer,
  running: RunningConfiguration,
): Proposed {
  const file = editableFile(running.facts, project);
  const { definition, mistakes } = parseEntry(name, isObject(entry) ? entry : undefined, {
    file,
    origin: project ? "project-pi" : "user",
  });
  const told = mistakes.map(
    ({ severity, path, message, remedy }): EntryMistake => ({
      severity,
      key: path.join("."),
      message,
      remedy,
    }),
  );
  const isError = ({ severity }: EntryMistake): boolean => severity === "error";
  return { file, definition, mistakes: told.sort((a, b) => Number(isError(b)) - Number(isError(a))) };
}

/** The definition. Throws `bad_config` with the first mistake. */
export function checkedDefinition(proposed: Proposed, name: string): ServerDefinition {
  if (proposed.definition) return proposed.definition;
  const [first] = proposed.mistakes;
  const at = first?.key ? `${first.key}: ` : "";
  throw new ThreadsError("bad_config", `The entry of ${name} cannot be used: ${at}${first?.message}.`, {
    remedy: first?.remedy,
  });
}

export function previewServer(proposal: ProposedServer, running: RunningConfiguration): ServerPreview {
  const { file, mistakes, definition } = parseProposed(proposal, running);
  const line = definition && shownLine(definition, true);
  const existing = running.configured(proposal.name);
  return {
    file,
    mistakes,
    ...(definition ? { transport: transportOf(definition) } : {}),
    ...(line === undefined ? {} : { line }),
    ...(existing ? { exists: definedIn(existing) } : {}),
  };
}
