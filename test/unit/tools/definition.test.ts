import { describe, expect, it, test } from "vitest";
import type { CatalogTool } from "../../../src/catalog/catalog.ts";
import type { PiToolContext, ToolResult } from "../../../src/pi/api.ts";
import { decode, encode } from "../../../src/shared/protocol/calls.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import {
  type CallTool,
  createMcpTool,
  lazyInputSchema,
  lazyOutputSchema,
  type ToolCall,
} from "../../../src/tools/definition.ts";
import { makeTool } from "../make-catalog.ts";

const READ_SCHEMA = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const TOOL = makeTool(
  {
    tool: "read-file",
    description: "Reads a file.",
    schema: READ_SCHEMA,
    annotations: { title: "Read", readOnlyHint: true, destructiveHint: false },
  },
  { name: "my-fs", description: "Files." },
);
const EXPECTED = "Expected parameters: my_fs__read-file(path: string)";
const CONTEXT = {} as PiToolContext;
const FAILED = /my_fs__read-file failed: [\s\S]*boom/;

const run = (call: CallTool, args: Record<string, unknown> = { path: "/x" }): Promise<ToolResult> =>
  createMcpTool(TOOL, call).execute("call-1", args, undefined, undefined, CONTEXT);

describe("createMcpTool: definition", () => {
  const tool = createMcpTool(TOOL, () => Promise.reject(new Error("not called")));

  test("a tool -> its name, words, exposure, schema, and no words of its annotations but the hints", () => {
    expect(structuredClone(tool.parameters)).toEqual(READ_SCHEMA);
    expect(tool.annotations).toEqual({ readOnlyHint: true, destructiveHint: false });
    expect(tool).toMatchObject({
      name: "my_fs__read-file",
      label: "my-fs · read-file",
      description: "Reads a file.",
      exposure: "deferred",
      namespace: { name: "my_fs", aliases: ["my-fs"], description: "Files." },
    });
  });

  it.each([
    ["none", undefined],
    ["a title only", { title: "T" }],
    ["a hint that is no boolean", { readOnlyHint: "yes" as unknown as boolean }],
  ])("annotations: %s -> no key", (_name, annotations) => {
    const made = makeTool({ tool: "t", ...(annotations ? { annotations } : {}) });
    expect("annotations" in createMcpTool(made, () => Promise.reject())).toBe(false);
  });

  test("a server without a description -> no description in the namespace", () => {
    expect(createMcpTool(makeTool({ tool: "t" }), () => Promise.reject()).namespace).toEqual({
      name: "srv",
      aliases: ["srv"],
    });
  });
});

