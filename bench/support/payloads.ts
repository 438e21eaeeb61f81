/**
 * Owns: the results that the benches ask for: kind, size, number, and the check that a result is the right one.
 * Must not: call anything.
 */
const KB = 1024;
const MB = 1024 * KB;

export interface Payload {
  /** Name in the tables. */
  name: string;
  /** The ids of all its results begin with this text, which has no blanks. */
  id: string;
  kind: "text" | "line" | "structured";
  bytes: number;
  /** Number of the model's messages with calls. */
  turns: number;
  /** Number of calls in each of these messages. */
  callsATurn: number;
  single: boolean;
  /** The payload that this one is compared with; undefined for a baseline. */
  baseline: Payload | undefined;
  /** True if the text for the model is this result or a part of it. */
  isRight(shown: string, id: string): boolean;
}

/** A text result begins with its id. */
const startsRight = (shown: string, id: string): boolean => shown.includes(`id=${id} `);

const one = (name: string, kind: Payload["kind"], bytes: number, isRight = startsRight): Payload => ({
  name,
  id: name.replaceAll(/\W+/g, "-"),
  kind,
  bytes,
  turns: 1,
  callsATurn: 1,
  single: true,
  baseline: undefined,
  isRight,
});

/** A result that is shown as JSON or by its structure must contain the id and the name of its content. */
const structureRight = (shown: string, id: string): boolean =>
  shown.includes(id) && shown.includes("records");

export const SMALL: Payload = one("1 KB text", "text", KB);
const big: typeof one = (...args) => ({ ...one(...args), baseline: SMALL });

export const BIG: readonly Payload[] = [
  big("9 MB text", "text", 9 * MB),
  big("4 MB structured", "structured", 4 * MB, structureRight),
  big("1 MB in one line", "line", MB, structureRight),
  big("20 MB text", "text", 20 * MB),
  big("60 MB text", "text", 60 * MB),
];

const many = (name: string, bytes: number, baseline?: Payload): Payload => ({
  ...one(name, "text", bytes),
  turns: 10,
  callsATurn: 20,
  single: false,
  baseline,
});
/** About as long as the shown part of any bigger text, so that Pi's own work is the same for both. */
export const SHOWN: Payload = one("48 KB text", "text", 48 * KB);
export const TRICKLE: Payload = many("200 x 48 KB, 20 at a time", 48 * KB);
export const FLOOD: Payload = many("200 x 1 MB, 20 at a time", MB, TRICKLE);

export const payloadCall = ({ kind, bytes }: Payload, id: string) => ({
  tool: "payload",
  args: { id, kind, bytes },
});
