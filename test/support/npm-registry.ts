/**
 * Owns: a registry for npm on loopback with a few packages, so that an installation needs no network.
 * Must not: serve anything else.
 * Called by: the tests of an installation and of npx, and the hostile rows about npx.
 */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What happens to a request: it waits so many milliseconds, never gets an answer, or gets this status. */
export type Behaviour = { delayMs: number } | { status: number } | "silent";

export interface Registry {
  /** Ends with a slash. */
  url: string;
  /** Replaces the usual answer where it answers one. `path`: for example `/semver`. */
  behave(behaviour: ((path: string) => Behaviour | undefined) | undefined): void;
  close(): Promise<void>;
}

export interface Published {
  /** The package's package.json. */
  manifest: { name: string; version: string };
  /** The bytes of its `.tgz`. */
  tarball: Uint8Array;
}

const tarballPath = ({ name, version }: Published["manifest"]): string => `/${name}/-/${version}.tgz`;

/** What npm reads of a package: all its versions, the last of which is the newest. */
function document(name: string, published: readonly Published[], origin: string): unknown {
  const versions = published.map(({ manifest, tarball }) => {
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const dist = { tarball: `${origin}${tarballPath(manifest)}`, integrity };
    return [manifest.version, { ...manifest, dist }] as const;
  });
  return { name, "dist-tags": { latest: versions.at(-1)?.[0] }, versions: Object.fromEntries(versions) };
}

/** Serves these packages. Of several versions of one package, the last is the newest. */
export async function startRegistry(...published: readonly Published[]): Promise<Registry> {
  let behaviour: ((path: string) => Behaviour | undefined) | undefined;
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(request.url ?? "");
    const odd = behaviour?.(path);
    if (odd === "silent") return;
    if (odd && "delayMs" in odd) await sleep(odd.delayMs);
    if (odd && "status" in odd) {
      response.writeHead(odd.status, { "content-type": "application/json" }).end("{}");
      return;
    }
    const packed = published.find(({ manifest }) => path === tarballPath(manifest));
    const versions = published.filter(({ manifest }) => path === `/${manifest.name}`);
    const [first] = versions;
    if (packed) response.writeHead(200).end(packed.tarball);
    else if (first) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(document(first.manifest.name, versions, `http://${request.headers.host}`)));
    } else response.writeHead(404).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    behave: (odd) => {
      behaviour = odd;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
