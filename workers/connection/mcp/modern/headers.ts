/**
 * The headers that mirror the body of a request (MCP 2026-07-28, basic/transports/streamable-http, request metadata and
 * custom headers from tool parameters). Pure.
 */

import { isObject } from "../../../../src/shared/protocol/values.ts";
import type { CachedTool } from "../../../shared/listed.ts";
import { type JSONRPCRequest, MODERN_VERSION } from "../wire/wire.ts";
import { MIRRORED_BYTES, MIRRORED_PARAMETERS } from "./limits.ts";

/** A parameter that is mirrored: the end of its header's name, and the keys that lead to its value. */
interface MirroredParameter {
  header: string;
  path: readonly string[];
}

/** Why a tool is left out, worded to follow its name. */
interface InvalidAnnotation {
  problem: string;
}

const ANNOTATION = "x-mcp-header";
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PLAIN = /^[\x20-\x7e]*$/;
const SENTINEL = /^=\?base64\?.*\?=$/;
const PRIMITIVES = new Set(["string", "integer", "boolean"]);

/** Keywords whose value is a schema or a list of schemas, and those whose value is a map of schemas. */
const SCHEMAS = [
  ...[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "additionalItems",
  ],
  ...["unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems"],
];
const MAPS = ["patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

export function headerValue(text: string): string {
  const isSafe = PLAIN.test(text) && text.trim() === text && !SENTINEL.test(text);
  return isSafe ? text : `=?base64?${Buffer.from(text.toWellFormed(), "utf8").toString("base64")}?=`;
}

const isPrimitive = ({ type }: Record<string, unknown>): boolean => {
  const types = (Array.isArray(type) ? type : [type]).filter(
    (one, _, all) => one !== "null" || all.length === 1,
  );
  return types.length > 0 && types.every((one) => PRIMITIVES.has(String(one)));
};

/** The schemas directly below a schema. `name`: the property that the schema describes, if a chain of properties leads to it. */
function below(schema: Record<string, unknown>): { name: string | undefined; schema: unknown }[] {
  const values = (key: string): unknown[] => {
    const value = schema[key];
    return Array.isArray(value) ? value : [value];
  };
  const own = Object.entries(isObject(schema.properties) ? schema.properties : {});
  return [
    ...own.map(([name, one]) => ({ name, schema: one })),
    ...[
      ...SCHEMAS.flatMap(values),
      ...MAPS.flatMap((key) => Object.values(isObject(schema[key]) ? schema[key] : {})),
    ].map((one) => ({ name: undefined, schema: one })),
  ];
}

/** The parameters that a tool's `inputSchema` mirrors. The schema must be bounded (workers/shared/listed.ts). */
export function mirroredParameters(inputSchema: unknown): MirroredParameter[] | InvalidAnnotation {
  const found = new Map<string, MirroredParameter>();
  const open: { schema: unknown; path: readonly string[] | undefined }[] = [
    { schema: inputSchema, path: [] },
  ];
  // The list grows while it is read.
  for (const { schema, path } of open) {
    if (!isObject(schema)) continue;
    if (Object.hasOwn(schema, ANNOTATION)) {
      const header = schema[ANNOTATION];
      if (typeof header !== "string" || !TOKEN.test(header))
        return { problem: `its ${ANNOTATION} is not a header's name` };
      if (path === undefined || path.length === 0)
        return { problem: `its ${ANNOTATION} ${header} is not at a parameter` };
      if (!isPrimitive(schema))
        return { problem: `its ${ANNOTATION} ${header} is at a parameter that no header can hold` };
      if (found.has(header.toLowerCase()))
        return { problem: `two of its parameters have the ${ANNOTATION} ${header}` };
      if (found.size >= MIRRORED_PARAMETERS)
        return { problem: `more than ${MIRRORED_PARAMETERS} parameters have an ${ANNOTATION}` };
      found.set(header.toLowerCase(), { header, path });
    }
    for (const { name, schema: one } of below(schema))
      open.push({ schema: one, path: path && name !== undefined ? [...path, name] : undefined });
  }
  return [...found.values()];
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value: unknown = args;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** The headers of the parameters that a call gives. Undefined: no server would take headers of that size. */
export function parameterHeaders(
  mirrored: readonly MirroredParameter[],
  args: unknown,
): Record<string, string> | undefined {
  let bytes = 0;
  const headers: Record<string, string> = {};
  for (const { header, path } of mirrored) {
    const value = valueAt(args, path);
    if (typeof value !== "string" && typeof value !== "boolean" && typeof value !== "number") continue;
    const text = headerValue(String(value));
    bytes += header.length + text.length;
    headers[`mcp-param-${header}`] = text;
  }
  return bytes > MIRRORED_BYTES ? undefined : headers;
}

/** Methods with the parameter that `Mcp-Name` repeats. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

export function standardHeaders({
  method,
  params,
}: {
  method: string;
  params?: Record<string, unknown> | undefined;
}): Record<string, string> {
  const key = NAMED[method];
  const name = key === undefined ? undefined : params?.[key];
  return {
    "mcp-protocol-version": MODERN_VERSION,
    "mcp-method": method,
    ...(typeof name === "string" ? { "mcp-name": headerValue(name) } : {}),
  };
}

const NAME_CHARS = 100;
const NOTED = 20;

export class MirroredHeaders {
  #tools = new Map<string, MirroredParameter[]>();

  /** Takes a new list of tools and answers those that can be called: others have an invalid annotation, which is noted. */
  take(tools: readonly CachedTool[], onNote: (note: string) => void): CachedTool[] {
    const mirrored = new Map<string, MirroredParameter[]>();
    let leftOut = 0;
    const kept = tools.filter(({ name, inputSchema }) => {
      const found = mirroredParameters(inputSchema);
      if ("problem" in found) {
        if (++leftOut <= NOTED) onNote(`its tool ${name.slice(0, NAME_CHARS)} is left out: ${found.problem}`);
      } else if (found.length > 0) mirrored.set(name, found);
      return !("problem" in found);
    });
    if (leftOut > NOTED) onNote(`${leftOut - NOTED} more of its tools are left out for such a reason`);
    this.#tools = mirrored;
    return kept;
  }

  /** Undefined: the parameters are too long for headers. */
  of({ method, params }: JSONRPCRequest): Record<string, string> | undefined {
    const headers = standardHeaders({ method, params });
    const mirrored = method === "tools/call" ? this.#tools.get(String(params?.name)) : undefined;
    if (!mirrored) return headers;
    const own = parameterHeaders(mirrored, params?.arguments);
    return own && { ...headers, ...own };
  }
}
