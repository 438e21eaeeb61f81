/** Dialogs that leave the screen once nobody waits for their answer. Each is shown in its turn among all dialogs. */

export interface Withdrawable {
  /**
   * Runs the task in its turn, unless the dialog was withdrawn or the session has ended before. `signal` aborts when the
   * dialog is withdrawn. Rejects with what the task rejects with.
   */
  show(id: string, task: (signal: AbortSignal) => Promise<void>): Promise<void>;
  withdraw(id: string): void;
  /** The worker or the session has ended: every dialog closes. */
  interrupt(): void;
}

export interface WithdrawableOptions {
  /** Runs the task once every dialog before it has ended. */
  inTurn<T>(task: () => Promise<T>): Promise<T>;
  /** Whether the session has ended. */
  over(): boolean;
}

export function createWithdrawable({ inTurn, over }: WithdrawableOptions): Withdrawable {
  const open = new Map<string, AbortController>();
  return {
    show: async (id, task) => {
      const closing = new AbortController();
      open.set(id, closing);
      const { signal } = closing;
      try {
        await inTurn(async () => (signal.aborted || over() ? undefined : task(signal)));
      } finally {
        if (open.get(id) === closing) open.delete(id);
      }
    },
    withdraw: (id) => open.get(id)?.abort(),
    interrupt: () => {
      for (const closing of open.values()) closing.abort();
    },
  };
}
