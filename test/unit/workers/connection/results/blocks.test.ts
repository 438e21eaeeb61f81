/** Owns: the text and images that the model gets for every kind of content block: whole, broken, for the user only. */
import { readFile, stat } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { imageOf, pathIn, shape, storedText, textOf } from "./support.ts";

const base64 = (bytes: string | Uint8Array): string => Buffer.from(bytes as string).toString("base64");
const PNG = imageOf.png(2, 3);
const JPEG = imageOf.jpeg(2, 3);
const GIF = imageOf.gif(2, 3);
const WEBP = imageOf.webp("VP8 ", 2, 3);

describe("a block -> the text for the model", () => {
  const resource = (more: object) => ({ type: "resource", resource: { uri: "a:b", ...more } });
  const link = (more: object) => ({ type: "resource_link", name: "x", ...more });
  const UNREAD = "The MCP server server wrote this link and has no tool that reads it.";
  const NOTHING = "[The tool returned nothing]";
  test.each<[string, unknown, string]>([
    ["text", { type: "text", text: "hello" }, "hello"],
    ["a bare string", "hello", "hello"],
    ["embedded text", resource({ text: "x\ny" }), "[Resource: a:b]\nx\ny"],
    [
      "a blob of text",
      resource({ mimeType: "text/csv; charset=utf-8", blob: base64("ä,b") }),
      "[Resource: a:b]\nä,b",
    ],
    ...(
      [
        ["text/csv; charset=ISO-8859-1", Buffer.from("ä,b", "latin1")],
        ['text/plain;format=flowed;charset="windows-1252"', Buffer.from("ä,b", "latin1")],
        ["text/plain; charset=utf-16", Buffer.from("ä,b", "utf16le")],
        ["text/plain; charset=utf-16be", Buffer.from("ä,b", "utf16le").swap16()],
        ["application/xml; Charset=utf-16", Buffer.from("\ufeffä,b", "utf16le")],
        ["text/plain; charset=", Buffer.from("ä,b")],
      ] as const
    ).map(([mimeType, bytes]): [string, unknown, string] => [
      `a blob of ${mimeType}`,
      resource({ mimeType, blob: base64(bytes) }),
      "[Resource: a:b]\nä,b",
    ]),
    [
      "a blob of JSON",
      resource({ mimeType: "application/vnd.x+json", blob: base64("{}") }),
      "[Resource: a:b]\n{}",
    ],
    [
      "a blob that is an image",
      resource({ mimeType: "image/png", blob: PNG }),
      "[Resource: a:b]\n<image/png>",
    ],
    ["a resource without content", resource({}), "[Resource: a:b] Without content."],
    ["a resource of nothing", { type: "resource" }, "[Resource: without URI] Without content."],
    [
      "a resource link",
      link({ uri: "demo://x", description: "An x.", mimeType: "text/plain", size: 2048 }),
      `[Resource link: x] demo://x (text/plain, 2 KB)\nAn x.\n${UNREAD}`,
    ],
    ...["https://a.example/x", "file:///home/ann/.ssh/id_ed25519"].map((uri): [string, unknown, string] => [
      `a link to ${uri}`,
      link({ uri }),
      `[Resource link: x] ${uri}\n${UNREAD}`,
    ]),
    ["a link of nothing", { type: "resource_link" }, "[Resource link: unnamed] without URI"],
    ["an unknown kind", { type: "hologram" }, "[Content of an unknown kind: hologram]"],
    ...[null, 7, []].map((value): [string, unknown, string] => [
      JSON.stringify(value),
      value,
      "[Content of an unknown kind: none]",
    ]),
    ["text without text", { type: "text" }, NOTHING],
    ["text that is a number", { type: "text", text: 5 }, NOTHING],
    [
      "an image without data",
      { type: "image", mimeType: "image/png" },
      "[Image without usable data: image/png]",
    ],
    [
      "an image that is no base64",
      { type: "image", data: "%%", mimeType: 4 },
      "[Image without usable data: unknown type]",
    ],
    [
      "audio without data",
      { type: "audio", mimeType: "audio/wav" },
      "[Audio content: audio/wav] Without usable data.",
    ],
    ["half a surrogate pair", { type: "text", text: "a\ud83d" }, "a\ufffd"],
  ])("%s", async (_name, block, expected) => {
    expect(textOf(await shape({ content: [block] }))).toBe(expected);
  });

  test("a link -> says how this server's resources are read, if that is known", async () => {
    const result = await shape(
      { content: [{ type: "resource_link", uri: "demo://x", name: "x" }] },
      { readResource: (uri) => `Read it with read_it("${uri}").` },
    );
    expect(textOf(result)).toBe('[Resource link: x] demo://x\nRead it with read_it("demo://x").');
  });
});

