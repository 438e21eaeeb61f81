/** Owns: what a bundle takes in the place of a module's own text: nothing, a smaller build, or a later load. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { LIMITS } from "../../src/shared/protocol/limits.ts";

/**
 * Modules that are imported but never run, by the end of their path: the SDK's schema compiler (this package gives the
 * SDK's client and server another validator), piscina's optional native `nice`, and what turns zod's schemas into JSON Schema.
 */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "validation/ajv-provider.js": "export class AjvJsonSchemaValidator {}",
  "server/_shims":
    'export { default as process } from "node:process"; export class DefaultJsonSchemaValidator {}',
  "@napi-rs/nice": "export {};",
  "zod-to-json-schema": "export const zodToJsonSchema = undefined;",
  "zod/v4/core/json-schema-generator.js": "export class JSONSchemaGenerator {}",
  "zod/v4/core/json-schema-processors.js": "export const toJSONSchema = undefined;",
  "zod/v4/core/to-json-schema.js":
    'const leftOut = () => { throw new Error("left out of the build"); };\n' +
    "export { leftOut as createStandardJSONSchemaMethod, leftOut as createToJSONSchemaMethod };",
};

const leftOutAs = (path: string): string | undefined =>
  Object.keys(LEFT_OUT).find((end) => path.replaceAll("\\", "/").endsWith(end));

export const leaveOut: Plugin = {
  name: "leave-out",
  setup(build) {
    build.onResolve(
      {
        filter:
          /(ajv-provider|json-schema-generator|json-schema-processors|to-json-schema)\.js$|^@modelcontextprotocol\/server\/_shims$|^@napi-rs\/nice$|^zod-to-json-schema$/,
      },
      ({ path, resolveDir }) => {
        const end = leftOutAs(path) ?? leftOutAs(join(resolveDir, path));
        return end === undefined ? undefined : { path: end, namespace: "left-out" };
      },
    );
    build.onLoad({ filter: /.*/, namespace: "left-out" }, ({ path }) => ({ contents: LEFT_OUT[path] ?? "" }));
  },
};

/**
 * Bundles the pure JavaScript build of msgpackr, because a single file cannot contain the optional native binary.
 * The files of msgpackr have no side effects, so a bundle can leave out unused parts.
 */
export const pureMsgpackr: Plugin = {
  name: "pure-msgpackr",
  setup(build) {
    const folder = fileURLToPath(new URL("../../node_modules/msgpackr/", import.meta.url));
    build.onResolve({ filter: /^msgpackr$/ }, () => ({ path: `${folder}index.js`, sideEffects: false }));
    build.onResolve({ filter: /^\.\/\w+\.js$/ }, ({ importer, path }) =>
      importer.startsWith(folder) ? { path: `${folder}${path.slice(2)}`, sideEffects: false } : undefined,
    );
  },
};

/** Parameters and body of a function that knows a property by whether the engine takes it. */
const byEngine = (parameters: string, property: string, flag: "u" | "v"): string =>
  `(${parameters}) { try { return !!new RegExp("\\\\p{" + ${property} + "}", "${flag}"); } catch { return false; } }`;

