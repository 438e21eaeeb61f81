/**
 * Decides when the catalog is published: changes are gathered for a moment, one publication runs at a time, and changes
 * during it lead to one more. Owns the timer and the waiting requests; knows nothing of catalogs. Called by: catalog.ts.
 */
export interface PublishLoopOptions {
  /** From the first change to the publication, to gather a burst. */
  delayMs: number;
  /** Publishes everything that was requested before it started. */
  publish: () => Promise<void>;
}

export class PublishLoop {
  readonly #options: PublishLoopOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  /** Changes that were requested, and those of them that a publication has dealt with. */
  readonly #changes = { requested: 0, done: 0 };
  #onDone = Promise.withResolvers<void>();

  constructor(options: PublishLoopOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Something changed: it is published soon. */
  request(): void {
    this.#changes.requested++;
    this.#timer ??= setTimeout(() => this.#start(), this.#options.delayMs);
  }

  /**
   * Publishes at once and settles when everything requested so far is published, or could not be. Later requests do not
   * count, because a server may report changes for ever.
   */
  async flush(): Promise<void> {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#start();
    }
    const { requested } = this.#changes;
    while (this.#running && this.#changes.done < requested) await this.#onDone.promise;
  }

  /** Publishes what waits, if `isWorthIt`, and settles when no publication runs. */
  async finish(isWorthIt: boolean): Promise<void> {
    const isDue = this.#timer !== undefined && isWorthIt;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (isDue) this.#start();
    while (this.#running) await this.#running;
  }

  #start(): void {
    this.#timer = undefined;
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const { requested } = this.#changes;
      try {
        await this.#options.publish();
      } finally {
        this.#changes.done = requested;
        this.#onDone.resolve();
        this.#onDone = Promise.withResolvers<void>();
      }
    } while (this.#again);
  }
}
