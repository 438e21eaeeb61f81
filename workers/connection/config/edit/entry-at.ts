/** Where a server's entry stands in a JSONC text, or is to stand. Pure. */
import * as jsonc from "jsonc-parser";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { BOM } from "../../../../src/shared/text/reading.ts";
import { parseJsonc } from "../files/files.ts";

const NEW_OBJECT = "{}\n";

/** The root object. Throws `bad_config` if the text cannot be changed without guessing. */
function checked(text: string, file: string): Record<string, unknown> {
  const parsed = parseJsonc(text);
  if ("problem" in parsed) {
    const { message, line = 1, column = 1 } = parsed.problem;
    throw new ThreadsError("bad_config", `${file}:${line}:${column} cannot be changed: ${message}.`, {
      remedy: "Correct it first.",
      data: { file, line, column },
    });
  }
  if (isObject(parsed.document.value)) return parsed.document.value;
  throw new ThreadsError("bad_config", `${file} cannot be changed: it holds no object.`, {
    remedy: 'Write {"mcpServers": {}} first.',
  });
}

/** A text that is empty or holds only comments gets an empty object at its end. */
function withObject(text: string): string {
  const scanner = jsonc.createScanner(text, true);
  if (scanner.scan() !== jsonc.SyntaxKind.EOF) return text;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  if (text.trim() === "") return NEW_OBJECT;
  return text + (text.endsWith("\n") ? "" : eol) + NEW_OBJECT.replace("\n", eol);
}

/** The text without its BOM and with a root object. Throws `bad_config` if it cannot be changed without guessing. */
export function rooted(
  given: string | undefined,
  file: string,
): { bom: string; text: string; root: Record<string, unknown> } {
  const bom = given?.startsWith(BOM) ? BOM : "";
  const text = withObject((given ?? "").slice(bom.length));
  return { bom, text, root: checked(text, file) };
}

/** Both spellings; the one that is read last, and so counts, comes first. */
export const SERVER_KEYS = ["mcp-servers", "mcpServers"] as const;

export interface EntryAt {
  bom: string;
  /** The text without the BOM, with a root object. */
  text: string;
  path: [key: string, server: string];
  /** Empty if there is no such entry yet. */
  entry: Record<string, unknown>;
}

/** Where the server's entry is, or is to be. Throws `bad_config` if the text cannot be changed without guessing. */
export function entryAt(given: string | undefined, server: string, file: string): EntryAt {
  const { bom, text, root } = rooted(given, file);
  const holds = (key: string): boolean => isObject(root[key]) && Object.hasOwn(root[key], server);
  const key = SERVER_KEYS.find(holds) ?? (isObject(root["mcp-servers"]) ? "mcp-servers" : "mcpServers");
  for (const path of [[key], [key, server]]) {
    const value = path.reduce<unknown>(
      (at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      root,
    );
    if (value !== undefined && !isObject(value)) {
      throw new ThreadsError("bad_config", `${file} cannot be changed: ${path.join(".")} is no object.`, {
        remedy: "Correct it first.",
      });
    }
  }
  const servers = root[key] as Record<string, Record<string, unknown> | undefined> | undefined;
  const entry = (servers !== undefined && Object.hasOwn(servers, server) && servers[server]) || {};
  return { bom, text, path: [key, server], entry };
}
