/**
 * Reads one configuration file: JSON with comments and trailing commas, with or without BOM. A missing
 * file is no mistake; everything else that is wrong becomes a `ConfigProblem` with line and column, and
 * costs only the entry that it is in.
 */
import { readFile } from "node:fs/promises";
import * as jsonc from "jsonc-parser";
import { messageOf } from "../../../src/protocol/errors.ts";
import type { ConfigProblem } from "../../../src/protocol/types.ts";
import { parseEntry, type ServerDefinition } from "./definition.ts";
import type { ConfigSource } from "./paths.ts";

export interface FileResult {
  servers: ServerDefinition[];
  problems: ConfigProblem[];
  /** The `settings` of the file, as they stand. */
  settings?: Record<string, unknown>;
}

const SERVER_KEYS = ["mcpServers", "mcp-servers"] as const;
const EXAMPLE = '{"mcpServers": {"name": {"command": "..."}}}';

/** Line and column, both from 1, of a character offset. */
function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { line, column: offset - before.lastIndexOf("\n") };
}

/** Words for jsonc-parser's error codes, for example `CommaExpected` -> "comma expected". */
const syntaxMessage = (code: jsonc.ParseErrorCode): string =>
  jsonc
    .printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

function readServers(text: string, root: jsonc.Node, source: ConfigSource): FileResult {
  const result: FileResult = { servers: [], problems: [] };
  const problem = (node: jsonc.Node, key: string, message: string, remedy: string): void => {
    result.problems.push({ file: source.file, ...positionOf(text, node.offset), key, message, remedy });
  };
  const found = SERVER_KEYS.find((key) => jsonc.findNodeAtLocation(root, [key]));
  if (found === undefined) return result;
  const node = jsonc.findNodeAtLocation(root, [found]) as jsonc.Node;
  if (node.type !== "object") {
    problem(node, found, `expected an object of servers, found ${node.type}`, `Write ${EXAMPLE}.`);
    return result;
  }
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? [];
    if (!keyNode || !valueNode) continue;
    const name = String(keyNode.value);
    const parsed = parseEntry(name, jsonc.getNodeValue(valueNode), source);
    if ("definition" in parsed) {
      result.servers.push(parsed.definition);
      continue;
    }
    for (const { path, message, remedy } of parsed.mistakes) {
      const at = jsonc.findNodeAtLocation(valueNode, path) ?? valueNode;
      problem(at, [found, name, ...path].join("."), message, remedy);
    }
  }
  return result;
}

/** Checks the text of a file. Never throws. */
export function parseConfigText(rawText: string, source: ConfigSource): FileResult {
  const text = rawText.replace(/^\uFEFF/, "");
  const whole = (message: string, remedy: string, offset = 0): FileResult => ({
    servers: [],
    problems: [{ file: source.file, ...positionOf(text, offset), message, remedy }],
  });
  if (text.trim() === "") return whole("the file is empty", `Write ${EXAMPLE}, or delete the file.`);
  const errors: jsonc.ParseError[] = [];
  const root = jsonc.parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
  const error = errors[0];
  if (error || !root) {
    return whole(
      `not valid JSON: ${error ? syntaxMessage(error.error) : "no value"}`,
      "Correct it there; no server of this file is used until then.",
      error?.offset ?? 0,
    );
  }
  if (root.type !== "object") {
    return whole(`expected an object, found ${root.type}`, `Write ${EXAMPLE}.`, root.offset);
  }
  const settings = jsonc.findNodeAtLocation(root, ["settings"]);
  const values = settings?.type === "object" ? { settings: jsonc.getNodeValue(settings) } : {};
  return { ...readServers(text, root, source), ...values };
}

export async function readConfigFile(source: ConfigSource): Promise<FileResult> {
  try {
    return parseConfigText(await readFile(source.file, "utf8"), source);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { servers: [], problems: [] };
    const message = `cannot be read: ${messageOf(error)}`;
    return {
      servers: [],
      problems: [{ file: source.file, message, remedy: "Make the file readable, or delete it." }],
    };
  }
}
