/**
 * Turns the content blocks of a result (MCP 2025-11-25, server/tools, tool result) into text and images for a model.
 * The model gets an image if every provider accepts it: a provider refuses a request because of one image with a wrong
 * type, wrong bytes or a wrong size, and every later request of the session with it. Other content is saved to a file, and
 * a text names the file. Names, titles and addresses of a server become labels that cannot look like another line. No block
 * fails a call, whatever it holds.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { GuardLimits } from "../config/entry/settings.ts";
import type { Redactor } from "../secrets/redact.ts";
import type { ExpectedFile } from "../skills/check.ts";
import type { ResultStore } from "./files.ts";
import { decodedBytes, imageSize, normalizeBase64, sniffImageType } from "./image-bytes.ts";

export interface ShapeOptions {
  server: string;
  tool: string;
  /** Time from the request to the server's answer. */
  durationMs: number;
  store: ResultStore;
  /** `false`: nothing is left out. */
  guard: GuardLimits | false;
  /** The model gets JSON as TOON if that is shorter. */
  toon: boolean;
  /** The caller, a codemode script, reads the server's own result, so the result is also sent unchanged. */
  wantsStructured: boolean;
  /** Takes the server's secrets out of a text. */
  redact: Redactor;
  /** One sentence on how the model reads this resource of the server; undefined if no tool reads it. */
  readResource: (uri: string) => string | undefined;
  /** The content becomes a message of the user, which Pi draws as it is. */
  asMessage?: boolean;
  /** The result is this file of a skill, or nothing of it is shown. */
  file?: ExpectedFile;
}

/** Settings for the results of one server. */
export type ResultSettings = Pick<ShapeOptions, "guard" | "toon" | "readResource">;

/** A block as the server sent it. Nothing in it has been checked. */
type Block = Record<string, unknown>;

/** `value` if it is a string that is not empty, or `otherwise`. */
export const word = (value: unknown, otherwise: string): string =>
  typeof value === "string" && value !== "" ? value : otherwise;

const LABEL_CHARS = 1_000;

/** A string that says something, as a label; `otherwise` for anything else. */
function label(value: unknown, otherwise: string, redact: Redactor): string {
  return (typeof value === "string" ? oneLine(redact(value), LABEL_CHARS) : "") || otherwise;
}

/** The label before the text of an embedded resource, in the same text. */
const RESOURCE = /^\[Resource: [^\n]*\]\n/;

/** `label`: with its line end, or empty. `body`: the rest. */
export function splitLabel(text: string): { label: string; body: string } {
  const [label = ""] = RESOURCE.exec(text) ?? [];
  return { label, body: text.slice(label.length) };
}

/** RFC 6838, section 4.2. */
const MEDIA_TYPE = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/;

/** `type/subtype` in lower case, without parameters; empty if `value` is not a media type. */
function mediaType(value: unknown): string {
  if (typeof value !== "string") return "";
  const type = (value.split(";", 1)[0] ?? "").trim().toLowerCase();
  return MEDIA_TYPE.test(type) ? type : "";
}

const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i;

/**
 * The bytes as text of the charset that the media type names, or of UTF-8 (labels of the Encoding standard). Undefined: they are
 * no such text, or the charset is unknown, so that only the bytes themselves hold all of it.
 */
