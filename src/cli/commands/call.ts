/** `call`: one call of a tool. Its arguments are read by the tool's schema before anything of the server runs. */

import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inputSchemaOf } from "../../catalog/catalog.ts";
import type { CallProgress, CallResult } from "../../shared/protocol/calls.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { counted, formatBytes } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { looksLikeArguments, readArguments } from "../arguments/arguments.ts";
import type { Console } from "../console/console.ts";
import { EXIT, Failure } from "../console/failure.ts";
import { type Block, serverResult } from "../session/result.ts";
import type { Command } from "./known.ts";
import { whichTool } from "./which-tool.ts";

const NAME_CHARS = 200;

const progressText = (tool: string, { message, progress, total }: CallProgress): string => {
  const share = progress !== undefined && total ? `${Math.floor((100 * progress) / total)} % ` : "";
  return oneLine(`${tool}: ${share}${message}`, NAME_CHARS);
};

export const call: Command = async (context) => {
  const { console, options, signal } = context;
  looksLikeArguments(context.arguments.slice(2));
  const { tool, words } = await whichTool(context);
  looksLikeArguments(words);
  const server = tool.server.name;
  const args = await readArguments(oneLine(tool.tool, NAME_CHARS), inputSchemaOf(tool), {
    words,
    json: options.args,
    input: context,
  });
  const session = await context.session();
  await session.allow(server);
  const callId = "cli";
  const done = session.onProgress(callId, (event) => console.progress(progressText(tool.tool, event)));
  try {
    const request = { callId, server, tool: tool.tool, args, wantsStructured: true, byPerson: true };
    const result = await session.runtime.callTool(request, signal);
    console.progress("");
    await printResult(result, console);
    return result.isError ? EXIT.toolError : EXIT.ok;
  } finally {
    done();
    console.progress("");
  }
};

const WORD_CHARS = 500;
const FILES = LIMITS.filesPerResult;

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/svg+xml": "svg",
  "audio/mpeg": "mp3",
  "text/plain": "txt",
};

/** For example `png` of `image/png`. A type that is no usual one gives `bin`. */
const extensionOf = (type: string): string =>
  EXTENSIONS[type] ?? /^(?:image|audio|video|application)\/([a-z0-9]{1,8})$/.exec(type)?.[1] ?? "bin";

const word = (value: unknown): string => (typeof value === "string" ? value : "");

/** Saves what is no text, each in a file of a folder that only this user may read. */
class Files {
  readonly #folder = join(tmpdir(), `pi-mcp-threads-${randomUUID()}`);
  readonly #console: Console;
  #count = 0;
  /** Files that could not be written. */
  unsaved = 0;

  constructor(console: Console) {
    this.#console = console;
  }

  async save(base64: string, type: string, what: string): Promise<void> {
    this.#count++;
    if (this.#count > FILES) {
      if (this.#count === FILES + 1)
        this.#console.warn(`More than ${FILES} files came: the others are not saved.`);
      return;
    }
    const bytes = Buffer.from(base64, "base64");
    const path = join(this.#folder, `${this.#count}.${extensionOf(type)}`);
    const title = `${what} (${oneLine(type, WORD_CHARS) || "unknown type"}, ${formatBytes(bytes.length)})`;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(path, bytes, { mode: 0o600, flag: "wx" });
      this.#console.warn(`${title}: ${path}`);
    } catch (error) {
      // The tool has done its work, so the rest of its result is printed all the same.
      this.unsaved++;
      this.#console.warn(`${title} could not be saved: ${messageOf(error)}`);
      // The disk that took no file may not let go of a part of it either; the warning stands already.
      await rm(path, { force: true }).catch(() => undefined);
    }
  }
}

async function blockText(block: Block, files: Files): Promise<string | undefined> {
  const type = word(block.mimeType);
  switch (block.type) {
    case "text":
      return word(block.text);
    case "image":
    case "audio":
      await files.save(word(block.data), type, block.type);
      return undefined;
    case "resource": {
      const resource = isObject(block.resource) ? block.resource : {};
      if (typeof resource.text === "string") return resource.text;
      await files.save(word(resource.blob), word(resource.mimeType), oneLine(word(resource.uri), WORD_CHARS));
      return undefined;
    }
    case "resource_link":
      return `${oneLine(word(block.title) || word(block.name), WORD_CHARS)}: ${oneLine(word(block.uri), WORD_CHARS)}`;
    default:
      return JSON.stringify(block);
  }
}

/** Prints the result. Texts follow each other, each on lines of its own. */
export async function printResult(answer: CallResult, console: Console): Promise<void> {
  const { result, isPart } = serverResult(answer);
  const part = new Failure(
    EXIT.unsaved,
    "Only a part of the result can be printed: all of it could not be stored.",
    {
      remedy: "Make room on the disk of Pi's agent folder. The tool has run.",
      code: "unsaved",
    },
  );
  if (console.json) {
    // A document that is not the server's would pass for it.
    if (isPart) throw part;
    console.document(result);
    return;
  }
  const files = new Files(console);
  let texts = 0;
  for (const block of result.content) {
    const text = await blockText(block, files);
    if (text === undefined) continue;
    texts++;
    console.result(text);
  }
  if (texts === 0 && result.structuredContent !== undefined) {
    console.result(JSON.stringify(result.structuredContent, undefined, 2));
  }
  if (isPart) throw part;
  if (files.unsaved > 0) {
    throw new Failure(EXIT.unsaved, `${counted(files.unsaved, "file")} of the result could not be saved.`, {
      remedy: "--json prints all of a result.",
    });
  }
}
