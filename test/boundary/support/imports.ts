/** Owns: the list of imports among the source files of `src` and `workers`, types included. */
import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";

export const root = join(import.meta.dirname, "..", "..", "..");

/** One import: paths below the checkout, with slashes; `to` may be a package. */
export interface Import {
  from: string;
  to: string;
}

const SPECIFIER = /(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g;

/** Returns the imports in one file's text: static, dynamic, and of types. */
export const importsIn = (file: string, text: string): Import[] =>
  [...text.matchAll(SPECIFIER)].map(([, specifier = ""]) => ({
    from: file,
    to: specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : specifier,
  }));

/** Resolves with the paths of the TypeScript files below a folder of the checkout. */
export async function sourceFiles(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true });
  return entries
    .filter((entry) => entry.endsWith(".ts"))
    .map((entry) => posix.join(folder, entry.replaceAll("\\", "/")));
}

/** Resolves with all imports of the given files. */
export async function importsOf(files: readonly string[]): Promise<Import[]> {
  const lists = await Promise.all(
    files.map(async (file) => importsIn(file, await readFile(join(root, file), "utf8"))),
  );
  return lists.flat();
}

/** Returns groups of nodes that reach each other, by Tarjan's algorithm, without nodes that reach only themselves. */
export function circles(edges: readonly (readonly [string, string])[]): string[][] {
  const next = new Map<string, Set<string>>();
  for (const [from, to] of edges) next.set(from, (next.get(from) ?? new Set()).add(to));
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.size - 1);
    stack.push(node);
    for (const to of next.get(node) ?? []) {
      if (!index.has(to)) visit(to);
      if (stack.includes(to)) low.set(node, Math.min(low.get(node) ?? 0, low.get(to) ?? 0));
    }
    if (low.get(node) !== index.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) found.push(group.sort());
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return found;
}
