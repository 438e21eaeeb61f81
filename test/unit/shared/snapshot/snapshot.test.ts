/** The snapshot format: a written snapshot comes back, and any other bytes are undefined. */

import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { describe, expect, it, test } from "vitest";
import { decode } from "../../../../src/shared/protocol/calls.ts";
import {
  type OpenSnapshot,
  type RootKey,
  rootKeysOf,
  type Snapshot,
  type SnapshotTool,
  type StoredTool,
} from "../../../../src/shared/snapshot/contract.ts";
import {
  decodeSnapshot,
  encodeSnapshot,
  HEADER_BYTES,
  SNAPSHOT_VERSION,
  SOURCE_BYTES,
  snapshotChecksum,
  snapshotSource,
} from "../../../../src/shared/snapshot/snapshot.ts";
import { makeSnapshot } from "../../make-catalog.ts";
import { createRandom } from "../../random.ts";

const SNAPSHOT = makeSnapshot([
  {
    name: "fs",
    description: "Files.",
    tools: [
      { tool: "read_file", schema: { type: "object", properties: { path: { type: "string" } } } },
      { tool: "write_file", annotations: { destructiveHint: true } },
      { tool: "get_note", annotations: { readOnlyHint: true }, kind: "resource" },
      { tool: "skill_pdf", direct: true, kind: "skill" },
    ],
  },
  { name: "empty", project: true, tools: [] },
]);
const BYTES = encodeSnapshot(SNAPSHOT, crc32);

/** The whole content of a snapshot as values; a snapshot itself reads schemas by functions. */
function read(bytes: Uint8Array): unknown {
  const snapshot = decodeSnapshot(bytes, inflateRawSync, crc32);
  if (!snapshot) return undefined;
  const { settings, description, servers, index } = snapshot;
  const tools = toolsOf(snapshot).map(({ schemas, at, ...tool }) => ({
    ...tool,
    found: snapshot.find(tool.name),
    schema: [schemas.rootKeys(at), decode(schemas.input(at)), schemas.output(at)],
  }));
  return { settings, description, servers, index, tools };
}

function toolsOf(snapshot: OpenSnapshot | undefined): StoredTool[] {
  return Array.from({ length: snapshot?.count ?? 0 }, (_, at) => (snapshot as OpenSnapshot).tool(at));
}

const changed = (offset: number, value: number): Uint8Array => {
  const copy = BYTES.slice();
  copy[offset] = value;
  return copy;
};

test("a deflated snapshot -> smaller, the same tools, read in any order", () => {
  const tools = Array.from({ length: 300 }, (_, at) => ({
    tool: `tool_${at}`,
    description: `Tool ${at} does what tool ${at} does, ${at} times. é`,
    schema: { type: "object", properties: { [`p${at}`]: { type: "string", description: "x".repeat(at) } } },
  }));
  const made = makeSnapshot([{ name: "s", tools }]);
  const withOutput: Snapshot = {
    ...made,
    tools: made.tools.map((tool, at) => (at % 3 === 0 ? { ...tool, outputSchema: tool.schema } : tool)),
  };
  const deflate = (bytes: Uint8Array): Uint8Array => deflateRawSync(bytes);
  const [plain, deflated] = [undefined, deflate].map((by) =>
    encodeSnapshot(withOutput, crc32, undefined, by),
  );
  expect(deflated?.length).toBeLessThan((plain?.length ?? 0) / 1.5);
  expect(read(deflated as Uint8Array)).toEqual(read(plain as Uint8Array));
  const back = decodeSnapshot(deflated as Uint8Array, inflateRawSync, crc32) as OpenSnapshot;
  for (const at of [299, 0, 150, 31, 32, 127, 128, 299]) {
    expect(back.tool(at).schemas.decoded(at)).toEqual(tools[at]?.schema);
    expect(back.tool(at).description).toBe(tools[at]?.description);
    expect(back.tool(at).schemas.output(at) === undefined).toBe(at % 3 !== 0);
  }
});

