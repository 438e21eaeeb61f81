/**
 * Owns: a package registry on loopback, so that a user's own `npx` entry works without a network. Its only package is
 * `user-server`, a healthy MCP server.
 * Must not: serve anything else.
 * Called by: rows about npx.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const PACKAGE = "user-server";

const SERVERS = join(import.meta.dirname, "..", "servers");
const MANIFEST = { name: PACKAGE, version: "1.0.0", type: "module", bin: { [PACKAGE]: "healthy.mjs" } };

async function packTarball(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "pmt-registry-"));
  try {
    const root = join(folder, "package");
    await mkdir(root);
    await writeFile(join(root, "package.json"), JSON.stringify(MANIFEST));
    await copyFile(join(SERVERS, "lib.mjs"), join(root, "lib.mjs"));
    const source = await readFile(join(SERVERS, "healthy.mjs"), "utf8");
    await writeFile(join(root, "healthy.mjs"), `#!/usr/bin/env node\n${source}`);
    await promisify(execFile)("tar", ["-czf", "package.tgz", "package"], { cwd: folder });
    return await readFile(join(folder, "package.tgz"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export interface Registry {
  url: string;
  close(): Promise<void>;
}

export async function startRegistry(): Promise<Registry> {
  const tarball = await packTarball();
  const server = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    if (request.url === `/${PACKAGE}.tgz`) response.writeHead(200).end(tarball);
    else if (request.url?.startsWith(`/${PACKAGE}`)) {
      const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
      const version = { ...MANIFEST, dist: { tarball: `${url}/${PACKAGE}.tgz`, integrity } };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ name: PACKAGE, "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } }),
      );
    } else response.writeHead(404).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
