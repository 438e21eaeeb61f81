/**
 * Lets at most `size` background tasks run at a time; the others wait in order. A task that becomes urgent stops
 * waiting, so a task that a user waits for never queues behind background work.
 */
export interface Gate {
  /** Settles when the task may run, or at once when `urgent` fires. The caller calls the answer when the task has ended. */
  enter(urgent: AbortSignal): Promise<() => void>;
}

export function createGate(size: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  const leave = (): void => {
    running--;
    waiting.shift()?.();
  };
  return {
    enter: (urgent) =>
      new Promise((resolve) => {
        const pass = (): void => {
          urgent.removeEventListener("abort", jump);
          running++;
          resolve(leave);
        };
        const jump = (): void => {
          const at = waiting.indexOf(pass);
          if (at !== -1) waiting.splice(at, 1);
          resolve(() => undefined);
        };
        if (urgent.aborted) return jump();
        if (running < size) return pass();
        waiting.push(pass);
        urgent.addEventListener("abort", jump, { once: true });
      }),
  };
}
