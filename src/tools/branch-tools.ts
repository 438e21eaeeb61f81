/**
 * The tools that a session's branch has declared to the model, read from its transcript. After a resume, a
 * fork or `/tree` they must be registered by the end of `before_agent_start`, or Pi drops them for good.
 * Pure.
 */

/** A tool definition as Pi stores it in a transcript. */
export interface DeclaredTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Replays `toolsAdded` and `toolsRemoved` of the branch's system messages, oldest first. */
export function declaredTools(branch: readonly unknown[]): Map<string, DeclaredTool> {
  const declared = new Map<string, DeclaredTool>();
  for (const entry of branch) {
    const message = isObject(entry) && entry.type === "message" ? entry.message : undefined;
    if (!isObject(message) || message.role !== "system") continue;
    for (const removed of list(message.toolsRemoved)) {
      if (isObject(removed) && typeof removed.name === "string") declared.delete(removed.name);
    }
    for (const tool of list(message.toolsAdded)) {
      if (!isObject(tool) || typeof tool.name !== "string" || !isObject(tool.parameters)) continue;
      const description = typeof tool.description === "string" ? tool.description : "";
      declared.set(tool.name, { name: tool.name, description, parameters: tool.parameters });
    }
  }
  return declared;
}
