/** What an entry says about OAuth, in one shape for all dialects. Values stay as written until they are needed. */
import { canonical } from "../../../shared/json.ts";

export interface OAuthPlan {
  /** `client_credentials` needs no user. */
  grantType: "authorization_code" | "client_credentials";
  clientId?: string;
  clientSecret?: string;
  /** Replaces what the server asks for; what a challenge asks for is added. Separated by spaces. */
  scope?: string;
  /** Exact redirect URI. `{port}` stands for `callbackPort`, or for a free port. Not on loopback: paste only. */
  redirectUri?: string;
  /** Port of the listener. */
  callbackPort?: number;
  clientName?: string;
  clientUri?: string;
  logoUri?: string;
  /** URL of a client metadata document, which is the client's id (CIMD). */
  clientMetadataUrl?: string;
  clientRegistration: "auto" | "dcr" | "cimd";
  /** Metadata of the authorization server are read here, and nothing is discovered. */
  authServerMetadataUrl?: string;
  /** The one issuer to accept. */
  issuer?: string;
  /** Any issuer is accepted. Never from a project's file. */
  skipIssuerMetadataValidation?: true;
  /** Replaces `resource`; false: none is sent. */
  resource?: string | false;
  /** Further parameters of the authorization request, for example `access_type`. */
  authorizationParams?: Record<string, string>;
  /** PEM of a private key for `private_key_jwt`. */
  privateKey?: string;
  /** File of that key. Never from a project's file. */
  privateKeyFile?: string;
  keyId?: string;
  signingAlg?: string;
  /** File of a ready assertion (RFC 7523, section 2.2). Never from a project's file. */
  assertionFile?: string;
}

/** The plan of an entry that says nothing about OAuth: a sign-in begins if the server asks for one. */
export const DEFAULT_OAUTH: OAuthPlan = { grantType: "authorization_code", clientRegistration: "auto" };

/** Whether an entry says nothing about OAuth. */
export const isDefaultOAuth = (oauth: OAuthPlan | false): boolean =>
  canonical(oauth) === canonical(DEFAULT_OAUTH);