const ID_TABLES = [
  [/isInRange\(cp, largeIdStartRanges [^;]*;/, "/\\p{ID_Start}/u.test(String.fromCodePoint(cp));"],
  [/isInRange\(cp, largeIdContinueRanges [^;]*;/, "/\\p{ID_Continue}/u.test(String.fromCodePoint(cp));"],
  [/const gcValueSets = new DataSet\([^;]*;/, ""],
  [/const scValueSets = new DataSet\([^;]*;/, ""],
  [/const binPropertySets = new DataSet\([^;]*;/, ""],
  [/const binPropertyOfStringsSets = new DataSet\([^;]*;/, ""],
  [
    /(?<=function isValidUnicodeProperty).*?\n\}/s,
    byEngine("version, name, value", 'name + "=" + value', "u"),
  ],
  [/(?<=function isValidLoneUnicodeProperty)\(.*?\n\}/s, byEngine("version, value", "value", "u")],
  [/(?<=function isValidLoneUnicodePropertyOfString).*?\n\}/s, byEngine("version, value", "value", "v")],
] as const;

/** regexpp brings tables of the characters of names and of Unicode's properties, 12 KB of them, which the engine knows as well. */
export const idTables: Plugin = {
  name: "id-tables",
  setup(build) {
    build.onLoad({ filter: /regexpp[\\/]index\.mjs$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const [table, test] of ID_TABLES) {
        if (!table.test(contents)) throw new Error(`${path} has no ${table} any more`);
        contents = contents.replace(table, () => test);
      }
      return { contents };
    });
  },
};

/** Of package.json the code uses the name and the version alone. */
export const ownManifest: Plugin = {
  name: "own-manifest",
  setup(build) {
    build.onLoad({ filter: /[\\/]package\.json$/, namespace: "file" }, async ({ path }) => {
      const { name, version } = JSON.parse(await readFile(path, "utf8")) as Record<string, string>;
      return { contents: JSON.stringify({ name, version }), loader: "json" };
    });
  },
};

/** A literal text, or several that are joined. */
const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const DESCRIPTION = new RegExp(String.raw`\bdescription:\s*${TEXT}(?:\s*\+\s*${TEXT})*,?`, "g");

/** The words about each key of mcp.json are for the JSON Schema and the tables of the docs. No session reads them. */
export const withoutKeyWords: Plugin = {
  name: "without-key-words",
  setup(build) {
    build.onLoad(
      { filter: /[\\/]config[\\/]entry[\\/][\w-]+\.ts$/, namespace: "file" },
      async ({ path }) => ({
        contents: (await readFile(path, "utf8")).replaceAll(DESCRIPTION, ""),
        loader: "ts",
      }),
    );
  },
};

const LIMITS_IMPORT = /^import \{ LIMITS \} from "[^"]+";\n/m;

/** A module's text with numbers, or a list of them, in the place of the limits that it names. */
function withPlainLimits(text: string): string {
  const limits = new Map(Object.entries<unknown>(LIMITS));
  const plain = text.replace(/\bLIMITS\.(\w+)/g, (named, key: string) => {
    const limit = limits.get(key);
    return limit === undefined ? named : `(${JSON.stringify(limit)})`;
  });
  const without = plain.replace(LIMITS_IMPORT, "");
  return /\bLIMITS\b/.test(without) ? plain : without;
}

/**
 * Of the table of limits main's first code needs a tenth: it gets the numbers, and what main loads later has the table. A name
 * of a limit is longer than its number everywhere.
 */
export const plainLimits: Plugin = {
  name: "plain-limits",
  setup(build) {
    build.onLoad({ filter: /[\\/](?:src|workers)[\\/].*\.ts$/, namespace: "file" }, async ({ path }) => ({
      contents: withPlainLimits(await readFile(path, "utf8")),
      loader: "ts",
    }));
  },
};

/**
 * Loads heavy modules of Node when code first uses one of their exports. A static import would load the module at once
 * and read all its properties: for `node:http` this loads undici, which takes 15 ms.
 */
export const lateBuiltins: Plugin = {
  name: "late-builtins",
  setup(build) {
    const filter = /^node:(child_process|crypto|http|https|tls|zlib)$/;
    build.onResolve({ filter, namespace: "file" }, ({ path }) => ({ path, namespace: "builtin" }));
    build.onLoad({ filter, namespace: "builtin" }, async ({ path }) => {
      const names = Object.keys(await import(path)).filter((name) => name !== "default");
      return {
        contents: [
          `const load = (name) => ({ enumerable: true, get: () => require(${JSON.stringify(path)})[name] });`,
          `for (const name of ${JSON.stringify(names.join())}.split(","))`,
          "  Object.defineProperty(module.exports, name, load(name));",
        ].join("\n"),
      };
    });
  },
};
