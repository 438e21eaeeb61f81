/**
 * One file of the store, read again only after a change. Owns: what counts as unchanged, and that a file that cannot be
 * used is told once and counts as absent. Must not: throw, or tell anything of the content.
 */
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { type Look, lookAtFile, type Refused, refusedFolder } from "./guard.ts";
import type { Place } from "./place.ts";
import { tellOnce } from "./process-state.ts";
import type { Parsed } from "./record.ts";

/** A larger file holds no sign-in. */
export const FILE_BYTES = 64 * 1024;
/**
 * A file that was changed so recently can change again without another time of change: file systems count in steps of up
 * to two seconds.
 */
const SETTLED_MS = 2_000;
const MISSING = "missing";

export interface Content<T> {
  stamp: string;
  /** Absent: there is no file, or it cannot be used. */
  value?: T;
  /** There is something that must not be read or written. */
  refused?: Refused;
  /** The text is not what it should be. */
  isUnusable?: true;
  /** The permission bits of the file. */
  mode?: number;
}

export interface CachedFileOptions<T> {
  path: string;
  place: Place;
  parse: (text: string, modifiedMs: number) => Parsed<T>;
  /** Asked before the file is read: why it does not count. */
  refuses?: () => Promise<string | undefined>;
  /** Gets one sentence about a file that must not be used. */
  onRefused: (text: string) => void;
  /** Gets one sentence about a file whose text cannot be used. */
  onUnusable: (text: string) => void;
}

export class CachedFile<T> {
  readonly #options: CachedFileOptions<T>;
  #known: { content: Content<T>; isSettled: boolean } | undefined;

  constructor(options: CachedFileOptions<T>) {
    this.#options = options;
  }

  /** Costs one look at an unchanged file. Never rejects. */
  async read(): Promise<Content<T>> {
    const look = await lookAtFile(this.#options.path);
    if (look.kind !== "missing" && this.#known?.isSettled && this.#known.content.stamp === look.stamp)
      return this.#known.content;
    return this.#load(look);
  }

  /** Reads whatever the stamp says. Never rejects. */
  async readAnew(): Promise<Content<T>> {
    return this.#load(await lookAtFile(this.#options.path));
  }

  async #load(look: Look): Promise<Content<T>> {
    const content = await this.#content(look);
    const age = look.kind === "file" ? Date.now() - look.modifiedMs : 0;
    this.#known = { content, isSettled: age > SETTLED_MS };
    return content;
  }

  async #content(look: Look): Promise<Content<T>> {
    const { path, place, parse, refuses } = this.#options;
    if (look.kind === "missing") {
      this.#tell(undefined, this.#options.onRefused);
      return { stamp: MISSING };
    }
    const { stamp } = look;
    const folder = await refusedFolder(place);
    if (folder) return this.#refused(stamp, folder);
    if (look.kind === "refused") return this.#refused(stamp, { path, what: look.what });
    const why = await refuses?.();
    if (why !== undefined) return this.#refused(stamp, { path, what: why });
    const read = await readRegularText(path, FILE_BYTES);
    if (read.kind === "missing") return { stamp: MISSING };
    if (read.kind === "too-large") return this.#unusable({ stamp, mode: look.mode }, whyUnread(read));
    if (read.kind !== "text") return this.#refused(stamp, { path, what: whyUnread(read) });
    const parsed = parse(read.text, look.modifiedMs);
    if ("what" in parsed) return this.#unusable({ stamp, mode: look.mode }, parsed.what);
    this.#tell(undefined, this.#options.onRefused);
    return { stamp, value: parsed.value, mode: look.mode };
  }

  #refused(stamp: string, refused: Refused): Content<T> {
    const text = `${refused.path} is not used for a sign-in: ${refused.what}.`;
    tellOnce(refused.path, "reading", { text, tell: this.#options.onRefused });
    return { stamp, refused };
  }

  #unusable(content: Content<T>, what: string): Content<T> {
    this.#tell(`${this.#options.path} is not used: ${what}.`, this.#options.onUnusable);
    return { ...content, isUnusable: true };
  }

  #tell(text: string | undefined, tell: (text: string) => void): void {
    tellOnce(this.#options.path, "reading", { text, tell });
  }
}
