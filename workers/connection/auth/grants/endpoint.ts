/** The endpoints of an authorization server: where they are, and that a secret may be sent there. Pure. */
import type { AuthorizationServer } from "oauth4webapi";
import { SignInProblem } from "../model/model.ts";
import { addressProblem } from "../requests/requests.ts";

type EndpointKey =
  | "authorization_endpoint"
  | "token_endpoint"
  | "registration_endpoint"
  | "revocation_endpoint";

/** Throws `SignInProblem`: no-endpoint; not-https for an address that is neither https nor http on loopback. */
export function endpointOf(metadata: AuthorizationServer, key: EndpointKey): URL {
  const address = metadata[key];
  if (address === undefined || !URL.canParse(address)) {
    throw new SignInProblem("no-endpoint", { what: key, url: metadata.issuer });
  }
  const url = new URL(address);
  const problem = addressProblem(url);
  if (problem) throw problem;
  return url;
}
