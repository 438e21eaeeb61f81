/** Owns: the control of the search for secrets: what it must find, in each form, and what it must not. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findSecrets, readBelow } from "../../support/find-secrets.ts";
import { tempFolder } from "../temp-folder.ts";

/** Each form of it differs from the others. */
const SECRET = 'p?>~ss "wörd": 100 %+&/\\';
const PLAIN = "access-Zm9vYmFy_0123-45";

const json = (value: unknown): string => JSON.stringify(value);
const ascii = (text: string): string => text.replace("ö", "\\u00f6");

const HIDDEN: [how: string, text: string | Buffer][] = [
  ["as it is", `token=${SECRET};`],
  [
    "in bytes that are no text",
    Buffer.concat([Buffer.from([0xff, 0xc1]), Buffer.from(SECRET), Buffer.of(0xfe)]),
  ],
  ["in JSON", json({ a: SECRET })],
  ["in JSON of ASCII", ascii(json({ a: SECRET }))],
  ["in JSON in JSON", json({ a: json({ b: SECRET }) })],
  ["in JSON of ASCII in JSON", json({ a: ascii(json({ b: SECRET })) })],
  ["in the query of a URL", `https://a.example/?b=c&d=${encodeURIComponent(SECRET)}#e`],
  ["percent-encoded in lower case", encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase())],
  ["in a form", new URLSearchParams({ client_secret: SECRET }).toString()],
  ...["", "c", "ci", "ci:"].map((before): [string, string] => [
    `in base64 behind ${before.length} characters`,
    `Basic ${Buffer.from(`${before}${SECRET} and more`).toString("base64")}`,
  ]),
  ["in base64url", Buffer.from(`ci:${SECRET}`).toString("base64url")],
];

test.each(HIDDEN)("a secret %s -> found", (_how, text) => {
  expect(findSecrets([{ name: "log", text }], [SECRET])).toHaveLength(1);
});

test("texts without the secret -> nothing", () => {
  const near = ["", SECRET.slice(1), SECRET.toUpperCase(), json(PLAIN.slice(0, -1))];
  const said = [...near, Buffer.from(PLAIN.slice(1)).toString("base64")].map((text) => ({
    name: "log",
    text,
  }));
  expect(findSecrets(said, [SECRET, PLAIN])).toEqual([]);
});

test("a finding names the place and the form, and not the whole secret", () => {
  const said = [
    { name: "a", text: PLAIN },
    { name: "b", text: Buffer.from(PLAIN).toString("base64") },
  ];
  expect(findSecrets(said, [PLAIN, PLAIN])).toEqual(["access-Z (itself) in a", "access-Z (base64) in b"]);
});

test("a text that chance could repeat -> refused", () => {
  expect(() => findSecrets([], ["short"])).toThrow("too short");
});

test("a folder -> every file below it and every name, without the exception; links are not followed", async () => {
  const folder = await tempFolder();
  const other = await tempFolder();
  await mkdir(join(folder, "store", "web"), { recursive: true });
  await mkdir(join(folder, "deep", `of-${PLAIN}`), { recursive: true });
  await writeFile(join(folder, "store", "web", "record.json"), PLAIN);
  await writeFile(join(folder, "store.log"), PLAIN);
  await writeFile(join(folder, "deep", "in"), PLAIN);
  await writeFile(join(other, "outside"), PLAIN);
  await symlink(other, join(folder, "link"));
  const found = findSecrets(await readBelow(folder, [join(folder, "store")]), [PLAIN]);
  expect(found.map((line) => line.replace(/^.* in (?=\S+$|the)/, "")).sort()).toEqual([
    "deep/in",
    "store.log",
    "the names of files",
  ]);
  expect(findSecrets(await readBelow(folder), [PLAIN])).toHaveLength(4);
});
