/**
 * What the worker asks a person, as an elicitation that an agent's client shows, and the answer back (MCP 2025-11-25,
 * client/elicitation). The worker has bounded and cleaned all texts, and judges each value once more. An answer of the client
 * is untrusted: one that does not fit counts as a cancel. An answer never lasts longer than `serve` does: the client, not the
 * user's own screen, has shown the question. Pure.
 */
import { serverName } from "../../report/server-name.ts";
import type { Ask, AskAnswer, Choice, Field, FieldValue } from "../../shared/protocol/calls.ts";
import type { PersonsQuestion } from "../../shared/protocol/contract.ts";
import { isObject } from "../../shared/protocol/values.ts";

export interface Elicitation {
  /** Params of `elicitation/create`. */
  params:
    | { mode: "form"; message: string; requestedSchema: FormSchema }
    | { mode: "url"; message: string; url: string };
  /** The answer for the worker. `result`: what the client sent, of any shape; undefined: it answered nothing. */
  read(result: unknown): unknown;
}

type FormSchema = { type: "object"; properties: Record<string, object>; required?: string[] };

const keyOf = (at: number): string => `field${at + 1}`;

/** The titles, each different from the others: clients of all revisions know a list of texts alone. */
function titlesOf(choices: readonly Choice[]): string[] {
  const taken = new Set<string>();
  return choices.map(({ title }) => {
    let own = title;
    for (let count = 2; taken.has(own); count++) own = `${title} (${count})`;
    taken.add(own);
    return own;
  });
}

const known = (schema: object): object =>
  Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));

function schemaOf(field: Field): object {
  const { title, description } = field;
  const about = { title, description };
  switch (field.kind) {
    case "text": {
      const { minLength, maxLength, default: start } = field;
      const format = field.format === "json" ? undefined : field.format;
      return known({ type: "string", ...about, format, minLength, maxLength, default: start });
    }
    case "number": {
      const { minimum, maximum, default: start } = field;
      return known({
        type: field.integer ? "integer" : "number",
        ...about,
        minimum,
        maximum,
        default: start,
      });
    }
    case "boolean":
      return known({ type: "boolean", ...about, default: field.default });
    case "choice": {
      const titles = titlesOf(field.choices);
      const start = field.default === undefined ? undefined : titles[field.default];
      return known({ type: "string", ...about, enum: titles, default: start });
    }
    case "choices": {
      const titles = titlesOf(field.choices);
      const { minItems, maxItems } = field;
      const start = field.default?.flatMap((at) => titles[at] ?? []);
      const items = { type: "string", enum: titles };
      return known({ type: "array", ...about, items, minItems, maxItems, default: start });
    }
  }
}

/** `null`: the value is none of this field. */
function readValue(field: Field, value: unknown): FieldValue | null {
  if (value === undefined || value === null) return undefined;
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? value : null;
    case "number":
      return typeof value === "number" || typeof value === "string" ? String(value) : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "choice": {
      const at = titlesOf(field.choices).indexOf(String(value));
      return at === -1 ? null : at;
    }
    case "choices": {
      if (!Array.isArray(value) || value.length > field.choices.length) return null;
      const titles = titlesOf(field.choices);
      const positions = value.map((title) => titles.indexOf(String(title)));
      return positions.includes(-1) ? null : positions;
    }
  }
}

const CANCEL: AskAnswer = { action: "cancel" };

const actionOf = (result: unknown): unknown => (isObject(result) ? result.action : undefined);

const contentOf = (result: unknown): Record<string, unknown> =>
  isObject(result) && isObject(result.content) ? result.content : {};

function ofServer(server: string, ask: Ask): Elicitation {
  const says = `The MCP server ${serverName(server)} asks: ${ask.message}`;
  if (ask.kind === "url") {
    const { url } = ask;
    return {
      params: { mode: "url", message: says, url },
      read: (result) => {
        const action = actionOf(result);
        if (action === "accept") return { action, open: false } satisfies AskAnswer;
        return action === "decline" ? { action } : CANCEL;
      },
    };
  }
  const { fields } = ask;
  const required = fields.flatMap((field, at) => (field.required ? [keyOf(at)] : []));
  return {
    params: {
      mode: "form",
      message: says,
      requestedSchema: {
        type: "object",
        properties: Object.fromEntries(fields.map((field, at) => [keyOf(at), schemaOf(field)])),
        ...(required.length > 0 ? { required } : {}),
      },
    },
    read: (result) => {
      const action = actionOf(result);
      if (action === "decline") return { action };
      if (action !== "accept") return CANCEL;
      const content = contentOf(result);
      const values = fields.map((field, at) => readValue(field, content[keyOf(at)]));
      return values.includes(null) ? CANCEL : { action, values: values as FieldValue[] };
    },
  };
}

const HOW_LONG = "how_long";
const SESSION = "until serve ends";
const SERVER = "all tools of the server until serve ends";
const ONCE = "this once";

/** A question that a yes or a no answers. `lasts`: a yes may hold for later calls as well. */
const ofYes = (message: string, lasts: boolean, yes: "once" | "session"): Elicitation => ({
  params: {
    mode: "form",
    message,
    requestedSchema: {
      type: "object",
      properties: lasts
        ? {
            [HOW_LONG]: {
              type: "string",
              title: "Allow it",
              enum: [ONCE, SESSION, SERVER],
              default: ONCE,
            },
          }
        : {},
    },
  },
  read: (result) => {
    if (actionOf(result) !== "accept") return "no";
    const how = lasts ? contentOf(result)[HOW_LONG] : undefined;
    return how === SESSION ? "session" : how === SERVER ? "server" : yes;
  },
});

export function elicitationOf(question: PersonsQuestion): Elicitation {
  switch (question.about) {
    case "server":
      return ofServer(question.server, question.ask);
    case "call": {
      const { server, tool, args, onceOnly } = question;
      const head = `Run ${tool} of the MCP server ${serverName(server)}?`;
      return ofYes(`${head}\n${args === "" ? "It gets no arguments." : args}`, onceOnly !== true, "once");
    }
    case "skill": {
      const { server, name, description, files } = question;
      const head = `Load the skill ${name} of the MCP server ${serverName(server)}?`;
      return ofYes([head, description, files].join("\n"), false, "session");
    }
  }
}
