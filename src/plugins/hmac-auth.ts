// hmac-auth: authenticates clients by request signatures (RFC 9421).
import { Type as t } from "@sinclair/typebox";
import { authenticationFields } from "../pdk/authentication.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config, flag, integer, oneOf } from "../pdk/fields.ts";

const algorithmNames = ["hmac-sha256", "ed25519"] as const;
const MEBIBYTE = 1_048_576;

const schema = config({
  clock_skew: integer(300, {
    minimum: 1,
    maximum: 86_400,
    description: "Tolerated clock difference in seconds",
  }),
  required_components: t.Array(
    t.String({
      maxLength: 256,
      pattern:
        "^(?:@(?:method|target-uri|authority|scheme|request-target|path|query)|[!#$%&'*+.^_`|~0-9a-z-]+)$",
      errorMessage:
        "must be the lower-case name of a header, or one of @method, @target-uri, @authority, @scheme, @request-target, @path, @query",
      description: "A component of RFC 9421 section 2",
    }),
    {
      default: ["@method", "@target-uri"],
      maxItems: 50,
      description: "Components that a signature must cover, without parameters",
    },
  ),
  algorithms: t.Array(oneOf(algorithmNames, { description: "Algorithm of RFC 9421 section 3.3" }), {
    default: ["hmac-sha256", "ed25519"],
    minItems: 1,
    maxItems: algorithmNames.length,
    description: "Accepted algorithms; the credential's algorithm counts, not what a client claims",
  }),
  validate_body: flag(false, "Require a signed Content-Digest (RFC 9530) that matches the body"),
  max_body: integer(MEBIBYTE, {
    minimum: 0,
    maximum: 64 * MEBIBYTE,
    description: "Maximum body size in bytes for validate_body",
  }),
  nonce_cache: flag(
    false,
    "Require a nonce, which is valid for one request, in all workers together",
  ),
  ...authenticationFields,
});

export type HmacConfig = (typeof schema)["static"];

export default definePlugin({
  name: "hmac-auth",
  summary: "Authenticates clients by signed requests (HTTP Message Signatures, RFC 9421)",
  description: `A client sends \`Signature-Input\` and \`Signature\` with a \`keyid\` that names a credential of the type \`hmac\`
(\`POST /api/v1/consumers/:id/credentials\`), and with the time of signing in \`created\`. The key of \`hmac-sha256\` is the
text of the secret in UTF-8. Of several signatures, the first valid one counts; more than five are rejected.

Only signed components are protected from changes: without \`validate_body\`, or \`content-digest\` in \`required_components\` and a
target that checks it, the body is not. Within \`clock_skew\` an observer can replay a request, unless \`nonce_cache\` is on. Its
nonces are lost when the gateway stops, and known to one node of a fleet only, unless there is a server of [shared
counters](../shared-counters.md).

The path is signed in its canonical form: escapes only where they are needed, in upper case. The parameters \`bs\`, \`tr\`
and \`req\` of components are not supported.`,
  group: "authentication",
  order: 8400,
  phases: ["auth"],
  scopes: authScopes,
  config: schema,
  example: {
    required_components: ["@method", "@target-uri", "content-type"],
    validate_body: true,
    nonce_cache: true,
  },
  onError: "closed",
  perNode: (own) => (own.nonce_cache ? "replays are refused on each node only" : null),
  async create(own, kit) {
    const { Authenticator } = await import("./hmac-auth/authenticator.ts");
    const authenticator = new Authenticator(own, kit);
    return {
      auth: (context) => authenticator.auth(context),
      authSkipped: (context) => authenticator.hide(context),
    };
  },
});
