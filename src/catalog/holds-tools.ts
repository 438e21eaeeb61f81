/**
 * Owns: whether the catalog has received a server's tools. The worker reports that a server has listed its tools
 * before it sends the catalog that holds them, so the server's status alone does not mean that a search finds them.
 */
import type { Catalog } from "./known.ts";

/** `server`: name as configured. A server without any tool counts once it has listed them. */
export const holdsToolsOf = ({ servers }: Pick<Catalog, "servers">, server: string): boolean =>
  servers.some(({ name, toolsKnown }) => name === server && toolsKnown);
