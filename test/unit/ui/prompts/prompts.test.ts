/**
 * Owns: which of the servers' prompts become commands that Pi proposes, and a command whose session ends while it asks. What
 * else a command does: test/worker and test/e2e.
 */
import { expect, test, vi } from "vitest";
import type { PiCommandContext, PiContext } from "../../../../src/pi/api.ts";
import { encode } from "../../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { createPromptCommands } from "../../../../src/ui/prompts/prompts.ts";
import { type PromptHost, promptAsInput, runCommand } from "../../../../src/ui/prompts/use-prompt.ts";
import { createRecordingContext } from "../../recording-context.ts";
import { createRecordingPi } from "../../recording-pi.ts";

test("a server that has other prompts with each list -> as many commands as may be; those of others are made", () => {
  const pi = createRecordingPi();
  let servers: { name: string; prompts?: { command: string }[] }[] = [];
  const host = { pi, catalog: () => ({ servers }) } as unknown as PromptHost;
  const { register } = createPromptCommands(host);
  for (let nth = 0; nth < LIMITS.toldCommands + 5; nth++) {
    servers = [{ name: "a", prompts: [{ command: `mcp__a__p${nth}` }] }, { name: "none" }];
    register({ mode: "rpc" } as PiContext);
  }
  expect(pi.commands.size).toBe(LIMITS.toldCommands);
  servers = [
    { name: "a", prompts: [{ command: "mcp__a__p3" }, { command: "mcp__a__new" }] },
    { name: "b", prompts: [{ command: "mcp__b__p" }] },
  ];
  register({ mode: "rpc" } as PiContext);
  expect([...pi.commands.keys()].slice(LIMITS.toldCommands)).toEqual(["mcp__b__p"]);
});

/** How many dialogs and screens of this process take keys: src/ui/typing.ts. */
const keysTaken = (): number =>
  (globalThis as { [key: symbol]: Set<object> | undefined })[Symbol.for("pi-mcp-threads.keys-taken")]?.size ??
  0;

test.each(["a command", "an input"])(
  "%s that asks for an argument, and the session ends -> the dialog closes, the keys are free, the model gets nothing",
  async (way) => {
    const before = keysTaken();
    let end: () => void = () => undefined;
    const asked: (AbortSignal | undefined)[] = [];
    const told: string[] = [];
    // As Pi: the dialog of a session that has been replaced never settles.
    const ui = {
      getEditorText: () => "",
      notify: (text: string) => void told.push(text),
      input: (_title: string, _placeholder: unknown, dialog?: { signal?: AbortSignal }) => {
        asked.push(dialog?.signal);
        return new Promise<string>(() => undefined);
      },
    };
    const ctx = { mode: "tui", hasUI: true, isIdle: () => true, ui } as unknown as PiCommandContext;
    const prompt = { prompt: "p", command: "mcp__a__p", arguments: [{ name: "city", required: true }] };
    const host = {
      pi: { getCommands: () => [], sendUserMessage: () => void told.push("to the model") },
      catalog: () => ({ servers: [{ name: "a", prompts: [prompt] }] }),
      ask: async () => Promise.reject(new Error("asked the worker")),
      onChange: (listener: (event: undefined) => void) => {
        end = () => listener(undefined);
        return () => undefined;
      },
    } as unknown as PromptHost;
    const typed = { name: prompt.command, args: "", ctx };
    const done = way === "an input" ? promptAsInput(host, typed) : runCommand(host, typed);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    expect(keysTaken()).toBe(before + 1);
    end();
    expect(await done).toEqual(way === "an input" ? { action: "handled" } : undefined);
    expect([asked[0]?.aborted, keysTaken(), told]).toEqual([true, before, []]);
  },
);

test("images of the input -> they stay, before those of the prompt", async () => {
  const image = (data: string) => ({ type: "image" as const, data, mimeType: "image/png" });
  const content = [{ type: "text", text: "Look." }, image("of the prompt")];
  const host = {
    pi: { getCommands: () => [] },
    catalog: () => ({ servers: [{ name: "a", prompts: [{ prompt: "p", command: "mcp__a__p" }] }] }),
    ask: async () => encode({ content }),
    onChange: () => () => undefined,
  } as unknown as PromptHost;
  const { onInput } = createPromptCommands(host);
  const { ctx } = createRecordingContext();
  const event = { text: "/mcp__a__p", images: [image("of the person")], source: "rpc" as const };
  expect(await onInput(event, ctx)).toEqual({
    action: "transform",
    text: "Look.",
    images: [image("of the person"), image("of the prompt")],
  });
});
