/**
 * Owns: a registry for npm on loopback with one package, so that an installation needs no network.
 * Must not: serve anything else.
 * Called by: the tests of an installation, and the hostile rows about npx.
 */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Registry {
  /** Ends with a slash. */
  url: string;
  close(): Promise<void>;
}

export interface Published {
  /** The package's package.json. */
  manifest: { name: string; version: string };
  /** The bytes of its `.tgz`. */
  tarball: Uint8Array;
}

export async function startRegistry({ manifest, tarball }: Published): Promise<Registry> {
  const { name, version } = manifest;
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const server = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    if (request.url === `/${name}.tgz`) response.writeHead(200).end(tarball);
    else if (request.url?.startsWith(`/${name}`)) {
      const packed = { ...manifest, dist: { tarball: `${url}/${name}.tgz`, integrity } };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ name, "dist-tags": { latest: version }, versions: { [version]: packed } }),
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
