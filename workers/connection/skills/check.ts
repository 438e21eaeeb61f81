/**
 * The check of a file of a skill, as it came, against what the server listed of it (SEP-2640, "Integrity and Verification"), and
 * what a model reads of it. Runs where the result is: in the connection worker, or in the thread for long messages.
 */
import { createHash } from "node:crypto";
import type { LoadedSkill, ResultContent } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { grouped } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { sameJson } from "../../shared/json.ts";
import type { GuardLimits } from "../config/entry/settings.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { readFrontmatter } from "./frontmatter.ts";

/** What a file must be, and how it is shown: plain data, which crosses to the thread for long messages. */
export interface ExpectedFile {
  uri: string;
  /** Absent: of a skill whose files cannot be checked. */
  listed?: { digest: string; size: number };
  /** Of SKILL.md: the frontmatter that the server told. */
  frontmatter?: Record<string, unknown>;
  /** The sentences before the text, which say whose it is. */
  head: string;
  /** First line that is shown, from 1. */
  line: number;
  /** The whole file as it came, without `head`: whoever reads it is no model. */
  forPerson?: boolean;
  skill: LoadedSkill;
}

/** `problem`: worded to follow a colon. */
export type CheckedFile = { content: ResultContent[]; image?: CallToolResult } | { problem: string };

interface Content {
  text?: unknown;
  blob?: unknown;
  uri?: unknown;
  mimeType?: unknown;
}

/** The one content of a `resources/read` as `asToolResult` gives it. */
function contentIn({ content }: CallToolResult): Content | undefined {
  const [block, ...others] = Array.isArray(content) ? (content as unknown[]) : [];
  if (others.length > 0 || !isObject(block) || !isObject(block.resource)) return undefined;
  return block.resource;
}

function bytesIn({ text, blob }: Content): Buffer | undefined {
  if (typeof text === "string") return Buffer.from(text, "utf8");
  return typeof blob === "string" ? Buffer.from(blob, "base64") : undefined;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The first characters of a text that fit into so many bytes of UTF-8. */
const startOf = (text: string, bytes: number): string =>
  text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(bytes)).read);

/** The lines from `line` on, as many as the limits allow, and a sentence on what is left. */
function windowOf(text: string, line: number, limits: GuardLimits | false): string[] {
  const lines = text.split("\n");
  const all = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  const from = Math.max(Math.min(line, all), 1) - 1;
  const { maxBytes, maxLines } = limits || {
    maxBytes: Number.MAX_SAFE_INTEGER,
    maxLines: Number.MAX_SAFE_INTEGER,
  };
  let bytes = 0;
  let to = from;
  while (to < lines.length && to - from < maxLines) {
    bytes += Buffer.byteLength(lines[to] ?? "") + 1;
    if (bytes > maxBytes && to > from) break;
    to++;
    if (bytes > maxBytes) break;
  }
  const shown = lines.slice(from, to).join("\n");
  const kept = bytes > maxBytes && to === from + 1 ? startOf(shown, maxBytes) : shown;
  const isCut = kept.length < shown.length;
  if (from === 0 && to >= all && !isCut) return [kept];
  const next = to < all ? ` Read on with "line": ${to + 1}.` : "";
  const half = isCut ? " This line is too long to be shown whole." : "";
  return [kept, `[Lines ${from + 1} to ${Math.min(to, all)} of ${all}.${half}${next}]`];
}

/** Room for the sentences before a file. */
const HEAD = { bytes: 4_096, lines: 20 };

const within = (guard: GuardLimits | false): GuardLimits | false => {
  if (guard === false) return false;
  const { maxBytes, maxLines } = guard;
  return {
    maxBytes: Math.max(Math.floor(maxBytes / 2), maxBytes - HEAD.bytes),
    maxLines: Math.max(Math.ceil(maxLines / 2), maxLines - HEAD.lines),
  };
};

/** Never rejects. `guard`: how much the model sees of a result. */
export async function checkFile(
  result: CallToolResult,
  { listed, frontmatter, head, line, forPerson = false }: ExpectedFile,
  guard: GuardLimits | false,
): Promise<CheckedFile> {
  const content = contentIn(result);
  const bytes = content && bytesIn(content);
  if (!content || !bytes) return { problem: "the server answered something else than one file" };
  if (listed && bytes.length !== listed.size)
    return { problem: `it has ${bytes.length} bytes in place of the ${listed.size} that were listed` };
  if (listed && `sha256:${createHash("sha256").update(bytes).digest("hex")}` !== listed.digest)
    return { problem: "its SHA-256 is not the one that was listed" };
  if (bytes.length > LIMITS.skillBytes)
    return { problem: `it has ${grouped(bytes.length)} bytes, more than a whole skill can have` };
  const text = textOf(bytes);
  if (frontmatter) {
    if (text === undefined) return { problem: "it is no UTF-8 text" };
    const read = await readFrontmatter(text);
    if ("problem" in read) return read;
    if (!sameJson(read.value, frontmatter))
      return { problem: "its frontmatter is not the one that was listed" };
  }
  const said = forPerson ? [] : [textBlock(head)];
  if (text === undefined || bytes.includes(0)) {
    // An image is shown as one; other bytes say nothing to a model.
    const isImage = typeof content.mimeType === "string" && content.mimeType.startsWith("image/");
    if (isImage) return { content: said, image: result };
    return { content: [...said, textBlock(`[${bytes.length} bytes that are no text.]`)] };
  }
  if (forPerson) return { content: [textBlock(text)] };
  return { content: [...said, ...windowOf(text, line, within(guard)).map(textBlock)] };
}
