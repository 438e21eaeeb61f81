/** The code of Pi's end that a command asks for, as a script reads it; undefined if it asks for none, which is 0. */
export async function exitCodeOf(act: () => unknown): Promise<typeof process.exitCode> {
  process.exitCode = undefined;
  try {
    await act();
    return process.exitCode;
  } finally {
    process.exitCode = undefined;
  }
}
