/**
 * Shapes a server's `CallToolResult` into what the model will read: text and images, bounded. Unknown or
 * malformed blocks never fail a call. Pure.
 */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { ResultContent } from "../../src/protocol/types.ts";

/** Image types that all providers take. */
const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

type Block = { type?: unknown } & Record<string, unknown>;

const text = (value: string): ResultContent => ({ type: "text", text: value });
const word = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise;

function imageContent(block: Block): ResultContent {
  const mimeType = word(block.mimeType, "unknown type");
  if (typeof block.data !== "string" || block.data === "") return text(`[Image without data: ${mimeType}]`);
  if (!IMAGE_TYPES.has(mimeType)) return text(`[Image of a type that models do not take: ${mimeType}]`);
  if (block.data.length > LIMITS.imageChars)
    return text(`[Image too large: ${mimeType}, ${block.data.length} characters]`);
  return { type: "image", data: block.data, mimeType };
}

function resourceContent(block: Block): ResultContent {
  const resource = (
    typeof block.resource === "object" && block.resource !== null ? block.resource : {}
  ) as Block;
  const uri = word(resource.uri, "without URI");
  if (typeof resource.text === "string") return text(`[Resource: ${uri}]\n${resource.text}`);
  return text(`[Binary resource: ${uri}, ${word(resource.mimeType, "unknown type")}]`);
}

function linkContent(block: Block): ResultContent {
  const description = typeof block.description === "string" ? `: ${block.description}` : "";
  return text(
    `[Resource link: ${word(block.name, "unnamed")} <${word(block.uri, "without URI")}>${description}]`,
  );
}

function toContent(raw: unknown): ResultContent {
  const block = (typeof raw === "object" && raw !== null ? raw : {}) as Block;
  switch (block.type) {
    case "text":
      return text(word(block.text, ""));
    case "image":
      return imageContent(block);
    case "audio":
      return text(`[Audio content: ${word(block.mimeType, "unknown type")}]`);
    case "resource":
      return resourceContent(block);
    case "resource_link":
      return linkContent(block);
    default:
      return text(`[Content of an unknown kind: ${word(block.type, "none")}]`);
  }
}

/** The first `maxBytes` of a text: cut at a line end where one is near, never inside a character. */
function headOf(value: string, maxBytes: number): string {
  const bytes = Buffer.from(value);
  let end = maxBytes;
  // 10xxxxxx continues a UTF-8 sequence (RFC 3629, section 3): step back to where it begins.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const cut = bytes.toString("utf8", 0, end);
  const lineEnd = cut.lastIndexOf("\n");
  return lineEnd > cut.length / 2 ? cut.slice(0, lineEnd) : cut;
}

/** Bounds one text by lines and by bytes, and says how much is missing. */
export function boundText(value: string, maxBytes: number, maxLines: number): string {
  const lines = value.split("\n", maxLines + 1);
  const byLines = lines.length > maxLines ? lines.slice(0, maxLines).join("\n") : value;
  const kept = Buffer.byteLength(byLines) > maxBytes ? headOf(byLines, maxBytes) : byLines;
  if (kept.length === value.length) return value;
  const missing = Buffer.byteLength(value) - Buffer.byteLength(kept);
  return `${kept}\n[${missing.toLocaleString("en")} more bytes were left out]`;
}

/** The model-facing content of a result. Never empty. */
export function shapeContent(result: CallToolResult): ResultContent[] {
  const blocks: unknown[] = Array.isArray(result.content) ? result.content : [];
  const shaped = blocks.map(toContent);
  if (shaped.length === 0) {
    const structured = result.structuredContent;
    shaped.push(text(structured === undefined ? "[The tool returned nothing]" : JSON.stringify(structured)));
  }
  return bounded(shaped);
}

/** Keeps within the limits of one result: the last text that fits is cut, the texts behind it are counted. */
function bounded(contents: readonly ResultContent[]): ResultContent[] {
  let bytes: number = LIMITS.resultBytes;
  let lines: number = LIMITS.resultLines;
  let leftOut = 0;
  const kept = contents.filter((content) => content.type !== "text" || content.text !== "");
  const result: ResultContent[] = [];
  for (const content of kept) {
    if (content.type !== "text") {
      result.push(content);
      continue;
    }
    if (bytes <= 0 || lines <= 0) {
      leftOut += Buffer.byteLength(content.text);
      continue;
    }
    const cut = boundText(content.text, bytes, lines);
    bytes -= Buffer.byteLength(content.text);
    lines -= content.text.split("\n", lines + 1).length;
    result.push(text(cut));
  }
  if (leftOut > 0) result.push(text(`[${leftOut.toLocaleString("en")} more bytes were left out]`));
  return result.length > 0 ? result : [text("[The tool returned empty text]")];
}
