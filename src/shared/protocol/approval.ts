/** What the two threads say to each other about a call that needs the user's yes. Types only. */

/** A call that waits. Its texts come from the model and the server; the worker has bounded and escaped them. */
export interface ApprovalQuestion {
  server: string;
  tool: string;
  /** The arguments, one on each line as `name: JSON`, at most `LIMITS.approvalChars`. Empty: there are none. */
  args: string;
  /** Whether the user's file can hold a rule that lets the tool run. */
  canAlways: boolean;
}

/**
 * `session`: calls of this tool run until the session ends, or until the server changes what it says of the tool.
 * `always`: the same, and a rule in the user's file lets them run later, too.
 */
export type ApprovalAnswer = "once" | "session" | "always" | "no";
