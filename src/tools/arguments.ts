/**
 * The arguments of a call as the model wrote them, before Pi fits them to the schema: Pi makes a list of a single text, and
 * another number of a whole number that JavaScript cannot hold. Models write lists and objects as JSON texts. Pure. Loaded
 * with the first prompt, since a call comes behind one. Must not: judge whether the arguments fit.
 */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { asList, isObject } from "../shared/protocol/values.ts";
import { isExact, parseArguments } from "../shared/text/reading.ts";
import { oneLine } from "../shared/text/unprintable.ts";

type Schema = Record<string, unknown>;

/** Only such a text is a list, an object, or a number that may change. */
const CONCERNS = /^\s*(?:[[{]|[+-]?\d{16,}\s*$)/;
const NAME_CHARS = 200;

/** The schema to which a reference within the root leads, one step. */
function resolved(schema: unknown, root: Schema): Schema {
  if (!isObject(schema)) return {};
  const { $ref } = schema;
  if (typeof $ref !== "string" || !$ref.startsWith("#/")) return schema;
  let at: unknown = root;
  for (const key of $ref.slice(2).split("/"))
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  return isObject(at) ? at : {};
}

/** The types that a parameter takes. A schema that names none takes texts, too. Its alternatives are looked at one step deep. */
function typesOf(parameter: unknown, root: Schema): Set<unknown> {
  const schema = resolved(parameter, root);
  const several = asList(schema.anyOf ?? schema.oneOf);
  const all = schema.type === undefined && several.length > 0 ? several : [schema];
  return new Set(all.flatMap((one) => resolved(one, root).type ?? "string"));
}

/** The value that the text stands for; the text itself if it stands for none. Throws if it would be sent as another one. */
function readText(text: string, types: ReadonlySet<unknown>): unknown {
  const first = text.trimStart()[0];
  if (first === "[" || first === "{") {
    if (!types.has(first === "[" ? "array" : "object")) return text;
    try {
      return parseArguments(text);
    } catch (error) {
      if (error instanceof SyntaxError) return text;
      throw error;
    }
  }
  if ((types.has("integer") || types.has("number")) && !isExact(text.trim())) {
    throw new Error(
      `the number ${text.trim().slice(0, 40)} would be sent as ${JSON.stringify(Number(text))}`,
    );
  }
  return text;
}

/** Throws for a number that would be sent as another one. `args`: what the model wrote. */
export function preparedArguments(tool: CatalogTool, args: unknown): unknown {
  if (!isObject(args)) return args;
  const texts = Object.entries(args).filter(([, value]) => typeof value === "string" && CONCERNS.test(value));
  if (texts.length === 0) return args;
  const root = inputSchemaOf(tool);
  const parameters = isObject(root.properties) ? root.properties : {};
  const read = texts.map(([name, text]): [string, unknown] => {
    const types = typesOf(Object.hasOwn(parameters, name) ? parameters[name] : undefined, root);
    if (types.has("string")) return [name, text];
    try {
      return [name, readText(text as string, types)];
    } catch (error) {
      throw new Error(
        `${tool.name} was not called: in ${oneLine(name, NAME_CHARS)} ${(error as Error).message}.`,
      );
    }
  });
  return { ...args, ...Object.fromEntries(read) };
}
