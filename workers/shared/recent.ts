/**
 * Remembers recent texts. A server may send new texts without end, so only `most` are remembered: a text that comes
 * again after that many others counts as new.
 */
export class Recent {
  readonly #texts = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Answers whether the text is not remembered, and remembers it. */
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
