/**
 * Fits a catalog into the size that main reads in one go, so that one server costs the others nothing. Servers that
 * list most lose first the ends of their longest descriptions, then their longest schemas. Their tools are still found
 * by name and can be called. Pure.
 */
import { encode } from "../../../src/shared/protocol/codec.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { rootKeysOf } from "../../../src/shared/snapshot/root-keys.ts";
import { ANY_OBJECT, cutDescription, type Prepared } from "./prepare-tools.ts";

/** Characters that each description keeps: most often its first sentence. */
const LEAST_CHARS = 160;
/** Lengths that are tried for the descriptions of a server. The first length that is short enough is taken. */
const LENGTHS = [4_000, 2_000, 1_000, 500, 250, LEAST_CHARS];

const NO_SCHEMA = {
  rootKeys: rootKeysOf(ANY_OBJECT),
  schema: encode(ANY_OBJECT),
  words: "[Its parameters are left out here: the servers list too much.]",
};

const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);

/** The most that each may have, so that the sum is within the limit and sizes below the share stay as they are. */
export function fairShare(sizes: readonly number[], limit: number): number {
  let left = limit;
  const sorted = sizes.toSorted((a, b) => a - b);
  for (const [i, size] of sorted.entries()) {
    const share = left / (sorted.length - i);
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

/** Sum of the tools' sizes, by server. */
function sizesOf(tools: readonly Prepared[], servers: number, sizeOf: (tool: Prepared) => number): number[] {
  const sizes = Array<number>(servers).fill(0);
  for (const tool of tools) sizes[tool.stored.server] = (sizes[tool.stored.server] ?? 0) + sizeOf(tool);
  return sizes;
}

const textBytes = ({ stored }: Prepared): number =>
  stored.name.length + Buffer.byteLength(stored.tool) + Buffer.byteLength(stored.description);

const withDescription = (tool: Prepared, chars: number): Prepared =>
  tool.stored.description.length <= chars
    ? tool
    : {
        stored: { ...tool.stored, description: cutDescription(tool.stored.description, chars) },
        indexed: { ...tool.indexed, description: tool.indexed.description?.slice(0, chars) ?? "" },
      };

export interface ShortTexts {
  tools: Prepared[];
  /** Positions of the servers whose descriptions are cut. */
  cut: Set<number>;
}

/** Cuts the descriptions of the servers that have the most text. `limitBytes`: for the text of all tools. */
export function withShortTexts(
  tools: Prepared[],
  servers: number,
  limitBytes: number = LIMITS.snapshotTextBytes,
): ShortTexts {
  const sizes = sizesOf(tools, servers, textBytes);
  const share = fairShare(sizes, limitBytes);
  const chars = new Map<number, number>();
  for (const [server, size] of sizes.entries()) {
    if (size <= share) continue;
    const own = tools.filter(({ stored }) => stored.server === server);
    const fits = (length: number): boolean =>
      sum(own.map((tool) => textBytes(withDescription(tool, length)))) <= share;
    chars.set(server, LENGTHS.find(fits) ?? LEAST_CHARS);
  }
  if (chars.size === 0) return { tools, cut: new Set() };
  return {
    tools: tools.map((tool) =>
      withDescription(tool, chars.get(tool.stored.server) ?? Number.MAX_SAFE_INTEGER),
    ),
    cut: new Set(chars.keys()),
  };
}

/** Rough bytes of one tool in the index. */
const INDEX_BYTES = 500;

/** Rough bytes of one tool in a snapshot. */
export const bytesOf = (tool: Prepared): number =>
  INDEX_BYTES + textBytes(tool) + tool.stored.schema.length + (tool.stored.outputSchema?.length ?? 0);

/** Servers that have more than a fair share of half the limit. The other half is for the index. */
function largeServers(tools: readonly Prepared[], servers: number, limitBytes: number): Set<number> {
  const sizes = sizesOf(tools, servers, bytesOf);
  const share = fairShare(sizes, limitBytes / 2);
  return new Set([...sizes.keys()].filter((server) => (sizes[server] ?? 0) > share));
}

function withoutSchema({ stored, indexed }: Prepared): Prepared {
  const { outputSchema: _output, ...rest } = stored;
  const { rootKeys, schema, words } = NO_SCHEMA;
  return {
    stored: { ...rest, rootKeys, schema, description: `${stored.description}\n${words}` },
    indexed: { ...indexed, inputSchema: undefined },
  };
}

function withoutOutputSchema({ stored, indexed }: Prepared): Prepared {
  const { outputSchema: _output, ...rest } = stored;
  return { stored: rest, indexed };
}

export interface FewerSchemas {
  tools: Prepared[];
  /** Server -> number of its tools without an input schema. */
  without: Map<number, number>;
  /** True if no more schemas can be left out. */
  isLeast: boolean;
}

/** Leaves out the longest schemas of the largest servers until `savedBytes` are saved. Output schemas go first. */
export function withFewerSchemas(
  tools: readonly Prepared[],
  servers: number,
  { limitBytes, savedBytes }: { limitBytes: number; savedBytes: number },
): FewerSchemas {
  const large = largeServers(tools, servers, limitBytes);
  const kept = [...tools];
  const without = new Map<number, number>();
  let saved = 0;
  const leaveOut = (sizeOf: (tool: Prepared) => number, reduce: (tool: Prepared) => Prepared): void => {
    const order = [...kept.keys()]
      .filter((at) => large.has(kept[at]?.stored.server ?? -1))
      .map((at) => ({ at, bytes: sizeOf(kept[at] as Prepared) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes || b.at - a.at);
    for (const { at, bytes } of order) {
      if (saved >= savedBytes) return;
      kept[at] = reduce(kept[at] as Prepared);
      saved += bytes;
    }
  };
  leaveOut(({ stored }) => stored.outputSchema?.length ?? 0, withoutOutputSchema);
  leaveOut(
    ({ stored }) => Math.max(0, stored.schema.length - NO_SCHEMA.schema.length - NO_SCHEMA.words.length),
    (tool) => {
      const { server } = tool.stored;
      without.set(server, (without.get(server) ?? 0) + 1);
      return withoutSchema(tool);
    },
  );
  return { tools: kept, without, isLeast: saved < savedBytes };
}

/** The smallest n for which fits(n) holds. Requires fits(count), and that fits(n) implies fits(n + 1). */
function fewestThatFit(count: number, fits: (leftOut: number) => boolean): number {
  let [least, most] = [0, count];
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (fits(middle)) most = middle;
    else least = middle + 1;
  }
  return least;
}

export interface FewerServers {
  kept: Prepared[];
  /** Servers without their tools, in the order of the configuration. */
  without: number[];
}

/** Leaves out all tools of as few servers as possible: the largest first, of equally large ones the last one. */
export function withFewerServers(
  tools: readonly Prepared[],
  { sizeOf, fits }: { sizeOf: (tool: Prepared) => number; fits: (kept: readonly Prepared[]) => boolean },
): FewerServers {
  const servers = tools.reduce((most, { stored }) => Math.max(most, stored.server + 1), 0);
  const sizes = sizesOf(tools, servers, sizeOf);
  const order = [...sizes.keys()]
    .filter((server) => (sizes[server] ?? 0) > 0)
    .sort((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0) || b - a);
  const keptWithout = (count: number): Prepared[] => {
    const gone = new Set(order.slice(0, count));
    return tools.filter(({ stored }) => !gone.has(stored.server));
  };
  const count = fewestThatFit(order.length, (leftOut) => fits(keptWithout(leftOut)));
  return { kept: keptWithout(count), without: order.slice(0, count).sort((a, b) => a - b) };
}
