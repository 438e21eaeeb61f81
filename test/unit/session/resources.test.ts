/** Owns: resources that a person names in a message: what the message becomes, and what the editor suggests. */
import { describe, expect, test, vi } from "vitest";
import type { CompletionProvider, ImageContent, InputEvent } from "../../../src/pi/api.ts";
import {
  encode,
  type ReadResourceParams,
  type ResultContent,
  type SuggestedResource,
} from "../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { PATIENCE_MS } from "../../support/patience.ts";
import { makeStatus } from "../server-status.ts";
import { type OpenOptions, openSession, planned } from "./support.ts";

const IMAGE: ImageContent = { type: "image", data: "AA==", mimeType: "image/png" };
const answer = (...content: ResultContent[]) => encode({ content, isError: false, durationMs: 1 });
const read = (params: unknown): Uint8Array => {
  const { uri } = params as ReadResourceParams;
  if (uri === "x://wide") throw new ThreadsError("call_rejected", "docs answered: a\u200bb \u0903\u0e33.");
  if (uri === "x://gone") throw new ThreadsError("call_rejected", "docs answered: not found.");
  return answer({ type: "text", text: `text of ${uri}` }, ...(uri === "x://image" ? [IMAGE] : []));
};

async function open(options: OpenOptions = {}) {
  const at = await openSession({ snapshot: [{ name: "docs", tools: [] }], ...options });
  at.answers.readResource ??= read;
  at.send(planned({ servers: [makeStatus("docs")] }));
  const input = (event: Partial<InputEvent>) =>
    at.session.onInput({ text: "", source: "interactive", ...event }, at.ctx);
  return { ...at, input };
}

describe("a message", () => {
  test("names resources -> their content comes behind the text, and images beside its own", async () => {
    const { input } = await open();
    const own: ImageContent = { ...IMAGE, data: "BB==" };
    expect(await input({ text: "see @docs:x://a, @docs:x://image", images: [own] })).toEqual({
      action: "transform",
      text: "see @docs:x://a, @docs:x://image\n\n[@docs:x://a]\n\ntext of x://a\n\n[@docs:x://image]\n\ntext of x://image",
      images: [own, IMAGE],
    });
  });

  test("names a resource that cannot be read -> a sentence in its place, and a notice; nothing typed is lost", async () => {
    const { input, notices } = await open();
    const text = "@docs:x://gone could not be read: docs answered: not found.";
    expect(await input({ text: "see @docs:x://gone" })).toEqual({
      action: "transform",
      text: `see @docs:x://gone\n\n[${text}]`,
      images: [],
    });
    expect(notices).toEqual([[text, "warning"]]);
    // Pi draws the message itself: a mark without a letter would end it.
    expect(await input({ text: "see @docs:x://wide" })).toMatchObject({
      text: expect.stringContaining("docs answered: ab ◌\u0903"),
    });
  });

  test("names more than ten -> ten are read, and a notice says so", async () => {
    const { input, notices, runtimes } = await open();
    await input({ text: Array.from({ length: 12 }, (_, i) => `@docs:x://${i}`).join(" ") });
    expect(runtimes[0]?.asked.filter(([method]) => method === "readResource")).toHaveLength(10);
    expect(notices).toEqual([["Only the first 10 of 12 resources are read.", "warning"]]);
  });

  test.each<[string, Partial<InputEvent>]>([
    ["names none", { text: "me@example.com: hi" }],
    ["is an extension's, for example a server's prompt", { text: "@docs:x://a", source: "extension" }],
  ])("%s -> stays as it is, and nothing is loaded", async (_what, event) => {
    const { input } = await open();
    expect(input(event)).toBeUndefined();
  });

  test("names a server that is not configured -> stays as it is", async () => {
    const { input } = await open();
    expect(await input({ text: "@other:x://a" })).toEqual({ action: "continue" });
  });
});

describe("the editor", () => {
  const files = { prefix: "@a", items: [{ value: "@a.ts", label: "a.ts" }] };
  const own: CompletionProvider = {
    triggerCharacters: ["#"],
    getSuggestions: async (lines, line) => (lines[line]?.endsWith("@a") ? files : null),
    applyCompletion: (lines) => ({ lines, cursorLine: 7, cursorCol: 7 }),
  };
  const found: SuggestedResource[] = [{ mention: "docs:x://a", title: "A" }];
  const ours = { value: "@docs:x://a", label: "@docs:x://a", description: "A" };

  async function provider(suggestResources: (params: unknown) => unknown = () => found) {
    const at = await open({ mode: "tui", answers: { suggestResources } });
    await vi.waitFor(() => expect(at.refreshes).not.toEqual([]), PATIENCE_MS);
    const made = (at.refreshes as ((current: CompletionProvider) => CompletionProvider)[]).map((make) =>
      make(own),
    );
    expect(made).toHaveLength(1);
    const type = (text: string) =>
      made[0]?.getSuggestions(["first", text], 1, text.length, { signal: new AbortController().signal });
    return { ...at, type, made: made[0] };
  }

  test("behind an @ -> Pi's files, then resources; behind a server's name only resources", async () => {
    const { type, runtimes } = await provider();
    expect(await type("see @a")).toEqual({ prefix: "@a", items: [...files.items, ours] });
    expect(await type("(@docs:x")).toEqual({ prefix: "@docs:x", items: [ours] });
    expect(runtimes[0]?.asked.filter(([method]) => method === "suggestResources")).toEqual([
      ["suggestResources", { typed: "a" }],
      ["suggestResources", { typed: "docs:x" }],
    ]);
  });

  test("long mentions -> their ends are seen in the 30 cells that Pi's list has", async () => {
    const uris = [
      "demo://resource/dynamic/text/1",
      "demo://resource/dynamic/text/2",
      "demo://a/目录目录目录目录目录目录/b",
    ];
    const { type } = await provider(() => uris.map((uri) => ({ mention: `docs:${uri}`, title: "T" })));
    const { items = [] } = (await type("@docs:d")) ?? {};
    expect(items.map(({ value }) => value)).toEqual(uris.map((uri) => `@docs:${uri}`));
    expect(items.map(({ label }) => label)).toEqual([
      "…emo://resource/dynamic/text/1",
      "…emo://resource/dynamic/text/2",
      "…/a/目录目录目录目录目录目录/b",
    ]);
  });

  test("elsewhere, without a resource, or without an answer of the worker -> what Pi suggests", async () => {
    const { type } = await provider(() => []);
    expect(await type("see @a")).toBe(files);
    expect(await type("a@a b")).toBeNull();
    const failing = await provider(() => {
      throw new Error("crashed");
    });
    expect(await failing.type("see @a")).toBe(files);
    const silent = await provider(() => new Promise(() => undefined));
    expect(await silent.type("see @a")).toBe(files);
  });

  test("an item is chosen -> Pi puts it in; the provider is added once", async () => {
    const { made, send, refreshes } = await provider();
    expect(made?.applyCompletion([], 0, 0, ours, "@a")).toEqual({ lines: [], cursorLine: 7, cursorCol: 7 });
    expect(made?.shouldTriggerFileCompletion?.([], 0, 0)).toBe(true);
    expect(made?.triggerCharacters).toEqual(["#"]);
    send(planned({ servers: [makeStatus("docs")] }));
    expect(refreshes).toHaveLength(1);
  });

  test("over RPC -> nothing is added", async () => {
    expect((await open({ mode: "rpc" })).refreshes).toEqual([]);
  });
});
