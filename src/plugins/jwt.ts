// jwt: clients show a signed token; what it must be like, and where its key comes from.
import { createPublicKey } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { authenticationFields } from "../pdk/authentication.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config, headerName, integer, listOf, nullable, oneOf, url } from "../pdk/fields.ts";
import { GATEWAY_FIELDS } from "../pdk/http.ts";

const algorithmNames = [
  ...(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const),
  ...(["ES256", "ES384", "ES512", "EdDSA"] as const),
  ...(["HS256", "HS384", "HS512"] as const),
] as const;

const text = (description: string, maxLength = 1024) =>
  t.String({ minLength: 1, maxLength, description });
const scalar = t.Union([t.String({ maxLength: 1024 }), t.Number(), t.Boolean()]);
const claimName = "^[^\\u0000-\\u001f]{1,256}$";

const schema = config({
  header_names: listOf(headerName({ description: "Name of a header field" }), {
    default: ["Authorization"],
    maxItems: 10,
    description:
      "Header fields that may hold the token, behind `Bearer`; in others than Authorization that may be left out",
  }),
  cookie_names: listOf(text("Name of a cookie", 256), {
    maxItems: 10,
    description: "Cookies that may hold the token",
  }),
  query_names: listOf(text("Name of a query parameter", 256), {
    maxItems: 10,
    description:
      "Query parameters that may hold the token; addresses end up in logs, so none by default",
  }),
  algorithms: t.Array(oneOf(algorithmNames, { description: "Algorithm of RFC 7518 or RFC 8037" }), {
    default: ["RS256", "ES256", "EdDSA"],
    minItems: 1,
    maxItems: algorithmNames.length,
    description:
      "Algorithms that are accepted. HS256, HS384 and HS512 are only for secrets of consumers",
  }),
  jwks_url: nullable(
    url({ maxLength: 2048, description: "Address of a set of public keys (RFC 7517)" }),
  ),
  jwks: nullable(
    t.Object(
      {
        keys: t.Array(t.Record(t.String(), t.Unknown()), {
          minItems: 1,
          maxItems: 100,
          description: "Public keys, each a JSON Web Key",
        }),
      },
      {
        additionalProperties: false,
        description: "A set of public keys (RFC 7517) written down here",
      },
    ),
  ),
  jwks_cache_ttl: integer(300, {
    minimum: 1,
    maximum: 86_400,
    description: "Seconds after which keys are fetched again",
  }),
  jwks_refresh_min_interval: integer(10, {
    minimum: 1,
    maximum: 3600,
    description:
      "Seconds at least between two attempts of a worker to fetch keys, also when tokens name unknown ones",
  }),
  issuer: listOf(text("Value of iss"), {
    maxItems: 20,
    description:
      "Accepted values of the claim iss; none: any. Without jwks_url and jwks, the keys of those that are addresses are found by OpenID Connect Discovery",
  }),
  audience: listOf(text("Value of aud"), {
    maxItems: 100,
    description: "The claim aud must hold one of these; none: any",
  }),
  claims_required: t.Record(
    t.String({ pattern: claimName }),
    t.Union([t.Null(), scalar, t.Array(scalar, { minItems: 1, maxItems: 100 })]),
    {
      default: {},
      maxProperties: 50,
      description:
        "What claims must hold, by name: null: anything; a value: that; a list: one of these. A claim that is a list must hold it. Dots lead into objects",
    },
  ),
  scopes_required: listOf(
    t.String({
      maxLength: 256,
      pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$",
      errorMessage: "must be printable ASCII without spaces, quotes and backslashes",
      description: "Name of a scope",
    }),
    { maxItems: 100, description: "Scopes that the claim scope or scp must all hold" },
  ),
  key_claim: t.String({
    default: "iss",
    minLength: 1,
    maxLength: 256,
    description:
      "Claim, or else parameter of the header, that names the credential of a consumer whose key is to be used",
  }),
  consumer_claim: nullable(
    text(
      "Claim with the custom id or username of the consumer, for tokens that are not signed with a consumer's key; null: they are of no consumer",
      256,
    ),
  ),
  clock_skew: integer(30, {
    minimum: 0,
    maximum: 3600,
    description: "Seconds by which the clocks of the issuer and the gateway may differ",
  }),
  maximum_expiration: integer(0, {
    minimum: 0,
    maximum: 31_536_000,
    description:
      "Seconds for which a token may be valid from now on at most; 0: any, also for ever",
  }),
  claims_to_headers: t.Record(
    t.String({ pattern: claimName }),
    headerName({ description: "Name of a header field" }),
    {
      default: {},
      maxProperties: 50,
      description:
        "Header fields in which the target is told claims, by name of the claim; clients cannot send these fields themselves",
    },
  ),
  ...authenticationFields,
});

