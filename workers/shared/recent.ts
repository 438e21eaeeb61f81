/**
 * Texts that were seen lately. A server may make ever new ones, so only so many are remembered: one that comes
 * again after all of them counts as new.
 */
export class Recent {
  readonly #texts = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether the text was not seen lately; it is from now on. */
  isNew(text: string): boolean {
    const isNew = !this.#texts.delete(text);
    this.#texts.add(text);
    if (this.#texts.size > this.#most) {
      const { value: oldest } = this.#texts.values().next();
      if (oldest !== undefined) this.#texts.delete(oldest);
    }
    return isNew;
  }
}
