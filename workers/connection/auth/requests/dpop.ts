/**
 * Proofs that this program has the key to which a token is bound (RFC 9449). Owns: keys, the proof of each message, and
 * what servers say about proofs: a nonce and their time, by origin and in memory. oauth4webapi makes proofs only for requests
 * that it sends itself. Requests to a server go through our own client, whose answers are streams, and each redirect needs
 * a proof of its own. So all proofs are made here.
 */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
} from "node:crypto";
import type { HttpResponse, Signer } from "../../web/client.ts";
import { type BoundToken, type DpopKey, parseChallenge, refusesProof } from "../model/model.ts";

/** RFC 9449, section 8, in a length of which the proof still fits into a server's limit for headers. */
const NONCE_CHARS = 2_048;
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** A request is sent again so often because the server names another nonce or time. */
export const PROOF_REPEATS = 2;

/** Servers allow for less of a difference between clocks at their own risk: the date of an answer counts whole seconds. */
const SKEW_MS = 5_000;

/** What one origin has said. */
interface Said {
  nonce?: string;
  /** How far its clock is ahead of ours. */
  skewMs: number;
}

const NOTHING: Said = { skewMs: 0 };

type Head = Omit<HttpResponse, "body">;

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export function createKey(): DpopKey {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "", d = "" } = privateKey.export({ format: "jwk" });
  return { kty: "EC", crv: "P-256", x, y, d };
}

/** RFC 7638, for the parameter `dpop_jkt` (RFC 9449, section 10). */
export const thumbprintOf = ({ crv, kty, x, y }: DpopKey): string =>
  digest(JSON.stringify({ crv, kty, x, y }));

function saidBy({ status, headers }: Head, known: Said): Said {
  const nonce = headers["dpop-nonce"];
  const isNonce = typeof nonce === "string" && nonce.length <= NONCE_CHARS && NONCE.test(nonce);
  const given = isNonce ? { nonce } : {};
  // A clock matters only once a proof is refused: an answer that was long in coming or comes from a cache has an old date.
  const skewMs = status === 400 || status === 401 ? Date.parse(headers.date ?? "") - Date.now() : Number.NaN;
  const isOther = Math.abs(skewMs - known.skewMs) >= SKEW_MS;
  return { ...known, ...given, ...(isOther ? { skewMs } : {}) };
}

/** Signs one message. */
interface ProofSigner extends Signer {
  /** Whether the last proof differs from one that would be made now: the server has named another nonce or time. */
  readonly isOutdated: boolean;
}

class Prover {
  readonly #key: KeyObject;
  readonly #header: string;
  readonly #said = new Map<string, Said>();

  constructor(jwk: DpopKey) {
    const { d: _private, ...publicJwk } = jwk;
    this.#key = createPrivateKey({ key: { ...jwk }, format: "jwk" });
    this.#header = encoded({ typ: "dpop+jwt", alg: "ES256", jwk: publicJwk });
  }

  /** `token`: what the message presents; absent in a request for tokens. */
  signer(token?: string): ProofSigner {
    let used: Said | undefined;
    let isOutdated = false;
    return {
      headers: (method, url) => {
        used = this.#saidOf(url);
        const proof = this.#proof(`${url.origin}${url.pathname}`, { method, said: used, token });
        return { DPoP: proof, ...(token !== undefined && { Authorization: `DPoP ${token}` }) };
      },
      answered: (url, head) => {
        const known = this.#saidOf(url);
        const now = saidBy(head, known);
        if (now.nonce !== known.nonce || now.skewMs !== known.skewMs) this.#said.set(url.origin, now);
        isOutdated = this.#saidOf(url) !== used;
      },
      get isOutdated() {
        return isOutdated;
      },
    };
  }

  #saidOf({ origin }: URL): Said {
    return this.#said.get(origin) ?? NOTHING;
  }

  /** RFC 9449, section 4.2. */
  #proof(
    htu: string,
    { method, said, token }: { method: string; said: Said; token: string | undefined },
  ): string {
    const claims = {
      jti: randomUUID(),
      htm: method,
      htu,
      iat: Math.floor((Date.now() + said.skewMs) / 1_000),
      ...(token !== undefined && { ath: digest(token) }),
      ...(said.nonce !== undefined && { nonce: said.nonce }),
    };
    const text = `${this.#header}.${encoded(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#key, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }
}

/** One for each sign-in of this process, so that renewals and requests know the same nonces. */
const provers = new Map<string, Prover>();

export function proverOf(key: DpopKey): Prover {
  const name = thumbprintOf(key);
  const prover = provers.get(name) ?? new Prover(key);
  provers.set(name, prover);
  return prover;
}

const isRefusal = ({ status, headers }: Head): boolean =>
  status === 401 && refusesProof(parseChallenge(headers["www-authenticate"], "dpop")?.error);

export const boundToken = (value: string, key: DpopKey): BoundToken => ({
  value,
  send: async (client, request) => {
    const prover = proverOf(key);
    for (let repeats = 0; ; repeats++) {
      const signer = prover.signer(value);
      const response = await client.request({ ...request, signer });
      if (repeats === PROOF_REPEATS || !signer.isOutdated || !isRefusal(response)) return response;
      response.body.destroy();
    }
  },
});
