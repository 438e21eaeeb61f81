/**
 * The folders that a server is told (`roots` of its entry; MCP 2025-11-25, client/roots). Only the entry of a server asks
 * for them, since server-filesystem uses them in place of the folders in its arguments.
 */
import { basename, resolve as resolvePath } from "node:path";
import { pathToFileURL } from "node:url";
import type { ServerDefinition } from "../entry/definition.ts";
import { ownPath, type ResolveOptions, withResolver } from "./resolver.ts";

/** `uri`: of the scheme `file`. */
export interface Root {
  uri: string;
  name: string;
}

const rootOf = (folder: string): Root => ({
  uri: pathToFileURL(folder).href,
  name: basename(folder) || folder,
});

/** Undefined: the server is told no folders. Throws `bad_config`. */
export async function rootsOf(
  definition: ServerDefinition,
  options: ResolveOptions,
): Promise<readonly Root[] | undefined> {
  const { roots } = definition;
  if (roots === undefined) return undefined;
  if (roots === true) return [rootOf(resolvePath(options.cwd))];
  const folders = await withResolver(definition, options, async (resolver) =>
    roots.map((path, i) => {
      const key = `roots.${i}`;
      return ownPath({ definition, key, path: resolver.path(key, path) }, options);
    }),
  );
  return [...new Set(folders.map((folder) => resolvePath(folder)))].map(rootOf);
}
