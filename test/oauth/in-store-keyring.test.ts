/** Owns: the same in a real gnome-keyring. */
import { test } from "vitest";
import { startKeyring } from "../support/secret-store.ts";
import { renewTogether } from "./in-store.ts";

test("two processes renew rotating tokens in gnome-keyring -> none is used twice, nothing on the disk", async () => {
  const { env } = await startKeyring();
  await renewTogether(env);
});
