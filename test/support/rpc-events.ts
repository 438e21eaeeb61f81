/**
 * Owns: the records that Pi writes in RPC mode: the shapes that tests use, and their readers.
 * Must not: hold state or talk to a process.
 * Called by: rpc-session.ts and end-to-end tests.
 */

/** One line of Pi's stdout: a response, a session event or a request to the user interface. */
export interface RpcEvent {
  type: string;
  [key: string]: unknown;
}

/** A record `{"type":"extension_ui_request"}` that waits for an answer. */
export interface RpcDialog {
  id: string;
  method: "select" | "confirm" | "input" | "editor";
  title: string;
  /** Only `confirm` has a message. */
  message?: string;
  /** Only `select` has options. */
  options?: readonly string[];
  /** Only `input` has a placeholder. */
  placeholder?: string;
  /** Only `editor` has a prefill. */
  prefill?: string;
  /** Milliseconds until Pi answers the dialog itself; absent: never. */
  timeout?: number;
}

/** `value` answers select, input and editor; `confirmed` answers confirm; `cancelled` answers any dialog. */
export type RpcAnswer = { value: string } | { confirmed: boolean } | { cancelled: true };

export interface RpcNotice {
  message: string;
  level: "info" | "warning" | "error";
}

export interface RpcToolEnd {
  toolCallId: string;
  toolName: string;
  /** Text parts of the result, joined by line breaks. */
  text: string;
  result: { content: readonly Record<string, unknown>[]; details?: unknown; [key: string]: unknown };
  isError: boolean;
  /** Absent if the tool did not run, for example because Pi refused its arguments. */
  durationMs?: number;
}

const DIALOG_METHODS: readonly unknown[] = ["select", "confirm", "input", "editor"];

/** The dialog in this record, or undefined. */
export function toDialog(event: RpcEvent): RpcDialog | undefined {
  if (event.type !== "extension_ui_request" || !DIALOG_METHODS.includes(event.method)) return undefined;
  return event as unknown as RpcDialog;
}

/** All `ctx.ui.notify` calls, in order. The record has no level if the extension gave none. */
export function notices(events: readonly RpcEvent[]): RpcNotice[] {
  return events
    .filter((event) => event.type === "extension_ui_request" && event.method === "notify")
    .map((event) => ({
      message: String(event.message),
      level: (event.notifyType as RpcNotice["level"] | undefined) ?? "info",
    }));
}

/** The last text of each `ctx.ui.setStatus` key; a key that was cleared is absent. */
export function statuses(events: readonly RpcEvent[]): Record<string, string> {
  const last = new Map<string, string>();
  for (const event of events) {
    if (event.type !== "extension_ui_request" || event.method !== "setStatus") continue;
    const text = event.statusText;
    if (typeof text === "string") last.set(String(event.statusKey), text);
    else last.delete(String(event.statusKey));
  }
  return Object.fromEntries(last);
}

/** All finished tool calls, in the order they ended. */
export function toolEnds(events: readonly RpcEvent[]): RpcToolEnd[] {
  return events
    .filter((event) => event.type === "tool_execution_end")
    .map((event) => {
      const end = event as unknown as Omit<RpcToolEnd, "text">;
      return { ...end, text: partsText(end.result.content) };
    });
}

/** The text of the last assistant message, "" if there is none. */
export function finalText(events: readonly RpcEvent[]): string {
  const messages = events
    .filter((event) => event.type === "message_end")
    .map((event) => event.message as { role: string; content: readonly Record<string, unknown>[] })
    .filter((message) => message.role === "assistant");
  return partsText(messages.at(-1)?.content ?? []);
}

/** All exceptions that extension handlers threw. */
export function extensionErrors(events: readonly RpcEvent[]): string[] {
  return events
    .filter((event) => event.type === "extension_error")
    .map((event) => `${String(event.event)}: ${String(event.error)}`);
}

function partsText(content: readonly Record<string, unknown>[]): string {
  return content
    .filter((part) => part.type === "text")
    .map((part) => String(part.text))
    .join("\n");
}