describe("decodeSnapshot", () => {
  test("the bytes of encodeSnapshot -> the same snapshot", () => {
    const back = decodeSnapshot(BYTES, inflateRawSync, crc32);
    expect(back?.servers).toEqual(SNAPSHOT.servers);
    expect(toolsOf(back).map(({ schemas: _schemas, at: _at, ...tool }) => tool)).toEqual(
      SNAPSHOT.tools.map(({ schema: _schema, rootKeys: _roots, server, ...tool }) => ({
        ...tool,
        server: SNAPSHOT.servers[server],
      })),
    );
    expect(toolsOf(back).map(({ schemas, at }) => decode(schemas.input(at)))).toEqual(
      SNAPSHOT.tools.map((tool) => decode(tool.schema)),
    );
    expect(toolsOf(back).map(({ schemas, at }) => schemas.rootKeys(at))).toEqual(
      SNAPSHOT.tools.map(({ rootKeys }) => rootKeys),
    );
    expect(Buffer.compare(back?.index ?? new Uint8Array(), SNAPSHOT.index)).toBe(0);
  });

  test("thousands of tools, texts of any script, names in any order -> each tool is found and equals the written one", () => {
    const random = createRandom(7);
    const text = (most: number): string =>
      Array.from(
        { length: random.below(most) },
        () => ["a", "é", "天", "😀", "\ud83d", "\n", "\u0000"][random.below(7)],
      ).join("");
    const tools = Array.from({ length: 1_000 }, (_, at) => ({
      tool: `t${random.below(10 ** 9)}_${at}`,
      description: text(40),
      direct: at % 7 === 0,
    }));
    const made = makeSnapshot([{ name: "s", tools }]);
    const snapshot = decodeSnapshot(encodeSnapshot(made, crc32), inflateRawSync);
    expect(snapshot?.count).toBe(1_000);
    for (const at of [500, 3, 999, 0, 3]) {
      const { name, tool, description, direct } = made.tools[at] as SnapshotTool;
      expect(snapshot?.find(name)).toBe(at);
      const read = snapshot?.tool(at);
      expect(read).toMatchObject({ name, tool, description: description.toWellFormed() });
      expect(read?.direct).toBe(direct);
      expect(snapshot?.tool(at)).toBe(read);
    }
    expect(toolsOf(snapshot).map(({ description }) => description)).toEqual(
      made.tools.map(({ description }) => description.toWellFormed()),
    );
    for (const name of ["", "s__", "s__t", "zzz", "s__t1\u0000"]) expect(snapshot?.find(name)).toBe(-1);
  });

  test("a view into a larger buffer, as a file read gives -> the same snapshot", () => {
    const pool = new Uint8Array(BYTES.length + 30);
    pool.set(BYTES, 13);
    const view = pool.subarray(13, 13 + BYTES.length);
    expect(read(view)).toEqual(read(BYTES));
    expect(snapshotChecksum(view)).toBe(snapshotChecksum(BYTES));
  });

  test("cut at every length -> undefined", () => {
    for (let length = 0; length < BYTES.length; length++) {
      expect(
        decodeSnapshot(BYTES.subarray(0, length), inflateRawSync, crc32),
        `${length} bytes`,
      ).toBeUndefined();
    }
  });

  test("bytes after the end -> undefined", () => {
    expect(decodeSnapshot(Buffer.concat([BYTES, Uint8Array.of(0)]), inflateRawSync, crc32)).toBeUndefined();
  });

  it.each([
    ["another magic", changed(0, 0x51)],
    ["a later version", changed(4, SNAPSHOT_VERSION + 1)],
    ["version 2, without the servers that are only configured", changed(4, 2)],
    ["version 1, with a map a tool", changed(4, 1)],
    ["version 0", changed(4, 0)],
    ["another checksum", changed(8, (BYTES[8] ?? 0) ^ 1)],
    ["another length of the index", changed(28, (BYTES[28] ?? 0) ^ 1)],
    ["another length of the body", changed(32, (BYTES[32] ?? 0) ^ 1)],
    ["a changed body", changed(BYTES.length - 1, (BYTES.at(-1) ?? 0) ^ 1)],
    ["text", Buffer.from('{"mcpServers": {}}')],
  ])("%s -> undefined", (_name, bytes) => {
    expect(decodeSnapshot(bytes, inflateRawSync, crc32)).toBeUndefined();
  });

  test("a whole body that is not MessagePack -> undefined", () => {
    const body = Uint8Array.of(0x81, 0xa1);
    const bytes = new Uint8Array([...BYTES.subarray(0, HEADER_BYTES), ...body]);
    const view = new DataView(bytes.buffer);
    view.setUint32(28, 0, true);
    view.setUint32(32, body.length, true);
    view.setUint32(8, crc32(bytes.subarray(28)), true);
    expect(decodeSnapshot(bytes, inflateRawSync, crc32)).toBeUndefined();
  });

  test("2,000 random mutations -> undefined or equal, never a throw", () => {
    const random = createRandom(1);
    const whole = read(BYTES);
    for (let round = 0; round < 2_000; round++) {
      const mutated = BYTES.slice();
      const count = 1 + random.below(4);
      for (let i = 0; i < count; i++) mutated[random.below(mutated.length)] = random.below(256);
      const decoded = read(mutated);
      if (decoded !== undefined) expect(decoded).toEqual(whole);
    }
  });
});

