/**
 * Owns: what an authorization server of a test has issued: clients, codes, tokens, and which of them are valid. Refresh
 * tokens rotate, and a second use of one ends its sign-in (RFC 9700, section 4.14.2).
 */
import { createHash, randomBytes } from "node:crypto";

export interface Client {
  id: string;
  secret?: string;
  /** Absent: any. */
  redirectUris?: string[];
}

/** One sign-in: all tokens that came of it. */
export interface Grant {
  client: string;
  scope: string | undefined;
  resource: string | undefined;
  alive: boolean;
}

interface Code {
  grant: Grant;
  redirectUri: string;
  challenge: string;
  endsAtMs: number;
}

const random = (kind: string): string => `${kind}-${randomBytes(24).toString("base64url")}`;
const s256 = (verifier: string): string => createHash("sha256").update(verifier).digest("base64url");

/** A device that waits for a person (RFC 8628). */
interface Device {
  grant: Grant;
  userCode: string;
  answer?: "agreed" | "refused";
}

export class TokenBook {
  /** Every token, code, verifier and client secret so far. */
  readonly secrets = new Set<string>();
  /** How often a used refresh token came again. */
  reuses = 0;
  registrations = 0;
  #clients = new Map<string, Client>();
  #codes = new Map<string, Code>();
  #devices = new Map<string, Device>();
  #access = new Map<string, { grant: Grant; endsAtMs: number }>();
  #refresh = new Map<string, { grant: Grant; used: boolean }>();

  client(id: string): Client | undefined {
    return this.#clients.get(id);
  }

  /** Adds a client that somebody registered by hand. */
  addClient(client: Client): Client {
    if (client.secret !== undefined) this.secrets.add(client.secret);
    this.#clients.set(client.id, client);
    return client;
  }

  register(redirectUris: string[], confidential: boolean): Client {
    this.registrations += 1;
    const secret = confidential ? { secret: random("secret") } : {};
    return this.addClient({ id: random("client"), redirectUris, ...secret });
  }

  /** Forgets all clients, as after a clean-up by the operator. */
  forgetClients(): void {
    this.#clients.clear();
  }

  /** The codes for a device: its own, and the one for the person. */
  device(grant: Grant): { deviceCode: string; userCode: string } {
    const deviceCode = this.#secret("device");
    const userCode = `${randomBytes(2).toString("hex")}-${randomBytes(2).toString("hex")}`.toUpperCase();
    this.#devices.set(deviceCode, { grant, userCode });
    return { deviceCode, userCode };
  }

  /** A person enters the code at the page. False: nobody has shown it, or it was answered. */
  answerDevice(userCode: string, answer: "agreed" | "refused"): boolean {
    const waiting = [...this.#devices.values()].find((one) => one.userCode === userCode && !one.answer);
    if (waiting) waiting.answer = answer;
    return waiting !== undefined;
  }

  /** The grant of a device whose person has agreed, once; otherwise the error of RFC 8628, section 3.5. */
  redeemDevice(
    deviceCode: string,
    client: string,
  ): Grant | "authorization_pending" | "access_denied" | "invalid_grant" {
    const found = this.#devices.get(deviceCode);
    if (found?.grant.client !== client) return "invalid_grant";
    if (!found.answer) return "authorization_pending";
    this.#devices.delete(deviceCode);
    return found.answer === "agreed" ? found.grant : "access_denied";
  }

  code(asked: Omit<Code, "endsAtMs">, codeMs: number): string {
    const code = this.#secret("code");
    this.#codes.set(code, { ...asked, endsAtMs: Date.now() + codeMs });
    return code;
  }

  /** The sign-in of a code, which is good for one use. Undefined: the code is not valid. */
  redeem(text: string, given: { client: string; redirectUri: string; verifier: string }): Grant | undefined {
    this.secrets.add(given.verifier);
    const code = this.#codes.get(text);
    this.#codes.delete(text);
    const fits =
      code?.grant.client === given.client &&
      code.endsAtMs > Date.now() &&
      code.redirectUri === given.redirectUri &&
      code.challenge === s256(given.verifier);
    return fits ? code.grant : undefined;
  }

  accessToken(grant: Grant, tokenMs: number): string {
    const token = this.#secret("access");
    this.#access.set(token, { grant, endsAtMs: Date.now() + tokenMs });
    return token;
  }

  refreshToken(grant: Grant): string {
    const token = this.#secret("refresh");
    this.#refresh.set(token, { grant, used: false });
    return token;
  }

  /** The sign-in of a refresh token. Undefined: the token is not valid, or was used before. */
  renew(text: string, client: string, rotates: boolean): Grant | undefined {
    const known = this.#refresh.get(text);
    if (known?.used) {
      this.reuses += 1;
      known.grant.alive = false;
    }
    if (!known?.grant.alive || known.grant.client !== client) return undefined;
    known.used = rotates;
    return known.grant;
  }

  /** The token's scopes, if it is valid now for this resource. */
  check(token: string | undefined, resource: string): string[] | undefined {
    const known = this.#access.get(token ?? "");
    if (!known?.grant.alive || known.endsAtMs <= Date.now()) return undefined;
    if (known.grant.resource !== undefined && known.grant.resource !== resource) return undefined;
    return (known.grant.scope ?? "").split(" ").filter((scope) => scope !== "");
  }

  revoke(token: string): void {
    const grant = this.#refresh.get(token)?.grant ?? this.#access.get(token)?.grant;
    if (grant) grant.alive = false;
  }

  /** Whether the sign-in of a token has not been ended. */
  isAlive(token: string): boolean {
    return (this.#refresh.get(token) ?? this.#access.get(token))?.grant.alive ?? false;
  }

  /** Ends the lives of all access tokens. */
  expireAll(): void {
    for (const known of this.#access.values()) known.endsAtMs = 0;
  }

  /** Ends all sign-ins. */
  revokeAll(): void {
    for (const { grant } of [...this.#access.values(), ...this.#refresh.values()]) grant.alive = false;
  }

  #secret(kind: string): string {
    const made = random(kind);
    this.secrets.add(made);
    return made;
  }
}
