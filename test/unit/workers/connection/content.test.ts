/** Owns: what the model reads of a result, whatever the server sent. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../src/protocol/limits.ts";
import type { ResultContent } from "../../../../src/protocol/types.ts";
import { boundText, shapeContent } from "../../../../workers/connection/content.ts";

const shape = (result: unknown): ResultContent[] => shapeContent(result as CallToolResult);
const shapeOne = (block: unknown): ResultContent | undefined => shape({ content: [block] })[0];
const textOf = (contents: readonly ResultContent[]): string =>
  contents.map((content) => (content.type === "text" ? content.text : "")).join("");

const MARKER = /\n\[[\d,]+ more bytes were left out\]$/;

describe("shapeContent: one block", () => {
  it.each([
    [{ type: "text", text: "hello" }, "hello"],
    [{ type: "text", text: "" }, "[The tool returned empty text]"],
    [{ type: "text" }, "[The tool returned empty text]"],
    [{ type: "text", text: 5 }, "[The tool returned empty text]"],
    [{ type: "image", mimeType: "image/png" }, "[Image without data: image/png]"],
    [{ type: "image", data: "", mimeType: "image/png" }, "[Image without data: image/png]"],
    [{ type: "image", data: 5, mimeType: "image/png" }, "[Image without data: image/png]"],
    [{ type: "image", data: "AAAA" }, "[Image of a type that models do not take: unknown type]"],
    [
      { type: "image", data: "AAAA", mimeType: "image/svg+xml" },
      "[Image of a type that models do not take: image/svg+xml]",
    ],
    [{ type: "audio", data: "AAAA", mimeType: "audio/wav" }, "[Audio content: audio/wav]"],
    [{ type: "audio" }, "[Audio content: unknown type]"],
    [{ type: "resource", resource: { uri: "file:///a", text: "body" } }, "[Resource: file:///a]\nbody"],
    [
      { type: "resource", resource: { uri: "file:///a", blob: "AAAA", mimeType: "application/pdf" } },
      "[Binary resource: file:///a, application/pdf]",
    ],
    [{ type: "resource", resource: { uri: "file:///a" } }, "[Binary resource: file:///a, unknown type]"],
    [{ type: "resource" }, "[Binary resource: without URI, unknown type]"],
    [{ type: "resource", resource: null }, "[Binary resource: without URI, unknown type]"],
    [{ type: "resource", resource: "x" }, "[Binary resource: without URI, unknown type]"],
    [
      { type: "resource_link", uri: "file:///a", name: "A", description: "about a" },
      "[Resource link: A <file:///a>: about a]",
    ],
    [{ type: "resource_link", uri: "file:///a", name: "A" }, "[Resource link: A <file:///a>]"],
    [{ type: "resource_link" }, "[Resource link: unnamed <without URI>]"],
    [{ type: "video", data: "x" }, "[Content of an unknown kind: video]"],
    [{ type: 5 }, "[Content of an unknown kind: none]"],
    [{}, "[Content of an unknown kind: none]"],
    [null, "[Content of an unknown kind: none]"],
    ["text", "[Content of an unknown kind: none]"],
    [[], "[Content of an unknown kind: none]"],
  ])("%j -> %j", (block, text) => {
    expect(shapeOne(block)).toEqual({ type: "text", text });
  });

  it.each(["image/png", "image/jpeg", "image/gif", "image/webp"])(
    "an image of type %s -> as it is",
    (mimeType) => {
      expect(shapeOne({ type: "image", data: "AAAA", mimeType, annotations: {} })).toEqual({
        type: "image",
        data: "AAAA",
        mimeType,
      });
    },
  );

  test("an image exactly at the limit -> as it is; one character more -> told, not sent", () => {
    const data = "A".repeat(LIMITS.imageChars);
    expect(shapeOne({ type: "image", data, mimeType: "image/png" })?.type).toBe("image");
    expect(shapeOne({ type: "image", data: `${data}A`, mimeType: "image/png" })).toEqual({
      type: "text",
      text: `[Image too large: image/png, ${LIMITS.imageChars + 1} characters]`,
    });
  });
});

describe("shapeContent: a result", () => {
  it.each([
    [{ content: [] }, "[The tool returned nothing]"],
    [{}, "[The tool returned nothing]"],
    [{ content: null }, "[The tool returned nothing]"],
    [{ content: "text" }, "[The tool returned nothing]"],
    [{ content: [], structuredContent: { a: [1] } }, '{"a":[1]}'],
    [{ structuredContent: { a: 1 } }, '{"a":1}'],
  ])("%j -> one text %j", (result, text) => {
    expect(shape(result)).toEqual([{ type: "text", text }]);
  });

  test("content and structured content -> the content only, which says the same", () => {
    expect(shape({ content: [{ type: "text", text: "a" }], structuredContent: { a: 1 } })).toEqual([
      { type: "text", text: "a" },
    ]);
  });

  test("several blocks -> in their order", () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    expect(shape({ content: [{ type: "text", text: "a" }, image, { type: "text", text: "b" }] })).toEqual([
      { type: "text", text: "a" },
      image,
      { type: "text", text: "b" },
    ]);
  });

  it.each([
    ["two texts beyond the limit together", [30_000, 30_000]],
    ["one text beyond the limit, one after it", [60_000, 10]],
    ["10,000 small texts", Array.from({ length: 10_000 }, () => 100)],
  ])("%s -> the limit and one note at most", (_name, sizes) => {
    const content = sizes.map((size) => ({ type: "text", text: "x".repeat(size) }));
    const text = textOf(shape({ content }));
    expect(Buffer.byteLength(text)).toBeGreaterThanOrEqual(LIMITS.resultBytes);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LIMITS.resultBytes + 200);
    expect(text).toMatch(/left out/);
  });

  test("two texts of 1,500 lines each -> 2,000 lines of the result, not of each text", () => {
    const lines = Array.from({ length: 1_500 }, () => "x").join("\n");
    const shaped = shape({
      content: [
        { type: "text", text: lines },
        { type: "text", text: lines },
      ],
    });
    const count = shaped.reduce(
      (sum, content) => sum + (content.type === "text" ? content.text.split("\n").length : 0),
      0,
    );
    expect(count).toBeLessThanOrEqual(LIMITS.resultLines + 2);
  });

  test("images -> not counted against the text", () => {
    const image = { type: "image", data: "A".repeat(LIMITS.resultBytes), mimeType: "image/png" };
    expect(shape({ content: [image, { type: "text", text: "whole" }] }).at(-1)).toEqual({
      type: "text",
      text: "whole",
    });
  });
});

describe("boundText", () => {
  it.each([
    ["an empty text", "", 10, 10],
    ["exactly the bytes", "abcde", 5, 10],
    ["exactly the bytes, multi-byte", "é漢", 5, 10],
    ["exactly the lines", "a\nb\nc", 100, 3],
    ["CRLF within the limits", "a\r\nb\r\n", 100, 3],
    ["an empty text and no bytes left", "", 0, 10],
  ])("%s -> unchanged", (_name, value, maxBytes, maxLines) => {
    expect(boundText(value, maxBytes, maxLines)).toBe(value);
  });

  it.each([
    ["one byte over", "abcdef", 5, 10, "abcde", 1],
    ["no bytes left", "abc", 0, 10, "", 3],
    ["one line over", "a\nb\nc\nd", 100, 3, "a\nb\nc", 2],
    ["a newline at the end that is one line over", "a\nb\n", 100, 2, "a\nb", 1],
    ["a two-byte character at the cut", "abé", 3, 10, "ab", 2],
    ["a three-byte character at the cut", "a漢b", 3, 10, "a", 4],
    ["a four-byte character at the cut", "a😀b", 4, 10, "a", 5],
    ["the cut right behind a character", "漢字", 3, 10, "漢", 3],
    ["a line end near the cut", "abcdef\nghi", 8, 10, "abcdef", 4],
    ["a line end far from the cut", "a\nbcdefghij", 8, 10, "a\nbcdefg", 3],
    ["both limits, lines first", "aa\nbb\ncc", 6, 2, "aa\nbb", 3],
  ])("%s -> cut, with what is missing", (_name, value, maxBytes, maxLines, kept, missing) => {
    expect(boundText(value, maxBytes, maxLines)).toBe(`${kept}\n[${missing} more bytes were left out]`);
    expect(Buffer.byteLength(kept) + missing).toBe(Buffer.byteLength(value));
  });

  test("many missing bytes -> written with separators", () => {
    expect(boundText("x".repeat(1_234_577), 10, 10)).toMatch(/\[1,234,567 more bytes were left out\]$/);
  });

  test("CRLF lines over the limit -> cut at a line", () => {
    expect(boundText("a\r\nb\r\nc\r\n", 100, 2)).toMatch(/^a\r\nb\r?\n\[\d+ more bytes were left out\]$/);
  });

  test("every cut of a text of several scripts -> valid, a prefix, within the limit", () => {
    const value = "aé漢😀\nß字🎉z\n".repeat(4);
    const bytes = Buffer.byteLength(value);
    for (let limit = 0; limit < bytes; limit++) {
      const kept = boundText(value, limit, 100).replace(MARKER, "");
      expect(value.startsWith(kept), `limit ${limit}: ${kept}`).toBe(true);
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(limit);
      expect(Buffer.from(kept).toString()).toBe(kept);
    }
  });
});
