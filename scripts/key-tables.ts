/**
 * Owns: what the docs and editors read of the tables of keys: the JSON Schemas of a configuration file and of a policy, and the tables of all
 * keys and of the servers that /mcp add knows, between the marks of the pages in KEY_PAGES. generate-schema.ts writes both.
 */
import * as z from "zod";
import { KNOWN_SERVERS, type KnownServer } from "../src/shared/known-servers.ts";
import { LIMITS } from "../src/shared/protocol/limits.ts";
import { fileShape } from "../workers/connection/config/entry/schema.ts";
import { HELD } from "../workers/connection/config/entry/server-keys.ts";
import { DEFAULT_SETTINGS } from "../workers/connection/config/entry/settings.ts";
import { MOST_REQUIRED, MOST_RULES, PATTERN_CHARS } from "../workers/connection/config/policy/policy.ts";

/** Draft 7, because every editor knows it. */
const fileSchema = () =>
  z.toJSONSchema(z.looseObject(fileShape).meta({ title: "MCP servers of Pi (mcp.json)" }), {
    target: "draft-7",
    io: "input",
  });

/**
 * The text of schema/mcp.schema.json, for completion in editors, which need no indentation: it was a third of the published
 * file. People read the tables of the pages.
 */
export const schemaText = (): string => `${JSON.stringify(fileSchema())}\n`;

/** The text of schema/policy.schema.json, which lies beside that of the configuration. */
export function policySchemaText(): string {
  const text = { type: "string", minLength: 1, maxLength: PATTERN_CHARS };
  const rules = {
    type: "array",
    maxItems: MOST_RULES,
    items: {
      type: "object",
      properties: {
        name: { ...text, description: "The server's name, which each file chooses." },
        command: {
          description:
            "The words of the command line, * for any characters, ** as the last one for any further words; or the program alone.",
          anyOf: [text, { type: "array", minItems: 1, items: text }],
        },
        url: { ...text, description: "Scheme, host, port and path, * for any characters." },
      },
      minProperties: 1,
      not: { required: ["command", "url"] },
      additionalProperties: false,
    },
  };
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Policy of a machine (policy.json)",
    type: "object",
    properties: {
      $schema: { type: "string" },
      allow: { ...rules, description: "Only these servers may run. Absent: all that are not denied." },
      deny: { ...rules, description: "These servers may not run." },
      required: {
        type: "object",
        description: "Servers that every session has.",
        maxProperties: MOST_REQUIRED,
        additionalProperties: { $ref: "mcp.schema.json#/definitions/server" },
      },
    },
    additionalProperties: false,
  };
  return `${JSON.stringify(schema)}\n`;
}

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

/** Tables by name: a mark `<!-- keys: <name> -->` of a page begins one, `<!-- /keys -->` ends it. */
export type KeyTables = Readonly<Record<string, string>>;

/** The pages of docs/ with tables, and which. */
export const KEY_PAGES: Readonly<Record<string, readonly string[]>> = {
  "configuration.md": ["file", "server", "settings"],
  "sign-in.md": ["oauth"],
  "getting-started.md": ["known"],
};

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

/** A key that is read for files of other programs, and stands below its table, not in it. */
const ALSO_READ = /^Another spelling of ([\w-]+(?:\.\w+)*)/;

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
    if (ALSO_READ.test(value.description ?? "")) return [];
    const inner = apart.includes(name) ? [] : insideOf(value);
    return [row, ...inner.flatMap((one) => rowsOf(one, options, `${name}.`))];
  });
}

/** For example "`callbackUrl` for `redirectUri`", of all keys of the shape that are only read. */
function alsoRead(shape: Shape, { apart = [] }: TableOptions, before = ""): string[] {
  return Object.entries(shape.properties ?? {}).flatMap(([key, value]) => {
    const name = before + key;
    const found = ALSO_READ.exec(value.description ?? "");
    if (found) return [`\`${name}\` for \`${found[1]}\``];
    return apart.includes(name) ? [] : insideOf(value).flatMap((one) => alsoRead(one, { apart }, `${name}.`));
  });
}

function tableOf(shape: Shape, options: TableOptions = {}): string {
  const heads = ["key", "holds", ...(options.defaults ? ["default"] : []), "means"];
  const others = alsoRead(shape, options);
  return [
    `| ${heads.join(" | ")} |`,
    `|${" --- |".repeat(heads.length)}`,
    ...rowsOf(shape, options),
    ...(others.length > 0 ? ["", `Also read: ${others.join(", ")}.`] : []),
  ].join("\n");
}

/** Empty texts, lists and objects say nothing. */
const saying = (values: readonly (readonly [string, unknown])[]): Defaults =>
  Object.fromEntries(
    values.filter(([, value]) => ![undefined, "{}", "[]", '""'].includes(JSON.stringify(value))),
  );

/** What the code takes where a server's entry says nothing; keys whose value then comes from the settings are missing. */
const serverDefaults = (): Defaults => ({
  ...saying(HELD.map(({ key, read }) => [key, read(undefined)])),
  startupTimeoutMs: LIMITS.startupTimeoutMs,
  timeout: LIMITS.requestTimeoutMs / 1_000,
});

const settingsDefaults = (): Defaults => ({
  ...saying(Object.entries(DEFAULT_SETTINGS)),
  "outputGuard.maxBytes": LIMITS.resultBytes,
  "outputGuard.maxLines": LIMITS.resultLines,
});

function needsOf({ needs }: KnownServer): string {
  if (needs === undefined) return "nothing";
  if ("signIn" in needs) return "a sign-in";
  const key = needs.optionalHeader ? "a key, if you have one" : "a key";
  return `${key}: \`${needs.variable}\`, [made here](${needs.from})`;
}

const knownServers = (): string =>
  [
    "| name | for | needs |",
    "| --- | --- | --- |",
    ...KNOWN_SERVERS.map(
      (known) =>
        `| [${known.name}](${known.source}) | ${known.about}${known.sandbox === undefined ? "" : "; works in a [sandbox](sandbox.md)"} | ${needsOf(known)} |`,
    ),
  ].join("\n");

export function keyTables(): KeyTables {
  const schema = fileSchema() as unknown as JsonSchema;
  const { server = {}, settings = {} } = schema.definitions;
  const [oauth = {}] = insideOf(server.properties?.oauth ?? {});
  return {
    file: tableOf(schema),
    server: tableOf(server, { defaults: serverDefaults(), apart: ["oauth"] }),
    oauth: tableOf(oauth),
    settings: tableOf(settings, { defaults: settingsDefaults(), apart: ["identityProvider"] }),
    known: knownServers(),
  };
}

/** The page with these tables of now. Throws an error if a mark is missing or unknown. */
export function withKeyTables(
  page: string,
  tables: KeyTables,
  names: readonly string[] = Object.keys(tables),
): string {
  const missing = new Set(names);
  const written = page.replaceAll(
    /(<!-- keys: (\w+) -->\n)[\s\S]*?(<!-- \/keys -->)/g,
    (_all, start: string, name: string, end: string) => {
      const table = tables[name];
      if (table === undefined || !names.includes(name))
        throw new Error(`there is no table of the keys of ${name}`);
      missing.delete(name);
      return `${start}\n${table}\n\n${end}`;
    },
  );
  if (missing.size > 0) throw new Error(`the page has no mark for the keys of ${[...missing].join(", ")}`);
  return written;
}
