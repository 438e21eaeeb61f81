/** Owns: the files of further certificate authorities, as they are read at a connect. */
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { resolveTarget } from "../../../../../../workers/connection/config/values/values.ts";
import { definition, PROJECT_FILE, put, temporaryFolder, USER } from "../support.ts";

const PEM = (
  await readFile(join(import.meta.dirname, "../../../../../fixtures/http/localhost.pem"), "utf8")
).trim();
const BROKEN = "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----";

interface Where {
  home: string;
  cwd: string;
}

async function folders(): Promise<Where> {
  const folder = await temporaryFolder();
  const [home, cwd] = [join(folder, "home"), join(folder, "app")];
  await Promise.all([mkdir(home), mkdir(cwd)]);
  return { home, cwd };
}

function caOf(
  caFile: string | undefined,
  where: Where,
  over: { settings?: string; source?: typeof USER } = {},
) {
  const { settings, source = USER } = over;
  const server = definition("docs", { url: "https://x.test/mcp", ...(caFile && { caFile }) }, source);
  return resolveTarget(server, {
    ...where,
    env: { NAME: "secret-name" },
    caFile: settings,
    signal: new AbortController().signal,
    onSpawn: () => undefined,
    onExit: () => undefined,
  }).then((target) => (target.kind === "http" ? target.ca : undefined));
}

describe("caFile", () => {
  test("none -> nothing is read", async () => {
    expect(await caOf(undefined, await folders(), { settings: "" })).toBeUndefined();
  });

  test("in the home folder, with a variable, a BOM and other text -> its certificates alone", async () => {
    const where = await folders();
    await put(join(where.home, "secret-name.pem"), `\uFEFF# ours\n${PEM}\nkey: x\n${PEM}\n`);
    expect(await caOf("~/${NAME}.pem", where)).toEqual([PEM, PEM]);
  });

  test("of the server and of the settings -> both, each renewed file at the next connect", async () => {
    const where = await folders();
    const [own, all] = [join(where.home, "own.pem"), join(where.home, "all.pem")];
    await Promise.all([put(own, PEM), put(all, `${PEM}\n${PEM}`)]);
    expect(await caOf(own, where, { settings: all })).toHaveLength(3);
    await put(own, `${PEM}\n${PEM}`);
    expect(await caOf(own, where, { settings: all })).toHaveLength(4);
  });

  test("a link to a file -> followed", async () => {
    const where = await folders();
    await put(join(where.home, "a.pem"), PEM);
    await symlink("a.pem", join(where.home, "b.pem"));
    expect(await caOf("~/b.pem", where)).toEqual([PEM]);
  });

  test("a relative path -> the project's own server reads it in the project; the user's server refuses it", async () => {
    const where = await folders();
    await put(join(where.cwd, "ca.pem"), PEM);
    expect(await caOf("./ca.pem", where, { source: PROJECT_FILE })).toEqual([PEM]);
    const message = "docs: caFile is not an absolute path.";
    await expect(caOf("./ca.pem", where)).rejects.toMatchObject({ code: "bad_config", message });
    await expect(caOf(undefined, where, { settings: "ca.pem", source: PROJECT_FILE })).rejects.toMatchObject({
      message: "docs: settings.caFile is not an absolute path.",
    });
  });

  test.each<[string, string | Buffer | undefined, string]>([
    ["a missing file", undefined, "there is no such file"],
    ["an empty file", "", "it holds no certificate in PEM form"],
    [
      "a private key",
      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
      "it holds no certificate in PEM form",
    ],
    ["a broken certificate", `${PEM}\n${BROKEN}\n`, "its certificate 2 is broken"],
    [
      "a file without an end",
      "-----BEGIN CERTIFICATE-----\nAAAA\n".repeat(20_000),
      "it holds no certificate in PEM form",
    ],
    ["a file of more than 1 MiB", "A".repeat(1024 * 1024 + 1), "it is larger than 1 MiB"],
  ])("%s -> an error that names key and file, without content or values", async (_name, content, reason) => {
    const where = await folders();
    if (content !== undefined) await put(join(where.home, "secret-name.pem"), content);
    const [own, settings] = await Promise.all(
      [caOf("~/${NAME}.pem", where), caOf(undefined, where, { settings: "~/${NAME}.pem" })].map((work) =>
        work.then(
          () => {
            throw new Error("resolved");
          },
          (error) => error,
        ),
      ),
    );
    expect(own).toMatchObject({
      code: "bad_config",
      message: `docs: caFile ~/\${NAME}.pem cannot be used: ${reason}.`,
    });
    expect(settings.message).toBe(`docs: settings.caFile ~/\${NAME}.pem cannot be used: ${reason}.`);
    expect(JSON.stringify([own.message, own.remedy, own.data])).not.toMatch(/secret-name|c2VjcmV0|AAAA/);
  });

  test("a folder or a device -> refused", async () => {
    const where = await folders();
    await expect(caOf("/dev/zero", where)).rejects.toMatchObject({
      message:
        "docs: caFile /dev/zero cannot be used: it is a terminal or another device, not a regular file.",
    });
    await expect(caOf("~/", where)).rejects.toMatchObject({ code: "bad_config" });
  });
});