export type JwtConfig = (typeof schema)["static"];

/** Says who the client is, which is for credentials and consumers to say. */
const IDENTITY = /^x-(?:consumer|credential|anonymous)-/;

interface Problem {
  readonly path: string;
  readonly message: string;
}

function keyProblems({ jwks }: JwtConfig): Problem[] {
  return (jwks?.keys ?? []).flatMap((key, at) => {
    const path = `jwks.keys[${at}]`;
    // This is no place for a secret: it is shown to everybody who may read the configuration.
    if (key["d"] !== undefined || key["k"] !== undefined)
      return [{ path, message: "must be a public key" }];
    try {
      createPublicKey({ key, format: "jwk" });
      return [];
    } catch {
      return [{ path, message: "is not a key that can be used" }];
    }
  });
}

function headerProblems({ claims_to_headers }: JwtConfig): Problem[] {
  const seen = new Set<string>();
  return Object.entries(claims_to_headers).flatMap(([claim, header]) => {
    const path = `claims_to_headers.${claim}`;
    const name = header.toLowerCase();
    if (seen.has(name)) return [{ path, message: "is there already" }];
    seen.add(name);
    return GATEWAY_FIELDS.has(name) || IDENTITY.test(name)
      ? [{ path, message: `${header} is reserved for the gateway` }]
      : [];
  });
}

export default definePlugin({
  name: "jwt",
  summary: "Authenticates clients by signed tokens (JWT)",
  description: `A token is verified with one of these keys:

- that of a consumer: \`key_claim\` names the credential of the type \`jwt\` (\`POST /api/v1/consumers/:id/credentials\`), and
  the token must be signed with its algorithm. Shared secrets (HS256 and so on) work only in this way, and their algorithm must be
  in \`algorithms\`. Whatever the other claims say, such a token belongs to that consumer;
- those of \`jwks_url\` or \`jwks\`;
- without either, those of the issuers in \`issuer\`, found by \`/.well-known/openid-configuration\`. The keys of an issuer verify
  only its own tokens.

The gateway fetches keys with the first token and again after \`jwks_cache_ttl\`, or when a token names an unknown key, but never
more often than \`jwks_refresh_min_interval\`. When it cannot fetch them, it keeps using the previous keys; without any, clients
get 503. It ignores key locations inside of tokens.

Restrict the \`audience\`: otherwise every token of the issuer is accepted, for whatever application. A token without \`exp\` never
expires; \`claims_required: {"exp": null}\` or \`maximum_expiration\` rejects it. The three parts of a token must be canonical
base64url, so that no token has a second spelling.`,
  group: "authentication",
  order: 8500,
  phases: ["auth"],
  scopes: authScopes,
  config: schema,
  example: {
    jwks: {
      keys: [
        {
          kty: "OKP",
          crv: "Ed25519",
          kid: "2026",
          x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        },
      ],
    },
    issuer: ["https://id.example.com"],
    audience: ["https://api.example.com"],
    claims_to_headers: { sub: "X-User-Id" },
  },
  onError: "closed",
  check: (own) => [
    ...(own.jwks_url !== null && own.jwks !== null
      ? [{ path: "jwks", message: "must be null when jwks_url is given" }]
      : []),
    ...keyProblems(own),
    ...headerProblems(own),
  ],
  async create(own, kit) {
    const { createJwtHandlers } = await import("./jwt/handlers.ts");
    return createJwtHandlers(own, kit);
  },
});
