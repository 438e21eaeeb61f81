/** Finds the prompt of a command. */
import type { NamedPrompt, PromptHost } from "./contract.ts";

/** The prompt of a command in the newest catalog. */
export function promptNamed({ catalog }: Pick<PromptHost, "catalog">, name: string): NamedPrompt | undefined {
  for (const { name: server, prompts = [] } of catalog().servers) {
    const prompt = prompts.find(({ command }) => command === name);
    if (prompt) return { server, prompt };
  }
  return undefined;
}
