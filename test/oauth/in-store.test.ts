/** Owns: sign-ins in the system's credential store with a certified authorization server; the store is a stand-in. */
import { expect, test } from "vitest";
import { standInStore } from "../support/secret-store.ts";
import { renewTogether } from "./in-store.ts";

test("two processes renew rotating tokens in the store -> none is used twice, one text is left, nothing on the disk", {
  tags: "thorough",
}, async () => {
  const store = await standInStore();
  await renewTogether(store.env);
  expect((await store.texts()).length).toBe(1);
});
