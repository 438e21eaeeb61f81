/**
 * The token of a provider of Pi for the requests to one server (`auth.provider`), as Pi's own MCP client sends it. Main is
 * asked for it at each request, since Pi renews it; it is kept nowhere. Must not: know OAuth or the store of sign-ins.
 */
import type { ProviderProblem } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { known } from "../../shared/json.ts";
import type { AskUser } from "../asks/asks.ts";
import type { Redactor } from "../secrets/redact.ts";
import type { Env } from "../web/client.ts";
import type { RequestAuth } from "./authorized.ts";
import {
  explainProblem,
  type RefusedRequest,
  SignInProblem,
  type SignInProblemKind,
  tokenTextOf,
} from "./model/model.ts";

const KINDS: Readonly<Record<ProviderProblem, SignInProblemKind>> = {
  unknown: "provider-unknown",
  "signed-out": "provider-signed-out",
  failed: "provider-failed",
  "needs-pi": "provider-needs-pi",
};

/** Longer than any known token; more would not pass a server either. */
const TOKEN_CHARS = 16_384;

/** RFC 9110, section 5.5: what a header can hold, without blanks. */
const isSendable = (token: string): boolean => token.length <= TOKEN_CHARS && /^[\x21-\x7e]+$/.test(token);

interface ProviderTokensOptions {
  /** Name of the server. */
  server: string;
  /** Where the token goes. */
  url: URL;
  /** Name of the provider in Pi. */
  provider: string;
  /** The environment that names the proxies. */
  env: Env;
  askUser: AskUser;
  redact: Redactor;
  onSecret: (secret: string) => void;
}

/** What the requests ask. All reject with `ThreadsError`. */
export class ProviderTokens implements RequestAuth {
  readonly #options: ProviderTokensOptions;
  #refused: string | undefined;

  constructor(options: ProviderTokensOptions) {
    this.#options = options;
  }

  async token(signal: AbortSignal): Promise<string> {
    await this.#checkWay();
    const answer = await this.#ask(signal);
    signal.throwIfAborted();
    if (!("token" in answer)) throw this.#explain(KINDS[answer.problem]);
    this.#options.onSecret(answer.token);
    return answer.token;
  }

  /** Pi may have renewed the token since it was sent. Else only the user can help. */
  async afterRefusal(
    { status, challenge, sent, isRepeated }: RefusedRequest,
    signal: AbortSignal,
  ): Promise<string> {
    const token = isRepeated ? undefined : await this.token(signal);
    if (token !== undefined && token !== sent) return token;
    this.#refused = tokenTextOf(sent);
    if (status === 403) throw this.#explain("scope-wanted", known({ scope: challenge?.scope }));
    throw this.#explain("provider-refused");
  }

  /** Whether Pi has another token now than the one that the server refused. */
  async hasOther(): Promise<boolean> {
    const answer = await this.#ask(AbortSignal.timeout(LIMITS.rpcShortMs));
    return "token" in answer && answer.token !== this.#refused;
  }

  /** The configuration allows http on this machine alone, and a proxy may be elsewhere. */
  async #checkWay(): Promise<void> {
    const { server, url, env, redact } = this.#options;
    if (url.protocol !== "http:") return;
    const [{ proxyFor }, { proxiedHttp }] = await Promise.all([
      import("../web/client.ts"),
      import("./requests/addresses.ts"),
    ]);
    if (proxyFor(url, env)) throw explainProblem(proxiedHttp(url), { server, redact });
  }

  async #ask(signal: AbortSignal): Promise<{ token: string } | { problem: ProviderProblem }> {
    const { askUser, provider } = this.#options;
    const answer = await askUser({ about: "provider", provider }, signal);
    const isUnfit = answer !== undefined && "token" in answer && !isSendable(answer.token);
    return answer === undefined || isUnfit ? { problem: "failed" } : answer;
  }

  #explain(kind: SignInProblemKind, more: { scope?: string } = {}): Error {
    const { server, provider, redact } = this.#options;
    return explainProblem(new SignInProblem(kind, { what: provider, ...more }), { server, redact });
  }
}
