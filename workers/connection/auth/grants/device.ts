/**
 * The grant with a code for another device (RFC 8628). Owns: the request for the codes (section 3.1), which of its answers can
 * be shown and used (section 3.2), and one question for the tokens (section 3.4), which the caller repeats. Loaded by the
 * first sign-in that uses it.
 */
import {
  type AuthorizationServer,
  type Client,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  processDeviceAuthorizationResponse,
} from "oauth4webapi";
import { pageIn } from "../discovery/metadata.ts";
import { SignInProblem, type TokenAnswer } from "../model/model.ts";
import { badAnswer, shownAddress } from "../requests/addresses.ts";
import { readObject } from "../requests/mend.ts";
import { numberOf, tokenOf } from "../store/record.ts";
import { ask, endpointOf, type GrantContext, type Receiver, tokenProblem } from "./ask.ts";
import { proofOf } from "./client.ts";
import { askForTokens, resourceOf } from "./token-requests.ts";

/** A sign-in that waits for the user at another device. Times are in seconds. */
export interface PendingDevice extends Receiver {
  /** Secret: whoever has it gets the tokens. */
  deviceCode: string;
  /** What the user enters. Printable ASCII. */
  userCode: string;
  /** The page at which the user enters it. */
  url: string;
  /** A page of the same origin that has the code already. Absent: there is none that may be shown. */
  urlWithCode?: string;
  interval: number;
  life: number;
}

/** Real ones have 8 or 9 (section 6.1). */
const USER_CODE_CHARS = 40;
/** Printable ASCII, without a space at an end. */
const USER_CODE = /^[!-~](?:[ -~]*[!-~])?$/;
/** Section 3.2: the default. */
const INTERVAL_SECONDS = 5;
/** A server that wants more has made a mistake, and the user would wait for nothing. */
const LONGEST_INTERVAL_SECONDS = 60;

/** Seconds between two questions, also as a text; what is no such number counts as absent. */
function intervalOf(value: unknown): number {
  const seconds = numberOf(value);
  if (seconds === undefined || seconds <= 0) return INTERVAL_SECONDS;
  return Math.min(Math.max(seconds, 1), LONGEST_INTERVAL_SECONDS);
}

/** `url`: the page without the code. */
function pageWithCode(value: unknown, url: URL, from: URL, server: URL): URL | undefined {
  try {
    const page = pageIn("verification_uri_complete", value, { from, server });
    // The user is asked about the origin of the other page alone.
    return page.origin === url.origin ? page : undefined;
  } catch (error) {
    if (error instanceof SignInProblem) return undefined;
    throw error;
  }
}

/** Throws `SignInProblem`: bad-answer, not-https, private-address; or an error of oauth4webapi. */
async function readCodes(received: string, asked: Receiver, from: URL, server: URL): Promise<PendingDevice> {
  const found = readObject(received);
  // oauth4webapi would refuse the answer for a wrong one of these. Google writes `verification_url`.
  const { interval, verification_uri_complete: complete, verification_url, ...rest } = found ?? {};
  const text = found ? JSON.stringify({ verification_uri: verification_url, ...rest }) : received;
  const client: Client = { client_id: asked.client.id };
  const answer = await processDeviceAuthorizationResponse(
    asked.discovered.metadata,
    client,
    new Response(text),
  );
  const deviceCode = tokenOf(answer.device_code);
  if (deviceCode === undefined) throw badAnswer(from, "its device_code cannot be sent");
  const userCode = answer.user_code;
  if (userCode.length > USER_CODE_CHARS || !USER_CODE.test(userCode)) {
    throw badAnswer(from, "its user_code cannot be shown");
  }
  const url = pageIn("verification_uri", answer.verification_uri, { from, server });
  const withCode = pageWithCode(complete, url, from, server);
  return {
    ...asked,
    deviceCode,
    userCode,
    url: url.href,
    ...(withCode && { urlWithCode: withCode.href }),
    interval: intervalOf(interval),
    life: answer.expires_in,
  };
}

/**
 * Asks for the codes. `server`: the MCP server. Throws `SignInProblem`: those of `readCodes`, client-unknown, scope-refused,
 * resource-refused, refused, unreachable, unavailable, bad-settings, not-https.
 */
export async function beginDevice(
  asked: Receiver,
  { plan, requests }: GrantContext,
  server: URL,
): Promise<PendingDevice> {
  const { discovered, client, scope } = asked;
  const metadata: AuthorizationServer = discovered.metadata;
  const endpoint = endpointOf(metadata, "device_authorization_endpoint");
  const { auth, secrets } = await proofOf(client, plan);
  const parameters = { ...resourceOf(discovered.resource), ...(scope !== undefined && { scope }) };
  const url = shownAddress(endpoint);
  return ask({
    endpoint,
    requests,
    secrets,
    send: (options) =>
      deviceAuthorizationRequest(metadata, { client_id: client.id }, auth, parameters, options),
    read: (text) => readCodes(text, asked, endpoint, server),
    refused: (refusal) => tokenProblem("device", refusal, { url, scope }),
  });
}

/**
 * One question for the tokens. Throws `SignInProblem`: refused, with the error "authorization_pending" or "slow_down" as
 * long as the user has not answered; denied, timed-out, code-refused, client-unknown, and those of every request.
 */
export function deviceTokens(
  { discovered, client, scope, dpopKey, deviceCode }: PendingDevice,
  context: GrantContext,
): Promise<TokenAnswer> {
  const server = discovered.metadata;
  const additionalParameters = resourceOf(discovered.resource);
  return askForTokens(
    {
      grant: "device",
      server,
      client,
      scope,
      send: (as, auth, options) =>
        deviceCodeGrantRequest(server, as, auth, deviceCode, { ...options, additionalParameters }),
    },
    { ...context, dpopKey },
  );
}
