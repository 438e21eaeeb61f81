/**
 * Images of a result. The model gets an image if every provider accepts it; any other image is saved to a file. A
 * provider refuses a request because of one image with a wrong type, wrong bytes or a wrong size, and every later
 * request of the session with it.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { decodedBytes, normalizeBase64, sniffImageType } from "./base64.ts";
import type { Block, ShapeOptions } from "./context.ts";
import { imageSize } from "./image-size.ts";
import { extensionFor, mediaType } from "./mime.ts";

async function savedImage(
  base64: string,
  { type, reason, options }: { type: string; reason: string; options: ShapeOptions },
): Promise<ResultContent[]> {
  const saved = await options.store.save(
    [Buffer.from(base64, "base64")],
    `${options.server}-${options.tool}`,
    extensionFor(type),
  );
  const where = "path" in saved ? `saved to ${saved.path}` : `could not be saved: ${saved.problem}`;
  return [
    textBlock(
      `[Image: ${type || "unknown type"}, ${formatBytes(decodedBytes(base64))}, ${reason}; ${where}]`,
    ),
  ];
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

export async function imageContent(block: Block, options: ShapeOptions): Promise<ResultContent[]> {
  const declared = mediaType(block.mimeType);
  const base64 = typeof block.data === "string" ? normalizeBase64(block.data) : undefined;
  if (base64 === undefined || base64 === "") {
    return [textBlock(`[Image without usable data: ${declared || "unknown type"}]`)];
  }
  // The bytes decide the type. The declared type is used only if the bytes say nothing.
  const real = sniffImageType(base64);
  if (real === undefined) {
    return savedImage(base64, { type: declared, reason: "of a type that models do not take", options });
  }
  const reason = whyUnfit(real, base64);
  if (reason !== undefined) return savedImage(base64, { type: real, reason, options });
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
    if (content.type !== "image") {
      limited.push(content);
      continue;
    }
    images++;
    chars += content.data.length;
    const fits = images <= LIMITS.imagesPerResult && chars <= LIMITS.imagesChars;
    const { mimeType: type, data } = content;
    if (fits) limited.push(content);
    else limited.push(...(await savedImage(data, { type, reason: "one too many for a model", options })));
  }
  return limited;
}

/** An image for the person alone: saved, and named in a line. */
export async function imageForPerson(raw: unknown, options: ShapeOptions): Promise<ResultContent[]> {
  const block = isObject(raw) ? raw : {};
  const base64 = typeof block.data === "string" ? normalizeBase64(block.data) : undefined;
  if (base64 === undefined || base64 === "") return [];
  const type = sniffImageType(base64) ?? mediaType(block.mimeType);
  return savedImage(base64, { type, reason: "for you only", options });
}
