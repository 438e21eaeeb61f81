/**
 * Owns: the search for secrets in everything that was written or said: as they are, in base64 (also in the middle of a
 * longer text), percent-encoded, and escaped for JSON.
 */
import { readFile } from "node:fs/promises";
import { relative, sep } from "node:path";
import { entriesBelow, unlessGone } from "./files-below.ts";

/** Something that was written or said, by a name that a failed test shows. */
export interface Said {
  name: string;
  text: string | Buffer;
}

/** A shorter text could be found by chance. */
const LEAST_CHARS = 8;
const BASE64_BITS = 6;
const BYTE_BITS = 8;
const BASE64_GROUP_BYTES = 3;

/** The characters of base64 that depend on the secret alone, for each place that it can have in a longer text. */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return Array.from({ length: BASE64_GROUP_BYTES }, (_, before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const from = Math.ceil((before * BYTE_BITS) / BASE64_BITS);
    return whole.slice(from, Math.floor(((before + bytes.length) * BYTE_BITS) / BASE64_BITS));
  });
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);
/** JSON outside ASCII may also be escaped. */
const inAscii = (text: string): string =>
  text.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
const lowerHex = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
const base64Url = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_");

/** Every form by its name. Forms that equal an earlier one are left out. */
function formsOf(secret: string): Map<string, string> {
  if (secret.length < LEAST_CHARS) throw new Error(`"${secret}" is too short to be looked for`);
  const json = inJson(secret);
  const percent = encodeURIComponent(secret);
  const form = new URLSearchParams({ s: secret }).toString().slice("s=".length);
  const all: [kind: string, text: string][] = [
    ["itself", secret],
    ["JSON", json],
    ["JSON", inAscii(json)],
    ["JSON in JSON", inJson(json)],
    ["JSON in JSON", inJson(inAscii(json))],
    ["percent", percent],
    ["percent", lowerHex(percent)],
    ["form", form],
    ["form", lowerHex(form)],
    ...base64Forms(secret).flatMap((text): [string, string][] => [
      ["base64", text],
      ["base64", base64Url(text)],
    ]),
  ];
  // The first of equal texts names the form.
  return new Map(all.reverse().map(([kind, text]) => [text, kind]));
}

/** One line for each secret and each place that holds it. A line shows only the beginning of the secret. */
export function findSecrets(said: readonly Said[], secrets: Iterable<string>): string[] {
  const looked = [...new Set(secrets)].map((secret) => ({ secret, forms: [...formsOf(secret)] }));
  return said.flatMap(({ name, text }) => {
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    return looked.flatMap(({ secret, forms }) => {
      const found = forms.filter(([form]) => bytes.includes(form)).at(-1);
      return found ? [`${secret.slice(0, LEAST_CHARS)} (${found[1]}) in ${name}`] : [];
    });
  });
}

/**
 * All files below the folder, each with its name, which may hold a secret as well. Files below `except` are left out.
 * Links are not followed.
 */
export async function readBelow(folder: string, except: readonly string[] = []): Promise<Said[]> {
  const entries = await entriesBelow(folder);
  const paths = entries.filter(({ isFile }) => isFile).map(({ path }) => path);
  const wanted = paths.filter(
    (path) => !except.some((one) => path === one || path.startsWith(`${one}${sep}`)),
  );
  const names = entries.map(({ path }) => path).join("\n");
  const files = wanted.map(async (path) => ({ name: relative(folder, path), text: await readOrEmpty(path) }));
  return [{ name: "the names of files", text: names }, ...(await Promise.all(files))];
}

const readOrEmpty = async (path: string): Promise<Buffer> =>
  (await unlessGone(readFile(path))) ?? Buffer.alloc(0);
