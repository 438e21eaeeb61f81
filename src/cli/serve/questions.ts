/**
 * What the worker asks a person, as an elicitation that an agent's client shows, and the answer back (MCP 2025-11-25,
 * client/elicitation). The worker has bounded and cleaned all texts, and judges each value once more. An answer of the client
 * is untrusted: one that does not fit counts as a cancel. An answer never lasts longer than `serve` does: the client, not the
 * user's own screen, has shown the question. Pure.
 */
import { serverName } from "../../report/server-name.ts";
import { numbered } from "../../shared/asks/check.ts";
import type { Ask, AskAnswer, AskForm, Field, FieldKey, FieldValue } from "../../shared/protocol/calls.ts";
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

/** Longer ones are none that a person wrote. */
const NAME_CHARS = 200;

interface Asked {
  field: Field;
  name: string;
  /** What the client answers for each choice, by position. */
  values: readonly string[];
  key: FieldKey | undefined;
}

/** Fields under the names that the server gave them, as far as these can be shown. */
function askedFields({ fields, keys = [] }: AskForm): Asked[] {
  return fields.map((field, at) => {
    const key = keys[at];
    const choices = "choices" in field ? field.choices : [];
    const isWhole = key !== undefined && key.values.length === choices.length;
    const isShort = key !== undefined && key.name !== "" && key.name.length <= NAME_CHARS;
    return {
      field,
      name: isShort ? key.name : `field${at + 1}`,
      values: isWhole ? key.values : numbered(choices.map(({ title }) => title)),
      key,
    };
  });
}

const known = (schema: object): object =>
  Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));

/** `titled`: the keyword under which choices have titles of their own (MCP 2025-11-25, client/elicitation). */
function choicesOf({ field, values, key }: Asked, titled: "oneOf" | "anyOf"): object {
  const titles = "choices" in field ? field.choices.map(({ title }) => title) : [];
  if (titles.every((title, at) => title === values[at])) return { type: "string", enum: values };
  if (key?.enumNames) return { type: "string", enum: values, enumNames: titles };
  const all = values.map((value, at) => ({ const: value, title: titles[at] }));
  return titled === "oneOf" ? { type: "string", oneOf: all } : { anyOf: all };
}

function schemaOf(asked: Asked): object {
  const { field, values } = asked;
  const { title, description } = field;
  const about = { title, description };
  switch (field.kind) {
    case "text": {
      const { minLength, maxLength, default: start } = field;
      const format = field.format === "json" ? undefined : field.format;
      return known({ type: "string", ...about, format, minLength, maxLength, default: start });
    }
    case "number": {
      const { integer, minimum, maximum, default: start } = field;
      return known({ type: integer ? "integer" : "number", ...about, minimum, maximum, default: start });
    }
    case "boolean":
      return known({ type: "boolean", ...about, default: field.default });
    case "choice": {
      const start = field.default === undefined ? undefined : values[field.default];
      return known({ ...choicesOf(asked, "oneOf"), ...about, default: start });
    }
    case "choices": {
      const { minItems, maxItems } = field;
      const start = field.default?.flatMap((at) => values[at] ?? []);
      const items = choicesOf(asked, "anyOf");
      return known({ type: "array", ...about, items, minItems, maxItems, default: start });
    }
  }
}

/** `null`: the value is none of this field. */
function readValue({ field, values }: Asked, value: unknown): FieldValue | null {
  if (value === undefined || value === null) return undefined;
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? value : null;
    case "number":
      return typeof value === "number" || typeof value === "string" ? String(value) : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "choice": {
      const at = values.indexOf(String(value));
      return at === -1 ? null : at;
    }
    case "choices": {
      if (!Array.isArray(value) || value.length > values.length) return null;
      const positions = value.map((one) => values.indexOf(String(one)));
      return positions.includes(-1) ? null : positions;
    }
  }
}

const CANCEL: AskAnswer = { action: "cancel" };

const actionOf = (result: unknown): unknown => (isObject(result) ? result.action : undefined);

/** A name such as `constructor` is in every object. */
const ownIn = (content: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(content, name) ? content[name] : undefined;

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
  const fields = askedFields(ask);
  const required = fields.flatMap(({ field, name }) => (field.required ? [name] : []));
  return {
    params: {
      mode: "form",
      message: says,
      requestedSchema: {
        type: "object",
        properties: Object.fromEntries(fields.map((asked) => [asked.name, schemaOf(asked)])),
        ...(required.length > 0 ? { required } : {}),
      },
    },
    read: (result) => {
      const action = actionOf(result);
      if (action === "decline") return { action };
      if (action !== "accept") return CANCEL;
      const content = contentOf(result);
      const values = fields.map((asked) => readValue(asked, ownIn(content, asked.name)));
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

export function elicitationOf(question: Exclude<PersonsQuestion, { about: "prompt" }>): Elicitation {
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
