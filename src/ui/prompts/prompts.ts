/**
 * The servers' prompts as commands `/mcp__<server>__<prompt>`. Owns: which commands Pi knows. use-prompt.ts, loaded with the
 * first of them, owns what a command does and how its words are read. Must not: know the worker's inside.
 *
 * Pi awaits no message that a command sends, so `pi -p` would end before the answer, and Pi takes no command back. So
 * commands are registered when the session has started, where a person or a program can see them, and a command that
 * Pi does not know, as in print mode, becomes the prompt's text while Pi still reads the input.
 */
import type { InputEvent, InputResult, PiContext } from "../../pi/api.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { PromptHost } from "./use-prompt.ts";

export function createPromptCommands(host: PromptHost) {
  const known = new Set<string>();
  /** Server -> its commands, with those that are gone. */
  const counts = new Map<string, number>();
  let isFirst = true;
  return {
    /** Registers the commands that Pi does not know yet. */
    register: ({ ui, mode }: PiContext): void => {
      if (mode === "print" || mode === "json") return;
      const before = known.size;
      for (const { name: server, prompts = [] } of host.catalog().servers) {
        for (const { command: name, description = "MCP prompt" } of prompts) {
          const count = counts.get(server) ?? 0;
          if (known.has(name) || count >= LIMITS.toldCommands) continue;
          counts.set(server, count + 1);
          known.add(name);
          host.pi.registerCommand(name, {
            description,
            getArgumentCompletions: async (typed) =>
              (await import("./use-prompt.ts")).completeArguments(host, name, typed),
            handler: async (args, ctx) =>
              (await import("./use-prompt.ts")).runCommand(host, { name, args, ctx }),
          });
        }
      }
      // The terminal reads the commands again only when its completion is made anew.
      // It does so anyway when the session has started.
      if (mode === "tui" && known.size > before && !isFirst) ui.addAutocompleteProvider((current) => current);
      isFirst = false;
    },
    /** The prompt's text for the input of such a command; undefined for any other input. */
    onInput: (
      { text, source, images = [] }: InputEvent,
      ctx: PiContext,
    ): Promise<InputResult> | undefined => {
      // A server's own text may look like a command, and must not be one.
      if (source === "extension" || !text.startsWith("/mcp__")) return undefined;
      const [name = ""] = text.slice(1).split(/\s/, 1);
      const args = text.slice(1 + name.length);
      return import("./use-prompt.ts").then(({ promptAsInput }) =>
        promptAsInput(host, { name, args, ctx, images }),
      );
    },
  };
}
