/** Owns: how long the values are kept that a server suggests for the argument of a prompt. The server is a fake. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createPromptRequests } from "../../../../../workers/connection/session/calls.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A server that suggests the branches which there are now. */
function open(branches: string[]) {
  const asked: string[] = [];
  const complete = async ({ value }: { value: string }): Promise<string[]> => {
    asked.push(value);
    return [...branches];
  };
  const git = {
    name: "git",
    ifConnected: async (task: (connection: object) => unknown) => task({ complete }),
  };
  const parts = { supervisor: { servers: [git] }, started: Promise.resolve() };
  const requests = createPromptRequests(parts as unknown as Parameters<typeof createPromptRequests>[0]);
  const suggest = (value: string): Promise<string[]> =>
    requests.completePrompt(
      { server: "git", prompt: "review", argument: "branch", value, context: {} },
      new AbortController().signal,
    );
  return { asked, suggest };
}

test("a person types on and goes back -> the server is asked once; a while later it is asked again, and its new values are there", async () => {
  const branches = ["main"];
  const { asked, suggest } = open(branches);
  expect([await suggest(""), await suggest("m"), await suggest("")]).toEqual([["main"], ["main"], ["main"]]);
  expect(asked).toEqual(["", "m"]);
  branches.push("made-later");
  vi.advanceTimersByTime(60_000);
  expect(await suggest("")).toEqual(["main", "made-later"]);
});

test("a server that has no values yet -> it is asked each time", async () => {
  const branches: string[] = [];
  const { suggest } = open(branches);
  expect(await suggest("")).toEqual([]);
  branches.push("main");
  expect(await suggest("")).toEqual(["main"]);
});