describe("images", () => {
  test.each([
    ["image/png", PNG, "image/png"],
    ["image/jpg", JPEG, "image/jpeg"],
    ["image/gif; a=b", GIF, "image/gif"],
    ["image/webp", WEBP, "image/webp"],
    ["image/png", JPEG, "image/jpeg"],
    ["application/octet-stream", PNG, "image/png"],
  ])("declared %s -> sent with the type of its bytes", async (mimeType, data, real) => {
    const { content } = await shape({ content: [{ type: "image", mimeType, data }] });
    expect(content).toEqual([{ type: "image", mimeType: real, data }]);
  });

  test("line breaks, missing padding and the URL alphabet -> plain base64", async () => {
    const data = PNG.replace(/=+$/, "")
      .replace(/(.{4})/, "$1\n")
      .replaceAll("/", "_")
      .replaceAll("+", "-");
    const { content } = await shape({ content: [{ type: "image", mimeType: "image/png", data }] });
    expect(content).toEqual([{ type: "image", mimeType: "image/png", data: PNG }]);
  });

  test("a type that no provider accepts -> saved, not sent", async () => {
    const result = await shape({
      content: [{ type: "image", mimeType: "image/svg+xml", data: base64("<svg/>") }],
    });
    expect(textOf(result)).toMatch(
      /^\[Image: image\/svg\+xml, 6 B, of a type that models do not take; saved to \/.*server-tool-\w+\.svg\]$/,
    );
    expect(await readFile(pathIn(textOf(result)), "utf8")).toBe("<svg/>");
  });

  test.each([
    ["exactly at the limit", 0, "image"],
    ["one group over it", 4, "text"],
  ])("%s", async (_name, more, type) => {
    const headers = imageOf.png(1, 1).length;
    const data = imageOf.png(1, 1, ((LIMITS.imageChars + more - headers) / 4) * 3);
    expect(data).toHaveLength(LIMITS.imageChars + more);
    const { content } = await shape({ content: [{ type: "image", mimeType: "image/png", data }] });
    expect(content[0]?.type).toBe(type);
    if (content[0]?.type === "text")
      expect(content[0].text).toMatch(/too large for a model; saved to .*\.png\]$/);
  });

  const { imagePixels: most } = LIMITS;
  test.each<[string, (width: number, height: number) => string]>([
    ["PNG", imageOf.png],
    ["JPEG", imageOf.jpeg],
    ["JPEG with EXIF data", (width, height) => imageOf.jpeg(width, height, 60_000)],
    ["GIF", imageOf.gif],
    ["WebP, lossy", (width, height) => imageOf.webp("VP8 ", width, height)],
    ["WebP, lossless", (width, height) => imageOf.webp("VP8L", width, height)],
    ["WebP, extended", (width, height) => imageOf.webp("VP8X", width, height)],
  ])(
    "%s -> sent up to the limit of pixels, saved beyond the limit, in both directions",
    async (_name, make) => {
      const image = (data: string) => ({ content: [{ type: "image", data }] });
      expect((await shape(image(make(most, most)))).content[0]?.type).toBe("image");
      const words = /pixels, too large for a model; saved to .*\]$/;
      expect(textOf(await shape(image(make(most + 1, 2))))).toMatch(words);
      expect(textOf(await shape(image(make(2, most + 1))))).toMatch(words);
    },
  );

  const cut = (data: string, bytes: number): string =>
    Buffer.from(data, "base64").subarray(0, -bytes).toString("base64");
  test.each([
    ["a PNG cut off", cut(PNG, 1)],
    ["a PNG of nothing", imageOf.png(0, 5)],
    ["a JPEG cut off before its pixels", cut(JPEG, 8)],
    ["a GIF of a header", cut(GIF, 4)],
    ["a WebP cut off", cut(WEBP, 1)],
    ["a signature alone", Buffer.from("\x89PNG\r\n\x1a\n", "latin1").toString("base64")],
  ])("%s -> saved, not sent", async (_name, data) => {
    const result = await shape({ content: [{ type: "image", data }] });
    expect(textOf(result)).toMatch(/, broken; saved to .*\]$/);
  });

  test("more images than a request may hold -> the first are sent, the others saved", async () => {
    const image = { type: "image", mimeType: "image/png", data: PNG };
    const { content } = await shape({ content: Array(LIMITS.imagesPerResult + 2).fill(image) });
    expect(content.filter(({ type }) => type === "image")).toHaveLength(LIMITS.imagesPerResult);
    expect(content.filter(({ type }) => type === "text")).toHaveLength(2);
  });
});

