/** Owns: the end of the dialogs that other tests of this process have left open, in which a person would type. */

export function nothingTyped(): void {
  const { [Symbol.for("pi-mcp-threads.keys-taken")]: taken } = globalThis as {
    [key: symbol]: Set<object> | undefined;
  };
  taken?.clear();
}
