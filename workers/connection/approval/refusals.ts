/** The errors of calls that do not run for want of a yes. Pure. */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";

const SETTING = "approve";

/** Where the user finds the words and rules that decided. */
const files = ({ name, file, overrides }: ServerDefinition): string =>
  `${SETTING} of ${name} in ${[file, ...overrides].join(" or ")}, or ${SETTING} of the settings`;

const notApproved = (definition: ServerDefinition, message: string, remedy: string): ThreadsError =>
  new ThreadsError("not_approved", message, { remedy, data: { server: definition.name } });

const call = ({ name }: ServerDefinition, tool: string): string => `${name}/${tool} was not called`;

export const denied = (definition: ServerDefinition, tool: string): ThreadsError =>
  notApproved(
    definition,
    `${call(definition, tool)}: a rule of "${SETTING}" denies it.`,
    `Only the user can change that: ${files(definition)}.`,
  );

export const refused = (definition: ServerDefinition, tool: string): ThreadsError =>
  notApproved(
    definition,
    `${call(definition, tool)}: the user said no.`,
    "Do not call it again unless the user asks for that.",
  );

export const nobodyToAsk = (definition: ServerDefinition, tool: string): ThreadsError =>
  notApproved(
    definition,
    `${call(definition, tool)}: "${SETTING}" wants the user's yes, and nobody can be asked in this mode of Pi.`,
    `Only the user can change that: ${files(definition)}.`,
  );

export const tooManyQuestions = (definition: ServerDefinition, tool: string): ThreadsError =>
  notApproved(
    definition,
    `${call(definition, tool)}: ${LIMITS.approvalsOpen} other calls wait for the user's yes.`,
    "Call it again when they have been answered.",
  );

export const changedMeanwhile = (definition: ServerDefinition, tool: string): ThreadsError =>
  notApproved(
    definition,
    `${call(definition, tool)}: the server or the configuration changed while the user was asked.`,
    "Call it again; the user is then asked about it as it is now.",
  );

export const cancelled = ({ name }: ServerDefinition, tool: string): ThreadsError =>
  new ThreadsError("cancelled", `${name}/${tool} was cancelled.`, { data: { server: name } });
