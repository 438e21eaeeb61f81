/** Keeps the best tools of a query. Called by ranked.ts. */
export type Scored = { readonly tool: number; readonly score: number };

/** The `capacity` best of the added tools, as a heap with the worst of them on top. */
export class TopTools {
  /** A tool is kept only with a higher score than this; -1 while there is room. */
  least = -1;
  readonly #capacity: number;
  readonly #heap: Scored[] = [];

  constructor(capacity: number) {
    this.#capacity = Math.max(0, capacity);
    if (this.#capacity === 0) this.least = Infinity;
  }

  add(tool: number, score: number): void {
    if (score <= this.least) return;
    const hit = { tool, score };
    if (this.#heap.length < this.#capacity) this.#rise(hit);
    else this.#sink(hit);
    if (this.#heap.length === this.#capacity) this.least = this.#heap[0]!.score;
  }

  /** Best first. Of equal scores the earlier tool comes first, so that one catalog always gives one order. */
  sorted(): Scored[] {
    return this.#heap.sort((a, b) => b.score - a.score || a.tool - b.tool);
  }

  #rise(hit: Scored): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(hit);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.score <= hit.score) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = hit;
  }

  #sink(hit: Scored): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.score < heap[child]!.score) child++;
      if (heap[child]!.score >= hit.score) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = hit;
  }
}
