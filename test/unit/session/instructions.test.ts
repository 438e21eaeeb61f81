/** Owns: when a result of a call holds its server's instructions within a session. */
import { expect, test } from "vitest";
import { openSession } from "./support.ts";

const OWN = { name: "own", instructions: "Work gently.", tools: [{ tool: "work" }] };
const result = { content: [{ type: "text" as const, text: "done" }], isError: false, durationMs: 3 };

/** `branch`: what the model still reads of it. `taken`: what a compaction has taken away. */
const open = async (branch: unknown[] = [], taken: unknown[] = []) => {
  const at = await openSession({ snapshot: [OWN], answers: { callTool: () => result } });
  const ctx = {
    sessionManager: { getBranch: () => [...taken, ...branch], buildContextEntries: () => branch },
  };
  const call = async (id: string) => {
    const made = await at.pi.tools.get("own__work")?.execute(id, {}, undefined, undefined, ctx as never);
    return made?.content.map((content) => (content.type === "text" ? content.text.split("\n").at(-1) : ""));
  };
  return { ...at, call };
};

test("the first result of a server -> its instructions behind the result; later results have none", async () => {
  const { call } = await open();
  expect(await call("1")).toEqual(["done", "> Work gently."]);
  expect(await call("2")).toEqual(["done"]);
});

test("a call of a script comes first -> the script reads the plain result, and the model's own call has the words", async () => {
  const { call } = await open();
  expect(await call("1/1")).toEqual(["done"]);
  expect(await call("2")).toEqual(["done", "> Work gently."]);
});

test("a resumed transcript holds the words -> not told again, until the user moves to a branch without them", async () => {
  const branch: unknown[] = [
    { type: "message", message: { role: "toolResult", details: { instructed: ["own"] } } },
  ];
  const { call, session } = await open(branch);
  expect(await call("1")).toEqual(["done"]);
  branch.length = 0;
  session.branchChanged();
  expect(await call("2")).toEqual(["done", "> Work gently."]);
});

test("a compaction takes the words away -> told again, and one that keeps them -> not", async () => {
  const told = { type: "message", message: { role: "toolResult", details: { instructed: ["own"] } } };
  const branch: unknown[] = [];
  const taken: unknown[] = [];
  const { call, session } = await open(branch, taken);
  expect(await call("1")).toEqual(["done", "> Work gently."]);
  branch.push(told);
  session.branchChanged();
  expect(await call("2")).toEqual(["done"]);
  taken.push(...branch.splice(0));
  session.branchChanged();
  expect(await call("3")).toEqual(["done", "> Work gently."]);
  expect(await call("4")).toEqual(["done"]);
});

test("a server with instructions -> no declared tool holds them in its description", async () => {
  const { pi } = await open();
  for (const { description } of pi.tools.values()) expect(description).not.toContain("gently");
});
