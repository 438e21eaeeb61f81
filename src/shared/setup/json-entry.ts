/**
 * One server from a piece of JSON, as READMEs show it: a whole file with `mcpServers`, one property of it, or the entry
 * alone. The worker checks the entry. Pure.
 */
import { isObject } from "../protocol/is-object.ts";
import type { ServerEntry } from "../protocol/setup.ts";

/** Far more than a server needs; a person may paste anything. */
const JSON_CHARS = 100_000;
const SERVER_KEYS = ["mcpServers", "mcp-servers", "mcp_servers", "servers"];

export type JsonServer = { name: string | undefined; entry: ServerEntry } | { problem: string };

const isEntry = (value: unknown): value is ServerEntry =>
  isObject(value) && ["command", "url", "serverUrl", "httpUrl"].some((key) => typeof value[key] === "string");

/** Windsurf and Gemini have other keys for the URL. */
function withUrl({ serverUrl, httpUrl, ...entry }: ServerEntry): ServerEntry {
  const url = entry.url ?? serverUrl ?? httpUrl;
  return url === undefined ? entry : { ...entry, url };
}

/** The JSON value; undefined if the text is none. A property without the braces around it counts as an object. */
function parsed(text: string): unknown {
  for (const whole of [text, `{${text.trim().replace(/,$/, "")}}`]) {
    try {
      return JSON.parse(whole) as unknown;
    } catch {
      // Either form may be the right one.
    }
  }
  return undefined;
}

export function readJsonServer(text: string): JsonServer {
  if (text.length > JSON_CHARS) return { problem: "That is too long for the entry of one server." };
  const root = parsed(text);
  if (!isObject(root)) return { problem: "That is no JSON object: check its quotes, commas and braces." };
  if (isEntry(root)) return { name: undefined, entry: withUrl(root) };
  const key = SERVER_KEYS.find((one) => isObject(root[one]));
  const servers = Object.entries(key === undefined ? root : (root[key] as object));
  const entries = servers.filter((server): server is [string, ServerEntry] => isEntry(server[1]));
  const [first] = entries;
  if (first === undefined) return { problem: "The JSON names no server with a command or a url." };
  if (entries.length > 1)
    return {
      problem: `The JSON holds ${entries.length} servers: add them one by one, or write them into your mcp.json.`,
    };
  return { name: first[0], entry: withUrl(first[1]) };
}
