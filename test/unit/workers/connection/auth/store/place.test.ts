/** Owns: every server and url has a file of its own, below a folder that a person finds by the server's name. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileNameOf, folderNameOf, placeOf } from "../../../../../../workers/connection/auth/store/file.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("folderNameOf", () => {
  test.each(["linear", "a", "my.server_2-b", ".hidden", "GitHub", "x".repeat(64), "console", "a..b"])(
    "%s -> the name itself",
    (name) => {
      expect(folderNameOf(name)).toBe(name);
    },
  );

  test.each([
    ["empty", ""],
    ["the folder itself", "."],
    ["the folder above", ".."],
    ["a path", "../../etc"],
    ["a path of Windows", "a\\b"],
    ["a space", "my server"],
    ["letters beyond ASCII", "größe"],
    ["a control character", "a\0b"],
    ["65 characters", "x".repeat(65)],
    ["a dot at the end, which Windows drops", "linear."],
    ["a device of Windows", "NUL"],
    ["a device of Windows with an extension", "com1.mcp"],
    ["a folder that the adapter imports and removes", "sha256-abc"],
    ["the same in capitals", "SHA256-abc"],
    ["a folder of a hashed name", `h-${"0".repeat(32)}`],
  ])("%s -> a hash", (_name, name) => {
    expect(folderNameOf(name)).toBe(`h-${sha256(name).slice(0, 32)}`);
  });
});

describe("fileNameOf", () => {
  test("a name without capitals -> 16 digits of the url's SHA-256", () => {
    expect(fileNameOf("linear", "https://a/mcp")).toBe(`${sha256("https://a/mcp").slice(0, 16)}.json`);
  });

  test("names that differ in case only -> different files, where case does not count too", () => {
    const files = ["linear", "Linear", "LINEAR"].map((name) => fileNameOf(name, "https://a/mcp"));
    expect(new Set(files).size).toBe(3);
  });

  test("two urls of one server -> different files", () => {
    expect(fileNameOf("linear", "https://a/mcp")).not.toBe(fileNameOf("linear", "https://b/mcp"));
  });
});

test("placeOf -> root, folder, file and tokens.json", () => {
  const place = placeOf({ agentDir: "/agent", server: "linear", url: "https://a/mcp" });
  const folder = join("/agent", "mcp-oauth", "linear");
  expect(place).toEqual({
    root: join("/agent", "mcp-oauth"),
    folder,
    file: join(folder, fileNameOf("linear", "https://a/mcp")),
    given: join(folder, "tokens.json"),
  });
});
