/**
 * Turns a server's result into text and images for the model, in whichever thread it is: here, or in the thread for long
 * messages, which then writes files through this one. Owns the order: blocks, structured content, TOON, guard, cleaning;
 * and what crosses the two threads. Never fails, whatever a server sends.
 */

import { type CallResult, encode, type ResultContent } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { cleanBlocks, isTextBlock as isText, textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { cleanText, withBases } from "../../../src/shared/text/unprintable.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Redactor } from "../secrets/redact.ts";
import { checkFile, type ExpectedFile } from "../skills/check.ts";
import {
  blockContent,
  imageForPerson,
  isForUserOnly,
  limitImages,
  type ShapeOptions,
  savedImage,
  word,
} from "./content.ts";
import { joined, limitFiles, type ResultStore } from "./files.ts";
import { fitsGuard, type Guarded, guardOutput, measure, whereWhole, wholeText } from "./guard.ts";
import { forScript, readStructured, type Structured, structuredForModel, toonOr } from "./structured.ts";

/** Text for the person alone, which stands in the row of the call above what the model gets. */
const FOR_USER_BYTES = 4_000;

interface Parts {
  contents: ResultContent[];
  /** Texts alone: an image is saved and named. */
  forUser: ResultContent[];
}

async function readBlocks(blocks: readonly unknown[], options: ShapeOptions): Promise<Parts> {
  const contents: ResultContent[] = [];
  const forUser: ResultContent[] = [];
  for (const block of blocks) {
    if (!isForUserOnly(block)) {
      contents.push(...(await blockContent(block, options)));
      continue;
    }
    const isImage = isObject(block) && block.type === "image";
    for (const shown of await (isImage ? imageForPerson(block, options) : blockContent(block, options))) {
      if (isText(shown)) forUser.push(shown);
      else forUser.push(...(await savedImage(shown.data, shown.mimeType, "for you only", options)));
    }
  }
  return { contents: await limitImages(contents, options), forUser };
}

/** Takes secrets out, which is done before a cut: neither half of a secret that is cut in two would be found. */
const redacted = (contents: readonly ResultContent[], redact: Redactor): ResultContent[] =>
  contents.map((content) => (isText(content) ? textBlock(redact(content.text)) : content));

/** Nothing of it is lost: a longer text is stored whole, and names the file. Undefined if there is nothing. */
async function textForUser(
  contents: readonly ResultContent[],
  { store, label, redact }: { store: ResultStore; label: string; redact: Redactor },
): Promise<string | undefined> {
  if (contents.length === 0) return undefined;
  const limits = { maxBytes: FOR_USER_BYTES, maxLines: LIMITS.resultLines };
  const { content } = await guardOutput(redacted(contents, redact), { limits, store, label });
  // What is cleaned away may have stood within a secret.
  return redact(cleanText([...wholeText(content)].join("")));
}

/** Leaves out empty texts. If nothing is left, one line says so. */
function orNothing(
  contents: readonly ResultContent[],
  { forUser }: Parts,
  isError: boolean,
): ResultContent[] {
  const said = contents.filter((content) => !isText(content) || content.text !== "");
  if (said.length > 0) return said;
  if (isError) return [textBlock("[The tool failed and said nothing]")];
  return [
    textBlock(forUser.length === 0 ? "[The tool returned nothing]" : "[The tool answered the user only]"),
  ];
}

/**
 * The contents that the model gets, cleaned. Nothing is lost: one line says what was taken out, and names the file that
 * holds all of it. Cleans only what is shown, so after the guard.
 */
async function cleaned(
  { content, storedAt }: Pick<Guarded, "content" | "storedAt">,
  whole: readonly ResultContent[],
  { store, label, redact }: { store: ResultStore; label: string; redact: Redactor },
): Promise<Pick<Guarded, "content" | "storedAt">> {
  const { blocks, taken } = cleanBlocks(content);
  const known = storedAt === undefined ? {} : { storedAt };
  if (taken === "") return { content: blocks, ...known };
  const saved = storedAt === undefined ? await store.save([...wholeText(whole)], label, "txt") : undefined;
  const notice = `[${taken} left out here.${saved ? ` ${whereWhole(saved)}` : ""}]`;
  // What was taken out may have stood within a secret.
  const shown = blocks.map((block) => (isText(block) ? textBlock(redact(block.text)) : block));
  return {
    content: [...shown, textBlock(notice)],
    ...(saved && "path" in saved ? { storedAt: saved.path } : known),
  };
}

const sizeOf = (content: ResultContent): number =>
  isText(content) ? measure(content).bytes : content.data.length;

const sumBytes = (contents: readonly ResultContent[]): number =>
  contents.reduce((all, content) => all + sizeOf(content), 0);

/** Bytes of one block as the server sent it. Base64 counts as text, as it does for the images that are shown. */
function blockBytes(raw: unknown): number {
  if (typeof raw === "string") return Buffer.byteLength(raw);
  const block = isObject(raw) ? raw : {};
  const resource = isObject(block.resource) ? block.resource : {};
  const texts = [
    block.text,
    resource.text,
    resource.uri,
    block.uri,
    block.name,
    block.title,
    block.description,
  ];
  const words = texts.reduce((all: number, value) => all + Buffer.byteLength(word(value, "")), 0);
  return words + word(block.data, "").length + word(resource.blob, "").length;
}

const receivedBytes = (blocks: readonly unknown[]): number =>
  blocks.reduce((all: number, block) => all + blockBytes(block), 0);

const isStructured = (found: ReturnType<typeof readStructured>): found is Structured =>
  found !== undefined && "json" in found;

/** Files of a skill are stored nowhere: what stands on the disk could be changed after the check. */
const NO_STORE: ResultStore = { save: async () => ({ problem: "files of skills are not stored" }) };

/** For a message of the user, which Pi draws as it is: no text may hold characters that act on a terminal or end Pi. */
const drawable = (content: ResultContent): ResultContent =>
  isText(content) ? textBlock(withBases(cleanText(content.text))) : content;

/** A file of a skill, if it is what the server listed. */
async function shapeFile(
  result: CallToolResult,
  file: ExpectedFile,
  options: ShapeOptions,
): Promise<CallResult & { problem?: string }> {
  const checked = await checkFile(result, file, options.guard);
  const { durationMs } = options;
  if ("problem" in checked) return { content: [], isError: true, durationMs, problem: checked.problem };
  const { image } = checked;
  const images = image
    ? (await readBlocks(image.content ?? [], { ...options, store: NO_STORE })).contents
    : [];
  const forPerson = file.forPerson === true;
  const texts = forPerson ? checked.content : cleanBlocks(checked.content).blocks;
  const content = [...(options.asMessage ? texts.map(drawable) : texts), ...images];
  return {
    content,
    isError: false,
    durationMs,
    bytes: { received: receivedBytes(result.content ?? []), shown: sumBytes(content), savedText: 0 },
    skill: file.skill,
    // A long one would be stored; the person has all of it in the content.
    ...(options.wantsStructured && !forPerson
      ? await forScript({ content: content as CallToolResult["content"] }, options)
      : {}),
  };
}

export async function shapeResult(
  result: CallToolResult,
  options: ShapeOptions,
): Promise<CallResult & { problem?: string }> {
  if (options.file) return shapeFile(result, options.file, options);
  const isError = result.isError === true;
  const blocks: readonly unknown[] = Array.isArray(result.content) ? result.content : [];
  const files = limitFiles(options.store, LIMITS.filesPerResult);
  const parts = await readBlocks(blocks, { ...options, store: files });

  const found = readStructured(result.structuredContent);
  const structured = isStructured(found) ? found : undefined;
  const fromStructured = structured ? structuredForModel(structured, parts.contents) : [];
  if (found && "problem" in found) {
    fromStructured.push(textBlock(`[Structured content that cannot be shown: ${found.problem}]`));
  }

  const said = orNothing([...parts.contents, ...fromStructured], parts, isError);
  // Only errors are redacted: they often quote the key that was refused. Other answers belong to the server.
  const all = isError ? redacted(said, options.redact) : said;
  const { server, tool, guard: limits, store } = options;
  const encoded = options.toon
    ? all.map((content) => (isText(content) ? textBlock(toonOr(content.text)) : content))
    : all;
  // A text that is too long even as TOON stays JSON: the file is more useful, and the preview needs its structure.
  const best = fitsGuard(encoded, limits) ? encoded : all;
  const label = `${server}-${tool}`;
  const guarding = guardOutput(best, { limits, store, label });
  // Counted while the file is written.
  const received = receivedBytes(blocks) + sumBytes(fromStructured);
  const guarded = await guarding;
  const redact = isError ? options.redact : (text: string): string => text;
  const { content: clean, storedAt } = await cleaned(guarded, all, { store, label, redact });
  const content = options.asMessage ? clean.map(drawable) : clean;
  const forUser = await textForUser(parts.forUser, { store, label, redact });
  return {
    content,
    isError,
    durationMs: options.durationMs,
    bytes: {
      received,
      shown: sumBytes(content),
      savedText: Math.max(0, sumBytes(all.filter(isText)) - sumBytes(content.filter(isText))),
    },
    ...(storedAt === undefined ? {} : { storedAt }),
    ...(forUser === undefined ? {} : { forUser }),
    ...(options.wantsStructured ? await forScript(result, options) : {}),
  };
}

export interface Shaped {
  /** A msgpackr-encoded `CallResult`. */
  bytes: Uint8Array<ArrayBuffer>;
  isError: boolean;
  sizes: CallResult["bytes"];
  /** Why a file of a skill is not shown, worded to follow a colon. */
  problem?: string;
}

export const toShaped = ({ problem, ...result }: CallResult & { problem?: string }): Shaped => ({
  bytes: encode(result),
  isError: result.isError,
  sizes: result.bytes,
  ...(problem === undefined ? {} : { problem }),
});

/** More links than fit into what a model is shown. */
const LINKS = 500;
const LINK_CHARS = 2_000;

/** The addresses to which a result links, each once. */
export function linksIn({ content }: CallToolResult): string[] {
  const links = new Set<string>();
  for (const block of Array.isArray(content) ? (content as unknown[]) : []) {
    if (links.size === LINKS) break;
    const uri = isObject(block) && block.type === "resource_link" ? word(block.uri, "") : "";
    if (uri !== "" && uri.length <= LINK_CHARS) links.add(uri);
  }
  return [...links];
}

/** A buffer with memory of its own. `TextEncoder` takes twice as long for 60 MB. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** A character takes at most four bytes, and one that does not fit is not written. */
const SPARE_BYTES = 4;

/** The parts one after the other in this memory; undefined if it is too small. */
function inRoom(
  parts: readonly (string | Uint8Array)[],
  room: ArrayBuffer,
): Uint8Array<ArrayBuffer> | undefined {
  const all = Buffer.from(room, 0, room.byteLength);
  let at = 0;
  for (const part of joined(parts)) {
    const left = all.length - at;
    if (typeof part === "string") at += all.write(part, at);
    else if (part.length < left) {
      all.set(part, at);
      at += part.length;
    } else return undefined;
    if (all.length - at < SPARE_BYTES) return undefined;
  }
  return new Uint8Array(room, 0, at);
}

/** The parts of a file as bytes that can be handed to another thread. They are written into `room` if they fit. */
export function inBytes(
  parts: readonly (string | Uint8Array)[],
  room?: ArrayBuffer,
): Uint8Array<ArrayBuffer>[] {
  const written = room && inRoom(parts, room);
  if (written) return [written];
  return [...joined(parts)].map((part) => (typeof part === "string" ? bytesOf(part) : new Uint8Array(part)));
}
