/** The keys of `oauth`, and of an `auth` object: what each may hold, and its description and example for editors. */
import * as z from "zod";
import { names } from "./shape.ts";

/** Algorithms of a signed assertion (RFC 7518, section 3.1, and RFC 9864). */
const SIGNING_ALGS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
] as const;

const text = (about: { description: string; examples: [string] }) => z.string().optional().meta(about);

const scopes = () =>
  z
    .union([z.string(), names])
    .optional()
    .meta({ description: "Another spelling of scope; a text or a list.", examples: [["read", "write"]] });

/** What the client is. */
const client = () => ({
  clientId: text({
    description: "Id of a client that you registered at the authorization server.",
    examples: ["my-client"],
  }),
  clientSecret: text({ description: "Secret of that client.", examples: ["${DOCS_SECRET}"] }),
  clientName: text({ description: "Name under which a client registers itself.", examples: ["Pi"] }),
  clientUri: text({
    description: "Web page of the client, for its registration.",
    examples: ["https://example.com"],
  }),
  logoUri: text({
    description: "Picture of the client, for its registration.",
    examples: ["https://example.com/logo.png"],
  }),
  clientMetadataUrl: text({
    description: "https address of a client metadata document, which is then the client's id.",
    examples: ["https://example.com/client.json"],
  }),
  clientRegistration: z
    .enum(["auto", "dcr", "cimd"])
    .optional()
    .meta({
      description:
        "How a client without an id becomes known: dcr only registers it, cimd only uses a metadata document.",
      examples: ["auto"],
    }),
  redirectUri: text({
    description:
      "Where the browser answers, exactly as it is registered. {port} is callbackPort, or a free port. At another machine you paste the last address.",
    examples: ["http://localhost:{port}/callback"],
  }),
  callbackUrl: text({
    description: "Another spelling of redirectUri.",
    examples: ["http://127.0.0.1:3118/callback"],
  }),
  callbackPort: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .meta({ description: "The browser answers at http://127.0.0.1:<port>/callback.", examples: [3118] }),
});

/** What is asked for, and of whom. */
const request = () => ({
  grantType: z
    .enum(["authorization_code", "client_credentials"])
    .optional()
    .meta({
      description:
        "authorization_code asks the user in a browser; client_credentials needs no user, but a secret, a private key or an assertion.",
      examples: ["authorization_code"],
    }),
  scope: text({
    description: "Rights to ask for, with spaces between, in place of those that the server names.",
    examples: ["read write"],
  }),
  scopes: scopes(),
  authServerMetadataUrl: text({
    description:
      "Address of the authorization server's metadata. Nothing else is looked up, and resource is sent only if you write it.",
    examples: ["https://auth.example.com/.well-known/oauth-authorization-server"],
  }),
  issuer: text({
    description: "The one name that the authorization server may give itself.",
    examples: ["https://auth.example.com"],
  }),
  skipIssuerMetadataValidation: z
    .boolean()
    .optional()
    .meta({
      description:
        "true accepts any issuer, with a warning; the key issuer is safer. Not in a project's file.",
      examples: [false],
    }),
  resource: z
    .union([z.string(), z.literal(false)])
    .optional()
    .meta({
      description: "Value of the parameter resource, or false to send none, as Entra wants it.",
      examples: ["https://example.com/mcp"],
    }),
  authorizationParams: z
    .record(z.string(), z.string())
    .optional()
    .meta({
      description: "Further parameters of the page that the browser opens.",
      examples: [{ access_type: "offline" }],
    }),
});

/** How a machine proves who it is. */
const machine = () => ({
  privateKey: text({
    description: "Private key (PEM) of the client, which signs its requests.",
    examples: ["${DOCS_KEY}"],
  }),
  privateKeyFile: text({
    description: "Absolute path of that key's file. Not in a project's file.",
    examples: ["~/.config/docs/key.pem"],
  }),
  keyId: text({ description: "Id of that key.", examples: ["key-1"] }),
  signingAlg: z
    .enum(SIGNING_ALGS)
    .optional()
    .meta({ description: "Algorithm of the signature, if the key does not decide it.", examples: ["ES256"] }),
  assertionFile: text({
    description: "Absolute path of a signed assertion that another program renews. Not in a project's file.",
    examples: ["/var/run/secrets/token"],
  }),
});

export const oauthShape = () => z.looseObject({ ...client(), ...request(), ...machine() });

/** `auth` as an object: a client as Cursor writes it, or a provider of Pi, which has no effect here. */
export const authShape = () =>
  z.looseObject({
    provider: text({ description: "A provider of Pi, which has no effect here.", examples: ["anthropic"] }),
    CLIENT_ID: text({
      description: "Id of a registered client, as Cursor writes it.",
      examples: ["my-client"],
    }),
    CLIENT_SECRET: text({ description: "Its secret.", examples: ["${DOCS_SECRET}"] }),
    scopes: scopes(),
  });

export type OAuthEntry = z.infer<ReturnType<typeof oauthShape>>;