describe("files", () => {
  test.each([
    ["audio/wav", "wav"],
    ["audio/mpeg", "mp3"],
    ["audio/strange", "bin"],
  ])("audio %s -> named and saved as .%s", async (mimeType, extension) => {
    const result = await shape({ content: [{ type: "audio", mimeType, data: base64("sound") }] });
    const text = textOf(result);
    expect(text).toMatch(
      new RegExp(`^\\[Audio content: ${mimeType}\\] Saved to /.*\\.${extension} \\(${mimeType}, 5 B\\)\\.$`),
    );
    expect(await readFile(pathIn(text), "utf8")).toBe("sound");
    expect((await stat(pathIn(text))).mode & 0o777).toBe(0o600);
  });

  test.each([
    ["application/pdf", "a:b", "pdf"],
    [undefined, "file:///x/report.XLSX?v=1", "xlsx"],
    [undefined, "a:b", "bin"],
  ])("a blob of %s at %s -> saved as .%s", async (mimeType, uri, extension) => {
    const resource = { uri, mimeType, blob: base64("data") };
    const text = textOf(await shape({ content: [{ type: "resource", resource }] }));
    expect(text).toContain(`[Resource: ${uri}] Saved to `);
    expect(pathIn(text)).toMatch(new RegExp(`\\.${extension}$`));
  });

  const LATIN1 = Buffer.from("Größe;5 €\n", "latin1");
  test.each<[string, string, Buffer, string]>([
    ["Latin-1 without a charset", "text/csv", LATIN1, "csv"],
    ["Latin-1 as UTF-8", "text/html; charset=utf-8", LATIN1, "html"],
    ["UTF-16 cut in a character", "text/plain; charset=utf-16", Buffer.from("ab\0"), "txt"],
    ["a charset that nobody knows", "application/json; charset=ebcdic-x", Buffer.from("{}"), "json"],
    ["a charset of a megabyte", `text/plain; charset=${"x".repeat(1_000_000)}`, Buffer.from("a"), "txt"],
  ])("a blob of text: %s -> saved, byte for byte", async (_name, mimeType, bytes, extension) => {
    const resource = { uri: "a:b", mimeType, blob: base64(bytes) };
    const text = textOf(await shape({ content: [{ type: "resource", resource }] }));
    expect(text).toMatch(
      new RegExp(`^\\[Resource: a:b\\] Saved to /.*\\.${extension} \\(\\w+/\\w+, ${bytes.length} B\\)\\.$`),
    );
    expect(await readFile(pathIn(text))).toEqual(bytes);
  });
});

