/** Owns: the wait for code that loads its later part with `import()`. */

/** Settles when every promise that is ready has been handled, also those behind an `import()` that began before. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) {
    await Promise.all([
      import("../../src/ui/dialogs/questions.ts"),
      import("../../src/ui/sign-in/run.ts"),
      import("../../src/ui/asks/form.ts"),
      import("../../src/ui/health-notices.ts"),
    ]);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
