/**
 * Lets at most `size` background tasks run at a time; the others wait in order. A task that becomes
 * urgent no longer waits: what a user waits for never queues behind what nobody waits for.
 */
export interface Gate {
  /** Settles when the task may run, or at once when `urgent` fires. Call the answer when it is over. */
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
          const place = waiting.indexOf(pass);
          if (place !== -1) waiting.splice(place, 1);
          resolve(() => undefined);
        };
        if (urgent.aborted) return jump();
        if (running < size) return pass();
        waiting.push(pass);
        urgent.addEventListener("abort", jump, { once: true });
      }),
  };
}