describe("empty results and blocks for the user only", () => {
  test.each([
    ["no content", {}, "[The tool returned nothing]"],
    ["an empty list", { content: [] }, "[The tool returned nothing]"],
    ["content that is no list", { content: "x" }, "[The tool returned nothing]"],
    ["only empty text", { content: [{ type: "text", text: "" }] }, "[The tool returned nothing]"],
    ["a failure", { content: [], isError: true }, "[The tool failed and said nothing]"],
  ])("%s -> a text says so", async (_name, result, expected) => {
    expect(textOf(await shape(result))).toBe(expected);
  });

  test("a block for the user only -> hidden from the model and shown to the person", async () => {
    const result = await shape({
      content: [
        { type: "text", text: "secret smile", annotations: { audience: ["user"] } },
        { type: "text", text: "both", annotations: { audience: ["user", "assistant"] } },
        { type: "image", mimeType: "image/png", data: PNG, annotations: { audience: ["user"] } },
      ],
    });
    expect(textOf(result)).toBe("both");
    expect(result.forUser).toMatch(
      /^secret smile\n\[Image: image\/png, 57 B, for you only; saved to .*\.png\]$/,
    );
  });

  const forUser = (...blocks: object[]) => ({
    content: blocks.map((block) => ({ ...block, annotations: { audience: ["user"] } })),
  });

  test("more text for the user than a row shows -> its start and end, and a file with all of it", async () => {
    const texts = ["a".repeat(3_000), "ü\n".repeat(3_000), "last"];
    const result = await shape(forUser(...texts.map((text) => ({ type: "text", text }))));
    const shown = result.forUser ?? "";
    expect(shown).toMatch(/^a+\n\[\.\.\. .* left out here\. Full text: \/.*\]\n(ü\n)+\nlast$/);
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(4_000);
    expect(await storedText(shown)).toBe(texts.join("\n"));
    expect(textOf(result)).toBe("[The tool answered the user only]");
  });

  test("a long failure for the user -> no secret in what is shown, nor in the file", async () => {
    const blocks = [{ type: "text", text: `k\u200bey${"401 for key\n".repeat(1_000)}` }];
    const redact = (text: string): string => text.replaceAll("key", "[redacted]");
    const { forUser: shown = "" } = await shape({ ...forUser(...blocks), isError: true }, { redact });
    expect(shown).toContain("[redacted]");
    expect(`${shown}${await storedText(shown)}`).not.toContain("key");
  });

  test("a resource that is an image, for the user -> saved and named", async () => {
    const resource = { uri: "a:b", mimeType: "image/png", blob: PNG };
    const { forUser: shown = "" } = await shape(forUser({ type: "resource", resource }));
    expect(shown).toMatch(
      /^\[Resource: a:b\]\n\[Image: image\/png, 57 B, for you only; saved to \/.*\.png\]$/,
    );
    expect((await readFile(pathIn(shown))).toString("base64")).toBe(PNG);
  });

  test("an image without data, for the user -> named", async () => {
    const result = await shape(forUser({ type: "image", mimeType: "image/png" }));
    expect(result.forUser).toBe("[Image without usable data: image/png]");
  });

  test("nothing but blocks for the user", async () => {
    const result = await shape({
      content: [{ type: "text", text: "x", annotations: { audience: ["user"] } }],
    });
    expect(textOf(result)).toBe("[The tool answered the user only]");
  });

  test.each([["user"], [[]], [{}], [null], [["assistant"]]])(
    "audience %j is for the model, too",
    async (audience) => {
      const result = await shape({ content: [{ type: "text", text: "x", annotations: { audience } }] });
      expect(textOf(result)).toBe("x");
    },
  );
});
