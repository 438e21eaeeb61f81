/** What the tables of keys share: their shape, which is made key by key, and kinds of values. */
import * as z from "zod";
import type { ToolPrefix } from "../../../../src/shared/naming.ts";
import { problemOfRule } from "./argument-rules.ts";
import { APPROVE_RULES, APPROVE_WORDS } from "./exposure.ts";

export const TOOL_PREFIXES = ["server", "short", "none", "mcp"] as const satisfies readonly ToolPrefix[];

/** A key of an object in a file: what it may hold, and its words and examples for editors and messages. */
export interface Key<S extends z.ZodType = z.ZodType> {
  readonly schema: () => S;
  /** The build leaves these words out: no session reads them. */
  readonly description: string;
  readonly examples?: readonly unknown[];
}

export type Keys = Readonly<Record<string, Key>>;
type ShapeOf<K extends Keys> = { [P in keyof K]: z.ZodOptional<ReturnType<K[P]["schema"]>> };

/**
 * The shape of an object with these keys, each of which may be absent. The schema of a key is made when a file first has
 * that key: most files have five of thirty keys, and to make the others would delay the worker's first plan by 8 ms.
 */
export function shapeOf<K extends Keys>(keys: K): ShapeOf<K> {
  const shape = {};
  for (const [key, { schema, description, examples }] of Object.entries(keys)) {
    let made: z.ZodType | undefined;
    const get = () => (made ??= schema().optional().meta({ description, examples }));
    Object.defineProperty(shape, key, { enumerable: true, configurable: true, get });
  }
  return shape as ShapeOf<K>;
}

/** The checked object: the keys of the shape, and any others as they are. */
export type Loose<S extends Record<string, z.ZodType>> = z.infer<z.ZodObject<S, z.core.$loose>>;

export const text = () => z.string();
export const filled = () => z.string().min(1);
export const flag = () => z.boolean();
export const strings = () => z.record(z.string(), z.string());
export const names = () => z.array(z.string());

/** Limits of a result, in bytes and lines; false for no limit. */
export const outputGuard = () =>
  z.union([
    z.literal(false),
    z.looseObject(
      shapeOf({
        maxBytes: {
          schema: () => z.int().min(1_000),
          description: "Bytes of a result that the model sees.",
          examples: [50_000],
        },
        maxLines: {
          schema: () => z.int().min(10),
          description: "Lines of a result that the model sees.",
          examples: [2_000],
        },
      }),
    ),
  ]);

/** `search` is what pi-mcp-adapter calls false. */
export const directTools = () => z.union([flag(), names(), z.literal("search")]);

/** `approveTools` of pi-mcp-adapter: all tools, none, or these. */
export const approveTools = () => z.union([flag(), names()]);

/** Which calls ask the user: a word, or rules by tool or pattern, and by an argument. */
export const approve = () =>
  z.union([
    z.enum(APPROVE_WORDS),
    z.record(z.string(), z.enum(APPROVE_RULES)).superRefine((rules, { addIssue }) => {
      for (const [key, rule] of Object.entries(rules)) {
        const message = problemOfRule(key, rule);
        if (message) addIssue({ code: "custom", path: [key], message });
      }
    }),
  ]);