describe("snapshotChecksum", () => {
  test("a snapshot, or its header -> the checksum of everything behind the source", () => {
    expect(snapshotChecksum(BYTES)).toBe(crc32(BYTES.subarray(28)));
    expect(snapshotChecksum(BYTES.subarray(0, HEADER_BYTES))).toBe(snapshotChecksum(BYTES));
  });

  test("the same content with another source -> the same checksum, its own source, the same snapshot", () => {
    const source = Uint8Array.from({ length: SOURCE_BYTES }, (_, i) => i + 1);
    const bytes = encodeSnapshot(SNAPSHOT, crc32, source);
    expect(snapshotChecksum(bytes)).toBe(snapshotChecksum(BYTES));
    expect(snapshotSource(bytes)).toEqual(source);
    expect(snapshotSource(BYTES)).toEqual(new Uint8Array(SOURCE_BYTES));
    expect(read(bytes)).toEqual(read(BYTES));
  });

  test("the same content encoded twice -> the same checksum", () => {
    expect(snapshotChecksum(encodeSnapshot(SNAPSHOT, crc32))).toBe(snapshotChecksum(BYTES));
  });

  it.each([
    ["nothing", new Uint8Array()],
    ["half a header", BYTES.subarray(0, 15)],
    ["another magic", changed(1, 0)],
    ["a later version", changed(4, SNAPSHOT_VERSION + 1)],
    ["version 2, without the servers that are only configured", changed(4, 2)],
    ["version 1, with a map a tool", changed(4, 1)],
  ])("%s -> undefined", (_name, bytes) => {
    expect(snapshotChecksum(bytes)).toBeUndefined();
  });
});

test("encodeSnapshot: an index of any length -> it starts at a multiple of 4 and is read without a copy", () => {
  for (const length of [0, 1, 5, 8]) {
    const index = Uint8Array.from({ length }, (_, at) => at + 1);
    const bytes = encodeSnapshot({ ...SNAPSHOT, index }, crc32);
    const back = decodeSnapshot(bytes, inflateRawSync, crc32);
    expect(back?.index).toEqual(index);
    expect(back?.index.buffer).toBe(bytes.buffer);
    expect((back?.index.byteOffset ?? 1) % 4).toBe(0);
  }
});

test("settings -> the same settings", () => {
  const settings = {
    search: "weighted",
    catalog: "off",
    proxyTool: true,
    autoAuth: true,
    files: ["/a"],
  } as const;
  expect(
    decodeSnapshot(encodeSnapshot({ ...SNAPSHOT, settings }, crc32), inflateRawSync, crc32)?.settings,
  ).toEqual(settings);
});

const LONG = `https://example.com/${"a".repeat(100)}`;

test.each<[string, Record<string, unknown>, RootKey[]]>([
  ["nothing", {}, []],
  [
    "values that many tools share, in the order of the schema",
    { $schema: "s", type: "object" },
    [
      ["$schema", "s"],
      ["type", "object"],
    ],
  ],
  [
    "closed",
    { type: "object", additionalProperties: false },
    [
      ["type", "object"],
      ["additionalProperties", false],
    ],
  ],
  [
    "a schema for further properties -> its key only",
    { additionalProperties: { type: "string" } },
    ["additionalProperties"],
  ],
  ["a tool's own texts -> their keys only", { title: "t", description: "d" }, ["title", "description"]],
  ["a dialect too long to be shared -> its key only", { $schema: LONG }, ["$schema"]],
  ["properties, required -> their keys only", { properties: {}, required: [] }, ["properties", "required"]],
])("%s", (_, schema, root) => {
  expect(rootKeysOf(schema)).toEqual(root);
});
