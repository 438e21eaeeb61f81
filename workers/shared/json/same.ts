/**
 * Deep equality of JSON values, without recursion, so that depth costs memory only. The order of keys does not count;
 * `0` and `-0` differ. Pure.
 */

type Pair = [unknown, unknown];

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/** Pushes the pairs that are left to compare; false if the lengths differ. */
function compareArrays(left: unknown[], right: unknown[], open: Pair[]): boolean {
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) open.push([left[i], right[i]]);
  return true;
}

function compareObjects(left: object, right: object, open: Pair[]): boolean {
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(right, key)) return false;
    open.push([Reflect.get(left, key), Reflect.get(right, key)]);
  }
  return true;
}

export function sameJson(left: unknown, right: unknown): boolean {
  const open: Pair[] = [[left, right]];
  for (let pair = open.pop(); pair; pair = open.pop()) {
    const [a, b] = pair;
    if (!isContainer(a) || !isContainer(b)) {
      if (!Object.is(a, b)) return false;
    } else if (Array.isArray(a) !== Array.isArray(b)) {
      return false;
    } else if (Array.isArray(a) && Array.isArray(b)) {
      if (!compareArrays(a, b, open)) return false;
    } else if (!compareObjects(a, b, open)) {
      return false;
    }
  }
  return true;
}

/** `before` if it equals `now`, else `now`, so that a comparison by identity sees no change. */
export const keepSame = <T>(before: T | undefined, now: T): T =>
  before !== undefined && sameJson(before, now) ? before : now;