describe("createMcpTool: execute", () => {
  test("a call -> the server's own names, the arguments, the id and the signal are passed on", async () => {
    const calls: ToolCall[] = [];
    const { signal } = new AbortController();
    await createMcpTool(TOOL, async (call) => {
      calls.push(call);
      return { content: [], isError: false, durationMs: 1 };
    }).execute("call-9", { path: "/x" }, signal, undefined, CONTEXT);
    expect(calls).toMatchObject([
      { callId: "call-9", server: "my-fs", tool: "read-file", args: { path: "/x" }, signal },
    ]);
  });

  test("a result -> its content unchanged, with server, tool and duration", async () => {
    const content = [{ type: "text" as const, text: "hello" }];
    expect(await run(async () => ({ content, isError: false, durationMs: 12.6 }))).toEqual({
      content,
      details: { server: "my-fs", tool: "read-file", durationMs: 13 },
    });
  });

  test("isError -> an error result that ends with the expected parameters", async () => {
    const content = [{ type: "text" as const, text: "no such file" }];
    expect(await run(async () => ({ content, isError: true, durationMs: 1 }))).toEqual({
      content: [...content, { type: "text", text: EXPECTED }],
      details: { server: "my-fs", tool: "read-file", durationMs: 1 },
      isError: true,
    });
  });

  test.each([
    ["Access denied - path outside allowed directories", false],
    ["401 Unauthorized", false],
    ["EPERM: operation not permitted", false],
    ["The request timed out.", false],
    ["Cancelled by the user", false],
    ["Invalid arguments: timeout must be a number", true],
    ["no such file", true],
  ])("isError, %j -> the parameters only where others may help: %s", async (text, isTold) => {
    const content = [{ type: "text" as const, text }];
    const result = await run(async () => ({ content, isError: true, durationMs: 1 }));
    expect(result.content).toEqual([...content, ...(isTold ? [{ type: "text", text: EXPECTED }] : [])]);
  });

  test.each([
    ["s refused t: answered status 404.", { status: 404 }, false],
    ["s refused t: answered status 400.", { status: 400 }, true],
    ["s rejected t: access denied", {}, false],
    ["s needs the user to open a page", { rpcCode: -32042 }, false],
    ["s rejected t: not there", { rpcCode: -32602 }, true],
    ["s rejected t: not there", { rpcCode: -32602, begun: true }, false],
    ["s: it answered status 400.", { status: 400, begun: true }, false],
  ])("call_rejected, %j %j -> the parameters: %s", async (message, data, isTold) => {
    const error = new ThreadsError("call_rejected", message, { data });
    const { content } = await run(() => Promise.reject(error));
    expect(JSON.stringify(content).includes(EXPECTED)).toBe(isTold);
  });

  test.each([
    ["call_timeout", ""],
    ["call_rejected", `\n${EXPECTED}`],
  ] as const)(
    "ThreadsError %s -> message and remedy, parameters if they may be at fault; code and data in the details",
    async (code, behind) => {
      const error = new ThreadsError(code, "my-fs is late.", {
        remedy: "Wait.",
        data: { timeoutMs: 5 },
      });
      expect(await run(() => Promise.reject(error))).toEqual({
        content: [{ type: "text", text: `my-fs is late. Wait.${behind}` }],
        details: { server: "my-fs", tool: "read-file", code, data: { timeoutMs: 5 } },
        isError: true,
      });
    },
  );

  const REJECTED = new ThreadsError("call_rejected", "my-fs rejected read-file: no", {
    data: { server: "my-fs", rpcCode: -32050, rpcData: { why: 1 } },
  });
  it.each<[string, string, ThreadsError, unknown]>([
    [
      "a script, an error that the server answered",
      "call-1/2",
      REJECTED,
      {
        content: [{ type: "text", text: "my-fs rejected read-file: no" }],
        isError: true,
        error: { code: -32050, message: "my-fs rejected read-file: no", data: { why: 1 } },
      },
    ],
    ["a script, no answer", "call-1/2", new ThreadsError("call_timeout", "Late."), undefined],
    ["the model, an error that the server answered", "call-1", REJECTED, undefined],
  ])("%s -> what a script can read of it", async (_name, callId, error, expected) => {
    const tool = createMcpTool(TOOL, () => Promise.reject(error));
    const result = await tool.execute(callId, {}, undefined, undefined, CONTEXT);
    expect(result.isError).toBe(true);
    expect(result.structuredContent).toEqual(expected);
  });

  test("a script, a result that is too large -> the call rejects with the reason and without a partial result", async () => {
    const scriptProblem = "my-fs/read-file answered 9 MB of JSON. All of it is in /tmp/x.json.";
    const content = [{ type: "text" as const, text: "the part that a model would get" }];
    const tool = createMcpTool(TOOL, async () => ({ content, isError: false, durationMs: 1, scriptProblem }));
    const result = await tool.execute("call-1/2", {}, undefined, undefined, CONTEXT);
    expect(result).toEqual({
      content: [{ type: "text", text: scriptProblem }],
      details: { server: "my-fs", tool: "read-file", durationMs: 1, code: "message_too_large" },
      isError: true,
    });
  });

  it.each<[string, () => ReturnType<CallTool>, string, RegExp]>([
    ["an Error", () => Promise.reject(new Error("boom")), "internal", FAILED],
    ["a string", () => Promise.reject("boom"), "internal", FAILED],
    ["an object", () => Promise.reject({ toString: (): string => "boom" }), "internal", FAILED],
    // Other parameters would not help.
    [
      "a user's no",
      () => Promise.reject(new ThreadsError("not_approved", "The user said no.")),
      "not_approved",
      /^The user said no\.$/,
    ],
    [
      "an error of a call that throws synchronously",
      () => {
        throw new ThreadsError("runtime_stopped", "Stopped.");
      },
      "runtime_stopped",
      /^Stopped\./,
    ],
  ])("%s thrown -> an error result with its code, nothing thrown", async (_name, call, code, text) => {
    expect(await run(call)).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringMatching(text) }],
      details: { code },
    });
  });

  test("null for the arguments, which Pi may pass for none -> an empty object", async () => {
    let args: unknown;
    const call: CallTool = async (asked) => {
      args = asked.args;
      return { content: [], isError: false, durationMs: 0 };
    };
    await run(call, null as unknown as Record<string, unknown>);
    expect(args).toEqual({});
  });

  test("progress -> a partial result with its text", async () => {
    const updates: ToolResult[] = [];
    await createMcpTool(TOOL, async ({ onProgress }) => {
      onProgress("half");
      return { content: [], isError: false, durationMs: 0 };
    }).execute("c", {}, undefined, (update) => updates.push(update), CONTEXT);
    expect(updates).toMatchObject([{ content: [{ type: "text", text: "half" }] }]);
  });
});

