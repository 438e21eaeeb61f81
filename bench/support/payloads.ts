/**
 * Owns: the results that the benches ask for: kind, size, how many, and how the model can tell a right one.
 * Must not: call anything.
 */
const KB = 1024;
const MB = 1024 * KB;

export interface Payload {
  /** Name in the tables. */
  name: string;
  /** The beginning of the ids of its results: no blanks. */
  id: string;
  kind: "text" | "line" | "structured";
  bytes: number;
  /** Messages of the model with calls, and calls in each. */
  turns: number;
  callsATurn: number;
  single: boolean;
  /** The case that its figures are compared with; undefined for a baseline. */
  baseline: Payload | undefined;
  /** Whether what the model was shown is this result, whole or a part of it. */
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

/** A result shown as JSON or by its structure must have the id and the name of its content. */
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
/** About what the model is shown of any bigger text: what Pi itself does with it is in both. */
export const SHOWN: Payload = one("48 KB text", "text", 48 * KB);
export const TRICKLE: Payload = many("200 x 48 KB, 20 at a time", 48 * KB);
export const FLOOD: Payload = many("200 x 1 MB, 20 at a time", MB, TRICKLE);

export const payloadCall = ({ kind, bytes }: Payload, id: string) => ({
  tool: "payload",
  args: { id, kind, bytes },
});