function decoded(bytes: Uint8Array, declared: unknown): string | undefined {
  const [, charset = "utf-8"] = CHARSET.exec(word(declared, "").slice(0, LABEL_CHARS)) ?? [];
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const TEXT_TYPES = new Set([
  "application/json",
  "application/xml",
  "application/javascript",
  "application/typescript",
  "application/yaml",
  "application/x-yaml",
  "application/toml",
  "application/x-ndjson",
  "application/sql",
]);

/** Whether bytes of this type are shown as text (RFC 6839: structured syntax suffixes). */
const isTextType = (type: string): boolean =>
  type.startsWith("text/") || TEXT_TYPES.has(type) || type.endsWith("+json") || type.endsWith("+xml");

const EXTENSIONS: Record<string, string> = {
  "application/gzip": "gz",
  "application/json": "json",
  "application/pdf": "pdf",
  "application/zip": "zip",
  "audio/aac": "aac",
  "audio/flac": "flac",
  "audio/mp4": "m4a",
  "audio/mpeg": "mp3",
  "audio/ogg": "ogg",
  "audio/wav": "wav",
  "audio/webm": "weba",
  "audio/x-wav": "wav",
  "image/avif": "avif",
  "image/bmp": "bmp",
  "image/gif": "gif",
  "image/heic": "heic",
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/svg+xml": "svg",
  "image/tiff": "tiff",
  "image/webp": "webp",
  "image/x-icon": "ico",
  "text/csv": "csv",
  "text/html": "html",
  "text/markdown": "md",
  "video/mp4": "mp4",
  "video/webm": "webm",
};

/** File extension without a dot: from the type, otherwise from the end of the URI, otherwise `txt` or `bin`. */
function extensionFor(type: string, uri = ""): string {
  const known = Object.hasOwn(EXTENSIONS, type) ? EXTENSIONS[type] : undefined;
  if (known !== undefined) return known;
  const ending = /\.([A-Za-z0-9]{1,8})$/.exec(uri.split(/[?#]/, 1)[0] ?? "")?.[1];
  return ending?.toLowerCase() ?? (isTextType(type) ? "txt" : "bin");
}

/** Usable base64; undefined if the value is none. */
const base64Of = (data: unknown): string | undefined =>
  typeof data === "string" ? normalizeBase64(data) : undefined;

/** Saves bytes. Answers where they are, or why they could not be saved, and what they are. */
async function save(
  base64: string,
  type: string,
  { store, server, tool }: ShapeOptions,
  uri?: string,
): Promise<{ where: string; kind: string }> {
  const bytes = Buffer.from(base64, "base64");
  const saved = await store.save([bytes], `${server}-${tool}`, extensionFor(type, uri));
  return {
    where: "path" in saved ? `saved to ${saved.path}` : `could not be saved: ${saved.problem}`,
    kind: `${type || "unknown type"}, ${formatBytes(decodedBytes(base64))}`,
  };
}

/** `why`: the model does not get the image. */
export async function savedImage(
  base64: string,
  type: string,
  why: string,
  options: ShapeOptions,
): Promise<ResultContent[]> {
  const { where, kind } = await save(base64, type, options);
  return [textBlock(`[Image: ${kind}, ${why}; ${where}]`)];
}

/** Why a provider would refuse the image; undefined if none would. */
function whyUnfit(type: string, base64: string): string | undefined {
  if (base64.length > LIMITS.imageChars) return "too large for a model";
  const size = imageSize(type, base64);
  if (!size) return "broken";
  const { width, height } = size;
  if (Math.max(width, height) <= LIMITS.imagePixels) return undefined;
  return `${width} x ${height} pixels, too large for a model`;
}

async function imageContent(block: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const declared = mediaType(block.mimeType);
  const base64 = base64Of(block.data);
  if (!base64) return [textBlock(`[Image without usable data: ${declared || "unknown type"}]`)];
  // The bytes decide the type. The declared type is used only if the bytes say nothing.
  const real = sniffImageType(base64);
  if (real === undefined) return savedImage(base64, declared, "of a type that models do not take", options);
  const why = whyUnfit(real, base64);
  if (why !== undefined) return savedImage(base64, real, why, options);
  return [{ type: "image", data: base64, mimeType: real }];
}

/** Saves the images of one result that exceed the limits for their number and their characters. */
export async function limitImages(
  contents: readonly ResultContent[],
  options: ShapeOptions,
): Promise<ResultContent[]> {
  let images = 0;
  let chars = 0;
  const limited: ResultContent[] = [];
  for (const content of contents) {
    if (content.type === "image") {
      images++;
      chars += content.data.length;
      if (images > LIMITS.imagesPerResult || chars > LIMITS.imagesChars) {
        const { data, mimeType } = content;
        limited.push(...(await savedImage(data, mimeType, "one too many for a model", options)));
        continue;
      }
    }
    limited.push(content);
  }
  return limited;
}

/** An image for the person alone: saved, and named in a line. */
export async function imageForPerson(raw: unknown, options: ShapeOptions): Promise<ResultContent[]> {
  const block = isObject(raw) ? raw : {};
  const base64 = base64Of(block.data);
  if (!base64) return imageContent(block, options);
  const type = sniffImageType(base64) ?? mediaType(block.mimeType);
  return savedImage(base64, type, "for you only", options);
}

/** For a longer text the label becomes a text of its own, so that the long text is not copied. */
const JOINED_CHARS = 64 * 1024;

const labelled = (head: string, value: string): ResultContent[] =>
  value.length < JOINED_CHARS ? [textBlock(`${head}\n${value}`)] : [textBlock(head), textBlock(value)];

/** Saves bytes, and returns a text with the label `head` and the path. */
async function savedContent(
  head: string,
  base64: string | undefined,
  options: ShapeOptions & { type: string; uri?: string },
): Promise<ResultContent[]> {
  if (!base64) return [textBlock(`${head} Without usable data.`)];
  const { where, kind } = await save(base64, options.type, options, options.uri);
  return [textBlock(`${head} ${where.replace(/^./, (first) => first.toUpperCase())} (${kind}).`)];
}

function audioContent(block: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const type = mediaType(block.mimeType);
  return savedContent(`[Audio content: ${type || "unknown type"}]`, base64Of(block.data), {
    ...options,
    type,
  });
}

async function blobContent(head: string, resource: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const type = mediaType(resource.mimeType);
  const uri = label(resource.uri, "", options.redact);
  const base64 = base64Of(resource.blob);
  if (base64 !== undefined && isTextType(type)) {
    const text = decoded(Buffer.from(base64, "base64"), resource.mimeType);
    if (text !== undefined) return labelled(head, text);
  }
  if (base64 !== undefined && type.startsWith("image/") && type !== "image/svg+xml") {
    return [textBlock(head), ...(await imageContent({ data: base64, mimeType: type }, options))];
  }
  return savedContent(head, base64, { ...options, type, uri });
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
