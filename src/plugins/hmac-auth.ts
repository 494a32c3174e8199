// hmac-auth: clients sign their requests (RFC 9421); what must be signed, and how.
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
    description: "Seconds by which the time of a signature may differ from the gateway's",
  }),
  required_components: t.Array(
    t.String({
      maxLength: 256,
      pattern:
        "^(?:@(?:method|target-uri|authority|scheme|request-target|path|query)|[!#$%&'*+.^_`|~0-9a-z-]+)$",
      errorMessage:
        "must be the lower-case name of a header field, or one of @method, @target-uri, @authority, @scheme, @request-target, @path, @query",
      description: "A component of RFC 9421 section 2",
    }),
    {
      default: ["@method", "@target-uri"],
      maxItems: 50,
      description: "What a signature must cover, as a whole and without parameters",
    },
  ),
  algorithms: t.Array(oneOf(algorithmNames, { description: "Algorithm of RFC 9421 section 3.3" }), {
    default: ["hmac-sha256", "ed25519"],
    minItems: 1,
    maxItems: algorithmNames.length,
    description:
      "Algorithms that are accepted; that of the credential counts, not what a client says",
  }),
  validate_body: flag(
    false,
    "Bodies must have a Content-Digest (RFC 9530) that is signed and is that of the body",
  ),
  max_body: integer(MEBIBYTE, {
    minimum: 0,
    maximum: 64 * MEBIBYTE,
    description: "Bytes of the longest body that is looked at for validate_body",
  }),
  nonce_cache: flag(
    false,
    "Signatures must have a nonce, and each is good for one request, in all workers together",
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
nonces are lost when the gateway stops.

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
  async create(own, kit) {
    const { Guard } = await import("./hmac-auth/guard.ts");
    const guard = new Guard(own, kit);
    return {
      auth: (context) => guard.auth(context),
      authSkipped: (context) => guard.hide(context),
    };
  },
});
