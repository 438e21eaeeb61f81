/**
 * Owns which hosts a server may make this machine ask. A public server that names an address of a private network would
 * let its operator send requests there (SSRF). The addresses are checked where the connection looks them up, since a
 * name may have another address a moment later.
 */
import type { LookupAddress } from "node:dns";
import { lookup as lookupInDns } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { SignInProblem } from "../model/model.ts";
import { addressProblem, hostOf, isPrivateIp, namesPrivateHost, shownAddress } from "./addresses.ts";

/** Finds all addresses of a host name. `hints` are those of `dns.lookup`. Rejects as `dns.lookup` does. */
export type Resolve = (host: string, hints?: number) => Promise<LookupAddress[]>;

export const resolveByDns: Resolve = (host, hints = 0) => lookupInDns(host, { all: true, hints });

export interface AddressGuard {
  /** Rejects with `SignInProblem` if nothing may be sent to the address, as far as the address itself says. */
  check(url: URL): Promise<void>;
  /** For the connection to the address: refuses a name that leads to a private network. */
  lookupFor(url: URL): LookupFunction;
}

export interface GuardedServer {
  server: URL;
  trusted: readonly string[];
  resolve: Resolve;
}

const privateAddress = (url: URL): SignInProblem =>
  new SignInProblem("private-address", { url: shownAddress(url) });

/** Answers in the shape that the connection asks for: all addresses, or the first one. */
const answering =
  (find: Resolve): LookupFunction =>
  (host, options, callback) => {
    find(host, options.hints).then(
      (found) => {
        const [first] = found;
        if (options.all === true) callback(null, found);
        else callback(null, first?.address ?? "", first?.family ?? 0);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

export function createAddressGuard({ server, trusted, resolve }: GuardedServer): AddressGuard {
  const chosen = new Set(
    [server.href, ...trusted]
      .filter((address) => URL.canParse(address))
      .map((address) => hostOf(new URL(address))),
  );
  let inside: Promise<boolean> | undefined;
  /**
   * Whether the server itself is in a private network. A name without addresses, as behind a proxy, is not, and neither is
   * one with a public address, beside which its operator can put any private one.
   */
  const serverIsPrivate = (): Promise<boolean> => {
    inside ??= namesPrivateHost(server)
      ? Promise.resolve(true)
      : resolve(hostOf(server)).then(
          (found) => found.length > 0 && found.every(({ address }) => isPrivateIp(address)),
          () => false,
        );
    return inside;
  };
  return {
    check: async (url) => {
      const problem = addressProblem(url);
      if (problem) throw problem;
      if (chosen.has(hostOf(url)) || !namesPrivateHost(url)) return;
      if (!(await serverIsPrivate())) throw privateAddress(url);
    },
    lookupFor: (url) =>
      answering(async (host, hints) => {
        const found = await resolve(host, hints);
        if (chosen.has(hostOf(url)) || !found.some(({ address }) => isPrivateIp(address))) return found;
        if (await serverIsPrivate()) return found;
        throw privateAddress(url);
      }),
  };
}