const PLAIN = {
  type: "object",
  properties: { path: { type: "string" }, n: { type: "integer", minimum: 1 } },
  required: ["path"],
  additionalProperties: false,
};

describe("lazyInputSchema", () => {
  const lazy = (): Record<string, unknown> => lazyInputSchema(makeTool({ tool: "t", schema: PLAIN }));

  test("JSON.stringify -> the bytes of the plain schema, in its order", () => {
    expect(JSON.stringify(lazy())).toBe(JSON.stringify(PLAIN));
  });

  test("spread -> an ordinary copy", () => {
    const copy = { ...lazy() };
    expect(copy).toEqual(PLAIN);
    expect(Object.getOwnPropertyDescriptor(copy, "type")?.value).toBe("object");
  });

  test("structuredClone -> the plain schema", () => {
    expect(structuredClone(lazy())).toEqual(PLAIN);
  });

  test("Object.keys and `in` -> the keys of the schema", () => {
    expect(Object.keys(lazy())).toEqual(Object.keys(PLAIN));
    expect("required" in lazy()).toBe(true);
    expect("title" in lazy()).toBe(false);
  });

  test("one key read twice -> the same object", () => {
    const schema = lazy();
    expect(schema.properties).toBe(schema.properties);
  });

  test("broken bytes -> no throw before a value is read", () => {
    const tool = makeTool({ tool: "t", schema: PLAIN });
    const schemas = {
      ...tool.schemas,
      decoded: () => decode(Uint8Array.of(0x81)) as Record<string, unknown>,
    };
    const schema = lazyInputSchema({ ...tool, schemas });
    expect(Object.keys(schema)).toEqual(Object.keys(PLAIN));
    expect(schema.type).toBe("object");
    expect(() => schema.properties).toThrow();
  });
});

const SOME_TOOL = makeTool({ tool: "t" });
const withOutput = (bytes: Uint8Array): CatalogTool => ({
  ...SOME_TOOL,
  schemas: { ...SOME_TOOL.schemas, output: () => bytes },
});
const COUNT = { type: "object", properties: { count: { type: "number" } } };

test("a tool with an output schema -> a CallToolResult that holds it", () => {
  const schema = lazyOutputSchema(withOutput(encode(COUNT)));
  expect(structuredClone(schema)).toMatchObject({
    type: "object",
    properties: { content: { type: "array" }, structuredContent: COUNT, isError: { type: "boolean" } },
    required: ["content"],
    additionalProperties: true,
  });
  expect(JSON.stringify(schema)).toContain('"count"');
});

test("a tool without an output schema -> any structured content, one object for all such tools", () => {
  expect(lazyOutputSchema(SOME_TOOL)).toMatchObject({ properties: { structuredContent: {} } });
  expect(lazyOutputSchema(SOME_TOOL)).toBe(lazyOutputSchema(makeTool({ tool: "u" })));
});

test("bytes that nobody reads -> not decoded", () => {
  expect(() => lazyOutputSchema(withOutput(new Uint8Array([0xc1])))).not.toThrow();
});
