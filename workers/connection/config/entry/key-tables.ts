/**
 * The tables of all keys in docs/configuration.md, made from the same shapes as the JSON Schema. scripts/generate-schema.ts
 * writes them between the marks of that page; the worker does not load this file.
 */
import * as z from "zod";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { parseEntry } from "./definition.ts";
import { fileSchema } from "./schema.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";

/** What is read of a JSON Schema here. */
interface Shape {
  type?: string;
  /** A shape with a name: the entry of a server, or the settings. */
  $ref?: string;
  allOf?: Shape[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Shape[];
  items?: Shape;
  properties?: Record<string, Shape>;
  additionalProperties?: Shape | boolean;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  description?: string;
}

interface JsonSchema extends Shape {
  definitions: Record<string, Shape>;
}

type Defaults = Readonly<Record<string, unknown>>;

/** Tables by name: a mark `<!-- keys: <name> -->` of the page begins one, `<!-- /keys -->` ends it. */
export type KeyTables = Readonly<Record<string, string>>;

const code = (value: unknown): string => `\`${JSON.stringify(value)}\``;

/** zod writes the bounds of safe whole numbers for an unbounded one. */
const isBound = (value: number | undefined): value is number =>
  value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER;

function numberInWords({ type, minimum, maximum, exclusiveMinimum }: Shape): string {
  const kind = type === "integer" ? "whole number" : "number";
  if (exclusiveMinimum !== undefined) return `${kind} above ${exclusiveMinimum}`;
  const from = isBound(minimum) ? ` from ${minimum.toLocaleString("en")}` : "";
  return kind + from + (isBound(maximum) ? ` to ${maximum}` : "");
}

function byName(values: Shape | boolean | undefined): string {
  if (typeof values !== "object") return "object";
  if (values.$ref !== undefined) return "objects by name";
  return values.enum ? `by tool: ${inWords(values)}` : "texts by name";
}

/** What a key may hold, in words, for example `"lazy"`, `"eager"` or a text. */
function inWords(shape: Shape): string {
  if (shape.allOf) return "object";
  if (shape.anyOf) return shape.anyOf.map(inWords).join("; ");
  if (shape.enum) return shape.enum.map(code).join(", ");
  if (shape.const !== undefined) return code(shape.const);
  switch (shape.type) {
    case "boolean":
      return "`true`, `false`";
    case "integer":
    case "number":
      return numberInWords(shape);
    case "array":
      return shape.items?.enum ? `list of ${inWords(shape.items)}` : "list of texts";
    case "object":
      return shape.properties ? "object" : byName(shape.additionalProperties);
    default:
      return "text";
  }
}

/** The objects that a key may hold, if their keys are known. */
const insideOf = (shape: Shape): Shape[] =>
  [shape, ...(shape.anyOf ?? [])].filter((one) => one.properties !== undefined);

interface TableOptions {
  defaults?: Defaults;
  /** Keys whose inner keys have a table of their own. */
  apart?: readonly string[];
}

function rowsOf(shape: Shape, options: TableOptions, before = ""): string[] {
  const { defaults = {}, apart = [] } = options;
  return Object.entries(shape.properties ?? {}).flatMap(([key, value]) => {
    const name = before + key;
    const preset = defaults[name];
    const cells = [
      `\`${name}\``,
      inWords(value),
      ...(options.defaults ? [preset === undefined ? "" : code(preset)] : []),
      value.description ?? "",
    ];
    // A bar in a cell would end it, and `<port>` would be an element.
    const row = `| ${cells.join(" | ").replaceAll("<", "&lt;")} |`;
    const inner = apart.includes(name) ? [] : insideOf(value);
    return [row, ...inner.flatMap((one) => rowsOf(one, options, `${name}.`))];
  });
}

function tableOf(shape: Shape, options: TableOptions = {}): string {
  const heads = ["key", "holds", ...(options.defaults ? ["default"] : []), "means"];
  return [`| ${heads.join(" | ")} |`, `|${" --- |".repeat(heads.length)}`, ...rowsOf(shape, options)].join(
    "\n",
  );
}

/** What the code takes where a server's entry says nothing; keys whose value then comes from the settings are missing. */
function serverDefaults(): Defaults {
  const source = { file: "", origin: "user" } as const;
  const { definition } = parseEntry("a", { command: "a" }, source);
  if (!definition) throw new Error("an entry with a command is refused");
  const { enabled, lifecycle, exposeResources, exposePrompts, elicitation, protocol, debug } = definition;
  const times = {
    startupTimeoutMs: LIMITS.startupTimeoutMs,
    timeout: LIMITS.requestTimeoutMs / 1_000,
  };
  return { enabled, lifecycle, exposeResources, exposePrompts, elicitation, protocol, debug, ...times };
}

/** Empty texts and objects say nothing. */
const settingsDefaults = (): Defaults => ({
  ...Object.fromEntries(
    Object.entries(DEFAULT_SETTINGS).filter(([, value]) => !["{}", '""'].includes(JSON.stringify(value))),
  ),
  "outputGuard.maxBytes": LIMITS.resultBytes,
  "outputGuard.maxLines": LIMITS.resultLines,
});

export function keyTables(): KeyTables {
  const schema = z.toJSONSchema(fileSchema(), { target: "draft-7", io: "input" }) as unknown as JsonSchema;
  const { server = {}, settings = {} } = schema.definitions;
  const [oauth = {}] = insideOf(server.properties?.oauth ?? {});
  return {
    file: tableOf(schema),
    server: tableOf(server, { defaults: serverDefaults(), apart: ["oauth"] }),
    oauth: tableOf(oauth),
    settings: tableOf(settings, { defaults: settingsDefaults() }),
  };
}

/** The page with the tables of now. Throws an error if a mark is missing or unknown. */
export function withKeyTables(page: string, tables: KeyTables): string {
  const missing = new Set(Object.keys(tables));
  const written = page.replaceAll(
    /(<!-- keys: (\w+) -->\n)[\s\S]*?(<!-- \/keys -->)/g,
    (_all, start: string, name: string, end: string) => {
      const table = tables[name];
      if (table === undefined) throw new Error(`there is no table of the keys of ${name}`);
      missing.delete(name);
      return `${start}\n${table}\n\n${end}`;
    },
  );
  if (missing.size > 0) throw new Error(`the page has no mark for the keys of ${[...missing].join(", ")}`);
  return written;
}
