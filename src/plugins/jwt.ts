// jwt: authenticates clients by signed tokens.
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
  header_names: listOf(headerName({ description: "Name of a header" }), {
    default: ["Authorization"],
    maxItems: 10,
    description:
      "Headers that may have the token, after `Bearer`, which is optional except in Authorization",
  }),
  cookie_names: listOf(text("Name of a cookie", 256), {
    maxItems: 10,
    description: "Cookies that may have the token",
  }),
  query_names: listOf(text("Name of a query parameter", 256), {
    maxItems: 10,
    description:
      "Query parameters that may have the token; none by default, because URLs end up in logs",
  }),
  algorithms: t.Array(oneOf(algorithmNames, { description: "Algorithm of RFC 7518 or RFC 8037" }), {
    default: ["RS256", "ES256", "EdDSA"],
    minItems: 1,
    maxItems: algorithmNames.length,
    description: "Accepted algorithms. HS256, HS384 and HS512 are only for secrets of consumers",
  }),
  jwks_url: nullable(url({ maxLength: 2048, description: "URL of a JSON Web Key Set (RFC 7517)" })),
  jwks: nullable(
    t.Object(
      {
        keys: t.Array(t.Record(t.String(), t.Unknown()), {
          minItems: 1,
          maxItems: 100,
          description: "Public JSON Web Keys",
        }),
      },
      {
        additionalProperties: false,
        description: "Inline JSON Web Key Set (RFC 7517)",
      },
    ),
  ),
  jwks_cache_ttl: integer(300, {
    minimum: 1,
    maximum: 86_400,
    description: "Seconds for which fetched keys are cached",
  }),
  jwks_refresh_min_interval: integer(10, {
    minimum: 1,
    maximum: 3600,
    description:
      "Minimum seconds between two fetches of a worker, also when tokens name unknown keys",
  }),
  issuer: listOf(text("Value of iss"), {
    maxItems: 20,
    description:
      "Accepted values of the claim iss; empty: any. Without jwks_url and jwks, OpenID Connect Discovery finds the keys of issuers that are URLs",
  }),
  audience: listOf(text("Value of aud"), {
    maxItems: 100,
    description: "Accepted values of the claim aud, of which a token must have one; empty: any",
  }),
  claims_required: t.Record(
    t.String({ pattern: claimName }),
    t.Union([t.Null(), scalar, t.Array(scalar, { minItems: 1, maxItems: 100 })]),
    {
      default: {},
      maxProperties: 50,
      description:
        "Required claims by name: null: any value; a value: equal; a list: one of these. A list claim must contain it. Dots separate nested members",
    },
  ),
  scopes_required: listOf(
    t.String({
      maxLength: 256,
      pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$",
      errorMessage: "must be printable ASCII without spaces, quotes and backslashes",
      description: "Name of a scope",
    }),
    {
      maxItems: 100,
      description: "Required scopes, all of which the claim scope or scp must have",
    },
  ),
  key_claim: t.String({
    default: "iss",
    minLength: 1,
    maxLength: 256,
    description:
      "Claim, or else header parameter, that names the consumer's credential for verification",
  }),
  consumer_claim: nullable(
    text(
      "Claim with the custom id or username of the consumer, for tokens of issuers; null: no consumers",
      256,
    ),
  ),
  clock_skew: integer(30, {
    minimum: 0,
    maximum: 3600,
    description: "Tolerated clock difference in seconds",
  }),
  maximum_expiration: integer(0, {
    minimum: 0,
    maximum: 31_536_000,
    description: "Maximum remaining lifetime of a token in seconds; 0: unlimited",
  }),
  claims_to_headers: t.Record(
    t.String({ pattern: claimName }),
    headerName({ description: "Name of a header" }),
    {
      default: {},
      maxProperties: 50,
      description:
        "Upstream headers by name of the claim; the gateway removes what clients send under these names",
    },
  ),
  ...authenticationFields,
});

export type JwtConfig = (typeof schema)["static"];

/** Identity headers, which only the gateway sets from consumers and credentials. */
const IDENTITY = /^x-(?:consumer|credential|anonymous)-/;

interface Problem {
  readonly path: string;
  readonly message: string;
}

function keyProblems({ jwks }: JwtConfig): Problem[] {
  return (jwks?.keys ?? []).flatMap((key, at) => {
    const path = `jwks.keys[${at}]`;
    // No secrets: everyone who can read the configuration sees this.
    if (key["d"] !== undefined || key["k"] !== undefined)
      return [{ path, message: "must be a public key" }];
    try {
      createPublicKey({ key, format: "jwk" });
      return [];
    } catch {
      return [{ path, message: "is not a supported key" }];
    }
  });
}

function headerProblems({ claims_to_headers }: JwtConfig): Problem[] {
  const seen = new Set<string>();
  return Object.entries(claims_to_headers).flatMap(([claim, header]) => {
    const path = `claims_to_headers.${claim}`;
    const name = header.toLowerCase();
    if (seen.has(name)) return [{ path, message: "is used twice" }];
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
  ignoresPath: true,
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
