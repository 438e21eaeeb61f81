/**
 * Owns: what tests have started and must end: each cleanup runs after its test, or after its file; the last one first.
 * Must not: call hooks of Vitest. Files share processes, so the code of a module runs for the first of its files only,
 * and its hooks would be missing in all later files. cleanup-setup.ts runs before each file and sets the hooks.
 * Called by: every module that several test files import and that starts something.
 */
export type Cleanup = () => unknown;

const ofTest: Cleanup[] = [];
const ofFile: Cleanup[] = [];
let registering = ofTest;

/** Registers a cleanup to run after the test. The last registered cleanup runs first. */
export const onCleanup = (cleanup: Cleanup): void => {
  registering.push(cleanup);
};

/** The cleanups that `make` registers run after all tests of the file. */
export async function forWholeFile<T>(make: () => Promise<T>): Promise<T> {
  const before = registering;
  registering = ofFile;
  try {
    return await make();
  } finally {
    registering = before;
  }
}

const cleanUp = async (cleanups: Cleanup[]): Promise<void> => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
};
export const cleanUpAfterTest = (): Promise<void> => cleanUp(ofTest);
export const cleanUpAfterFile = (): Promise<void> => cleanUp(ofFile);
