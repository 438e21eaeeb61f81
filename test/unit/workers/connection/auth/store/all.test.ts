/** Owns: the list of all stored sign-ins, and the move of one of them. */
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listSignIns, moveSignIn } from "../../../../../../workers/connection/auth/store/all.ts";
import { placeOf } from "../../../../../../workers/connection/auth/store/file.ts";
import { standInStore } from "../../../../../support/secret-store.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import { never, openStore, put, SYSTEM_OF_TEST, signedIn, write } from "./support.ts";

const OTHER = { server: "a\u001b[31mb", url: "https://user:pw@other.example:8443/s/secret-key?token=secret" };

async function stored() {
  const store = await standInStore();
  const system = { ...SYSTEM_OF_TEST.system, env: store.env, platform: "linux" as const };
  const at = await openStore({ tokenStore: () => "system", system });
  await write(at.store, signedIn());
  const other = await openStore({ ...OTHER, agentDir: at.agentDir });
  await write(other.store, signedIn(OTHER));
  const options = {
    ...at,
    system,
    tokenStore: () => "file" as const,
    onNote: () => undefined,
    warn: () => undefined,
  };
  return { ...at, other, options, secrets: store };
}

describe("listSignIns", () => {
  test("nobody has signed in -> none", async () => {
    expect(await listSignIns(await tempFolder())).toEqual([]);
  });

  test("sign-ins in both places -> each with its place, and of its address only the host", async () => {
    const { agentDir } = await stored();
    const all = await listSignIns(agentDir);
    expect(all.map(({ id: _, ...one }) => one)).toEqual([
      { server: OTHER.server, host: "other.example:8443", place: "file" },
      { server: "linear", host: "mcp.linear.example", place: "system" },
    ]);
    expect(JSON.stringify(all)).not.toContain("secret");
  });

  test("what is no sign-in of this user at its own place -> left out", async () => {
    const { agentDir, place } = await stored();
    const root = join(agentDir, "mcp-oauth");
    const before = await listSignIns(agentDir);
    await put(join(root, "linear", "tokens.json"), { access_token: "a" });
    await put(join(root, "linear", "0123456789abcdef.json"), signedIn());
    await put(join(root, "x", "0123456789abcdef.json"), "{");
    await put(join(root, "x", "0123456789abcde0.json"), { server: 1, url: 2 });
    await mkdir(join(root, "y", "0123456789abcdef.json"), { recursive: true });
    await symlink(place.folder, join(root, "z"));
    const linked = placeOf({ agentDir, server: "w", url: "https://w.example" });
    await put(join(agentDir, "elsewhere.json"), signedIn({ server: "w", url: "https://w.example" }));
    await mkdir(linked.folder);
    await symlink(join(agentDir, "elsewhere.json"), linked.file);
    await put(join(root, "a file"), "x");
    expect(await listSignIns(agentDir)).toEqual(before);
  });
});

describe("moveSignIn", () => {
  test("there and back, again, and one that nobody has", async () => {
    const { agentDir, options, other, secrets } = await stored();
    const { id = "" } = (await listSignIns(agentDir)).find(({ place }) => place === "file") ?? {};
    expect(await moveSignIn({ id, to: "system" }, options, never())).toEqual({ how: "moved", keeps: false });
    expect((await secrets.texts()).length).toBe(2);
    expect(await moveSignIn({ id, to: "system" }, options, never())).toEqual({ how: "there" });
    expect(await moveSignIn({ id, to: "file" }, options, never())).toEqual({ how: "moved", keeps: false });
    expect((await other.store.read()).record).toEqual(signedIn(OTHER));
    for (const unknown of ["", "../mcp.json", "linear/tokens.json", `${id}x`])
      expect(await moveSignIn({ id: unknown, to: "system" }, options, never())).toEqual({ how: "none" });
  });

  test("to a file while the setting says system -> refused, with what to do", async () => {
    const { agentDir, options, secrets } = await stored();
    const [, { id } = { id: "" }] = await listSignIns(agentDir);
    const moving = moveSignIn({ id, to: "file" }, { ...options, tokenStore: () => "system" }, never());
    await expect(moving).rejects.toMatchObject({
      code: "bad_config",
      remedy: "Take tokenStore out of the settings of your mcp.json first.",
    });
    expect((await secrets.texts()).length).toBe(1);
  });

  test("a store that is locked -> the sentence, and the file as before", async () => {
    const { agentDir, options, other, secrets } = await stored();
    await secrets.misbehave("locked");
    const [{ id } = { id: "" }] = await listSignIns(agentDir);
    await expect(moveSignIn({ id, to: "system" }, options, never())).rejects.toMatchObject({
      code: "connect_failed",
      message: expect.stringContaining("the system's credential store cannot be used: it is locked."),
    });
    expect((await other.store.read()).record).toEqual(signedIn(OTHER));
  });
});
