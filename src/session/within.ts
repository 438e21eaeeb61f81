/** The value of the promise, or undefined after `ms` milliseconds. The timer does not keep the process alive. */
export const within = <T>(promise: Promise<T> | undefined, ms: number): Promise<T | undefined> =>
  Promise.race([
    promise,
    new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), ms).unref();
    }),
  ]);
