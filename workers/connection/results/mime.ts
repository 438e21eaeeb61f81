/** Media types: which of them are text, and the file extension for each. Pure. */

/** RFC 6838, section 4.2. */
const MEDIA_TYPE = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/;

/** `type/subtype` in lower case, without parameters; empty if `value` is not a media type. */
export function mediaType(value: unknown): string {
  if (typeof value !== "string") return "";
  const type = (value.split(";", 1)[0] ?? "").trim().toLowerCase();
  return MEDIA_TYPE.test(type) ? type : "";
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
export const isTextType = (type: string): boolean =>
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
export function extensionFor(type: string, uri = ""): string {
  const known = Object.hasOwn(EXTENSIONS, type) ? EXTENSIONS[type] : undefined;
  if (known !== undefined) return known;
  const ending = /\.([A-Za-z0-9]{1,8})$/.exec(uri.split(/[?#]/, 1)[0] ?? "")?.[1];
  return ending?.toLowerCase() ?? (isTextType(type) ? "txt" : "bin");
}
