// mtls-auth: authenticates clients by their TLS client certificate.
import { Type as t } from "@sinclair/typebox";
import type { Outcome } from "../pdk/response.ts";
import { authenticationFields, isExempt, refuse } from "../pdk/authentication.ts";
import type { ConsumerView, RequestContext } from "../pdk/context.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config, flag, listOf, nullable, oneOf } from "../pdk/fields.ts";
import { compileNames, type Identity, readIdentity, toFingerprint } from "./mtls-auth/identity.ts";

const schema = config({
  allowed_fingerprints: listOf(
    t.String({
      pattern: "^[0-9a-fA-F]{2}(?::?[0-9a-fA-F]{2}){31}$",
      errorMessage: "must be a SHA-256 in hexadecimal, with or without colons",
      description: "SHA-256 of a certificate (its DER), hexadecimal",
    }),
    { description: "Allowed certificates; empty: all that the listener has verified" },
  ),
  allowed_san: listOf(
    t.String({
      minLength: 1,
      maxLength: 512,
      description: "DNS name, IP address, URI or e-mail address",
    }),
    {
      description:
        "Subject alternative names of which a certificate must have one; `*.example.com` matches DNS names with one more label; empty: any",
    },
  ),
  consumer_by: nullable(
    oneOf(["san", "cn", "fingerprint"], {
      description:
        "Property of the certificate that equals the custom id or username of a consumer; null: no consumers",
    }),
  ),
  forward_headers: flag(true, "Send the certificate to the target in Client-Cert (RFC 9440)"),
  ...authenticationFields,
  hide_credentials: flag(
    true,
    "Has no effect: a certificate is no secret. forward_headers decides whether the target gets it",
  ),
});

type Config = (typeof schema)["static"];

/** No scheme is registered for this, and RFC 9110 section 15.5.2 requires one in a 401. */
const CHALLENGE = "Certificate";

export default definePlugin({
  name: "mtls-auth",
  summary: "Authenticates clients by their TLS client certificate",
  description: `Needs listeners with \`client_auth\` set to \`request\` or \`require\`: they verify the certificate against their \`client_ca\`, and this
plugin authorizes verified certificates. On other listeners there is no certificate, and every client gets 401.

When both \`allowed_fingerprints\` and \`allowed_san\` are set, a certificate must match both. With \`consumer_by\`, a certificate
without a consumer gets 403; of several alternative names the first known one counts. DNS names are looked up in lower case,
fingerprints in lower case without colons. A certificate that expires while its connection is open is rejected from then on.`,
  group: "authentication",
  order: 8600,
  phases: ["pre_auth", "auth"],
  scopes: authScopes,
  config: schema,
  example: { allowed_san: ["*.clients.example.com"], consumer_by: "san" },
  onError: "closed",
  ignoresPath: true,
  create(own) {
    const authenticator = new Authenticator(own);
    return {
      auth: (context) => authenticator.auth(context),
      ...(own.forward_headers
        ? {}
        : {
            preAuth(context: RequestContext) {
              context.upstream.removeHeader("client-cert");
              return undefined;
            },
          }),
    };
  },
});

class Authenticator {
  readonly #own: Config;
  readonly #fingerprints: ReadonlySet<string>;
  readonly #isAllowedName: ((identity: Identity) => boolean) | null;
  /** All requests of a connection share the same bytes. */
  readonly #known = new WeakMap<Uint8Array, Identity | "unreadable">();

  constructor(own: Config) {
    this.#own = own;
    this.#fingerprints = new Set(own.allowed_fingerprints.map(toFingerprint));
    this.#isAllowedName = own.allowed_san.length === 0 ? null : compileNames(own.allowed_san);
  }

  auth(context: RequestContext): Outcome {
    const own = this.#own;
    if (isExempt(context, own)) return undefined;
    const certificate = context.tls?.clientCertificate ?? null;
    if (certificate === null)
      return refuse(context, own, {
        reason: "auth.mtls.missing",
        detail: "a client certificate is required",
        challenge: CHALLENGE,
      });
    const identity = this.#identityOf(certificate);
    if (identity === "unreadable") return this.#reject(context, "malformed");
    const problem = this.#problemOf(identity);
    if (problem !== null) return this.#reject(context, problem);
    const consumer = this.#consumerOf(context, identity);
    if (consumer === undefined) return this.#reject(context, "consumer_unknown");
    context.authenticate(consumer, { credentialId: identity.fingerprint });
    return undefined;
  }

  #identityOf(certificate: Uint8Array): Identity | "unreadable" {
    const known = this.#known.get(certificate);
    if (known !== undefined) return known;
    const identity = readIdentity(certificate) ?? "unreadable";
    this.#known.set(certificate, identity);
    return identity;
  }

  #problemOf(identity: Identity): string | null {
    if (Date.now() > identity.notAfter) return "expired";
    if (this.#fingerprints.size > 0 && !this.#fingerprints.has(identity.fingerprint))
      return "fingerprint";
    return this.#isAllowedName === null || this.#isAllowedName(identity) ? null : "san";
  }

  /** Null: no consumer is expected; undefined: there is no consumer for the certificate. */
  #consumerOf({ consumers }: RequestContext, identity: Identity): ConsumerView | null | undefined {
    const { consumer_by: by } = this.#own;
    if (by === null) return null;
    for (const name of namesBy(by, identity)) {
      const consumer = consumers.byCustomId(name) ?? consumers.byUsername(name);
      if (consumer !== null) return consumer;
    }
    return undefined;
  }

  #reject(context: RequestContext, reason: string): Outcome {
    return refuse(context, this.#own, {
      reason: `auth.mtls.${reason}`,
      detail: "the client certificate is not allowed",
      status: 403,
      challenge: CHALLENGE,
    });
  }
}

function namesBy(by: NonNullable<Config["consumer_by"]>, identity: Identity): readonly string[] {
  switch (by) {
    case "san":
      return identity.names.map(({ value }) => value);
    case "cn":
      return identity.commonName === null ? [] : [identity.commonName];
    case "fingerprint":
      return [identity.fingerprint];
    default:
      return by satisfies never;
  }
}
