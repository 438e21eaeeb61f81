/** What the two threads say to each other about a server's prompts (MCP 2025-11-25, server/prompts). Types only. */

/** Parameters of `getPrompt`. Its answer is a msgpackr-encoded `CallResult`. */
export interface GetPromptParams {
  server: string;
  /** The prompt's name as the server gave it. */
  prompt: string;
  args: Record<string, string>;
}

/** Parameters of `completePrompt`. */
export interface CompletePromptParams {
  server: string;
  prompt: string;
  argument: string;
  /** What is typed so far. */
  value: string;
  /** The arguments that are typed already. */
  context: Record<string, string>;
}
