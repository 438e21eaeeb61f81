/**
 * Turns the content blocks of a result (MCP 2025-11-25, server/tools, tool result) into text and images for a model.
 * Other content is saved to a file, and a text names the file. No block fails a call, whatever it holds.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { decodedBytes, normalizeBase64 } from "./base64.ts";
import { type Block, type ShapeOptions, word } from "./context.ts";
import { imageContent } from "./images.ts";
import { label } from "./label.ts";
import { extensionFor, isTextType, mediaType } from "./mime.ts";

/** For a longer text the label becomes a text of its own, so that the long text is not copied. */
const JOINED_CHARS = 64 * 1024;

const labelled = (head: string, value: string): ResultContent[] =>
  value.length < JOINED_CHARS ? [textBlock(`${head}\n${value}`)] : [textBlock(head), textBlock(value)];

/** Saves bytes, and returns a text with the label `head` and the path. */
async function savedContent(
  head: string,
  data: unknown,
  options: ShapeOptions & { type: string; uri?: string },
): Promise<ResultContent[]> {
  const base64 = typeof data === "string" ? normalizeBase64(data) : undefined;
  if (base64 === undefined || base64 === "") return [textBlock(`${head} Without usable data.`)];
  const kind = `${options.type || "unknown type"}, ${formatBytes(decodedBytes(base64))}`;
  const saved = await options.store.save(
    [Buffer.from(base64, "base64")],
    `${options.server}-${options.tool}`,
    extensionFor(options.type, options.uri),
  );
  return "path" in saved
    ? [textBlock(`${head} Saved to ${saved.path} (${kind}).`)]
    : [textBlock(`${head} Could not be saved: ${saved.problem} (${kind}).`)];
}

function audioContent(block: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const type = mediaType(block.mimeType);
  return savedContent(`[Audio content: ${type || "unknown type"}]`, block.data, { ...options, type });
}

async function blobContent(head: string, resource: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const type = mediaType(resource.mimeType);
  const uri = label(resource.uri, "", options.redact);
  const base64 = typeof resource.blob === "string" ? normalizeBase64(resource.blob) : undefined;
  if (base64 !== undefined && isTextType(type)) {
    return labelled(head, Buffer.from(base64, "base64").toString("utf8"));
  }
  if (base64 !== undefined && type.startsWith("image/") && type !== "image/svg+xml") {
    return [textBlock(head), ...(await imageContent({ data: base64, mimeType: type }, options))];
  }
  return savedContent(head, resource.blob, { ...options, type, uri });
}

async function resourceContent(block: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const resource = isObject(block.resource) ? block.resource : {};
  const head = `[Resource: ${label(resource.uri, "without URI", options.redact)}]`;
  if (typeof resource.text === "string") return labelled(head, resource.text);
  if (resource.blob !== undefined) return blobContent(head, resource, options);
  return [textBlock(`${head} Without content.`)];
}

/**
 * `uri`: as the server sent it. The sentence names a tool of the same server, or nothing: a server that could have a file
 * read or an address fetched by our words would get the user's files, or a call home.
 */
const howToRead = (uri: string, { server, readResource }: ShapeOptions): string =>
  uri === ""
    ? ""
    : (readResource(uri) ?? `The MCP server ${server} wrote this link and has no tool that reads it.`);

function linkContent(block: Block, options: ShapeOptions): ResultContent[] {
  const line = (value: unknown, otherwise: string): string => label(value, otherwise, options.redact);
  const uri = line(block.uri, "");
  const type = mediaType(block.mimeType);
  const size = typeof block.size === "number" && block.size >= 0 ? formatBytes(block.size) : "";
  const kind = [type, size].filter((part) => part !== "").join(", ");
  const title = line(block.title, line(block.name, "unnamed"));
  const head = `[Resource link: ${title}] ${uri || "without URI"}${kind === "" ? "" : ` (${kind})`}`;
  const lines = [head, word(block.description, ""), howToRead(word(block.uri, ""), options)];
  return [textBlock(lines.filter((line) => line !== "").join("\n"))];
}

/** One block. It becomes several contents if a label goes with an image or a long text. */
export async function blockContent(raw: unknown, options: ShapeOptions): Promise<ResultContent[]> {
  if (typeof raw === "string") return [textBlock(raw)];
  const block = isObject(raw) ? raw : {};
  switch (block.type) {
    case "text":
      return [textBlock(word(block.text, ""))];
    case "image":
      return imageContent(block, options);
    case "audio":
      return audioContent(block, options);
    case "resource":
      return resourceContent(block, options);
    case "resource_link":
      return linkContent(block, options);
    default:
      return [textBlock(`[Content of an unknown kind: ${label(block.type, "none", options.redact)}]`)];
  }
}

/** Whether the server means the block for the person alone (MCP 2025-11-25, annotations, `audience`). */
export function isForUserOnly(raw: unknown): boolean {
  const annotations = isObject(raw) && isObject(raw.annotations) ? raw.annotations : {};
  const { audience } = annotations;
  return Array.isArray(audience) && audience.length > 0 && audience.every((role) => role === "user");
}
