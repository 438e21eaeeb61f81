/** What every message of this folder needs, and what an authorization remembers until its answer. Types only. */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import type { ClientRecord, Discovered } from "../model/model.ts";
import type { AuthRequests } from "../requests/requests.ts";

/** What every message needs. `plan` is resolved: no variables. */
export interface GrantContext {
  plan: OAuthPlan;
  requests: AuthRequests;
  onNote: (note: string) => void;
}

/** An authorization that waits for the browser. `state` and `verifier` live in memory only. */
export interface PendingAuthorization {
  url: string;
  state: string;
  verifier: string;
  redirectUri: string;
  scope: string | undefined;
  client: ClientRecord;
  discovered: Discovered;
}
