/** The part of `oidc-provider` that tests use. The package brings no types. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface StoredToken {
    accountId?: string;
    clientId: string;
    grantId?: string;
    /** Seconds since the epoch. */
    iat: number;
    exp: number;
    aud?: string | string[];
    scope?: string;
    isValid: boolean;
    /** Thumbprint of the key to which it is bound (RFC 9449, section 6). */
    jkt?: string;
    destroy(): Promise<void>;
  }

  interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  interface Interaction {
    grantId?: string;
    prompt: { name: string };
    params: { client_id: string; scope?: string; resource?: string | string[] };
    session?: { accountId: string };
  }

  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
      options?: { mergeWithLastSubmission: boolean },
    ): Promise<void>;
    on(event: string, listener: (...sent: never[]) => void): this;
    AccessToken: { find(token: string): Promise<StoredToken | undefined> };
    ClientCredentials: { find(token: string): Promise<StoredToken | undefined> };
    RefreshToken: { find(token: string): Promise<StoredToken | undefined> };
    Client: { find(id: string): Promise<{ clientId: string } | undefined> };
    Grant: {
      new (about: { accountId: string; clientId: string }): Grant;
      find(id: string): Promise<Grant | undefined>;
    };
  }
}
