/** Owns: the end of the dialogs that other tests of this process have left open, in which a person would type, or have answered. */

export function nothingTyped(): void {
  const shared = globalThis as { [key: symbol]: unknown };
  (shared[Symbol.for("pi-mcp-threads.keys-taken")] as Set<object> | undefined)?.clear();
  delete shared[Symbol.for("pi-mcp-threads.keys-answered")];
}
