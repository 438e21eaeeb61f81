/** Owns: how often one scope is asked for. */
import { expect, test } from "vitest";
import { createStepUps } from "../../../../../../workers/connection/auth/tokens/tokens.ts";

test("a scope for which the user has signed in twice -> not a third time, in any order of its words", () => {
  const stepUps = createStepUps();
  expect(stepUps.isAllowed("a b")).toBe(true);
  stepUps.count("a b");
  expect(stepUps.isAllowed("b a")).toBe(true);
  stepUps.count("b  a a");
  expect(stepUps.isAllowed("a b")).toBe(false);
  expect(stepUps.isAllowed("a b c")).toBe(true);
});

test("a server that names no scope -> counted, too", () => {
  const stepUps = createStepUps();
  stepUps.count(undefined);
  stepUps.count("");
  expect(stepUps.isAllowed(undefined)).toBe(false);
});

test("a server that asks for 1,000 scopes, one after the other -> the newest 100 are remembered", () => {
  const stepUps = createStepUps();
  for (let i = 0; i < 1_000; i++) {
    stepUps.count(`scope-${i}`);
    stepUps.count(`scope-${i}`);
  }
  expect(stepUps.isAllowed("scope-999")).toBe(false);
  expect(stepUps.isAllowed("scope-900")).toBe(false);
  expect(stepUps.isAllowed("scope-899")).toBe(true);
});
