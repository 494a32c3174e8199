// Authenticates clients by their signatures; knows neither the format of signatures nor of digests.
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { type Outcome, reject } from "../../pdk/response.ts";
import { isExempt, refuse, validMaterial } from "../../pdk/authentication.ts";
import { Cache } from "../../pdk/cache.ts";
import type { CredentialView, RequestContext } from "../../pdk/context.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import type { HmacConfig } from "../hmac-auth.ts";
import type { SignedMessage } from "./components.ts";
import { fitsDigest } from "./digest.ts";
import { covers, type MessageSignature, readSignatures, signatureBase } from "./signature.ts";

const CHALLENGE = "Signature";
const MAX_KEYS = 1000;
const HOUR_MS = 3_600_000;
const MAX_NONCE_CHARACTERS = 256;
/** Most that the clocks of two nodes may differ without a replay being possible. */
const CLOCKS_MS = 60_000;

/** The end of the reason, and the detail for the client. */
const problems = {
  missing: "a signature is required",
  malformed: "the signature is malformed",
  key_unknown: "the signature is not valid",
  key_expired: "the signature is not valid",
  algorithm: "the algorithm of the signature is not accepted",
  components: "the signature does not cover all required components",
  no_time: "the signature has no creation time",
  too_old: "the signature is too old",
  too_new: "the signature was created in the future",
  expired: "the signature has expired",
  wrong: "the signature is not valid",
  no_nonce: "the signature has no nonce, or too long a nonce",
  replayed: "the signature was used before",
  digest: "the Content-Digest is missing, not signed or wrong",
} as const;
type Problem = keyof typeof problems;

interface Good {
  readonly signature: MessageSignature;
  readonly credential: CredentialView;
}

export class Authenticator {
  readonly #own: HmacConfig;
  readonly #kit: PluginKit;
  readonly #keys = new Cache<KeyObject>({ maxEntries: MAX_KEYS, ttlMs: HOUR_MS });

  constructor(own: HmacConfig, kit: PluginKit) {
    this.#own = own;
    this.#kit = kit;
  }

  auth(context: RequestContext): Outcome | Promise<Outcome> {
    const own = this.#own;
    if (isExempt(context, own)) return undefined;
    const input = context.header("signature-input");
    const value = context.header("signature");
    if (input === null || value === null) return this.#reject(context, "missing");
    const signatures = readSignatures(input, value);
    const [first] = signatures ?? [];
    if (signatures === null || first === undefined) return this.#reject(context, "malformed");
    const good = this.#firstGood(signatures, context);
    if (typeof good === "string") return this.#reject(context, good);
    if (!own.validate_body || !(context.hasBody || covers(good.signature, "content-digest")))
      return this.#accept(context, good);
    return this.#checkBody(context, good);
  }

  /** The first valid one, or the problem of the first one. */
  #firstGood(signatures: readonly MessageSignature[], context: RequestContext): Good | Problem {
    let first: Problem | null = null;
    for (const signature of signatures) {
      const verdict = this.#verify(signature, context);
      if (typeof verdict !== "string") return verdict;
      first ??= verdict;
    }
    return first ?? "malformed";
  }

  #verify(signature: MessageSignature, context: RequestContext): Good | Problem {
    const { keyId, algorithm } = signature;
    const credential = keyId === null ? null : context.consumers.credential("hmac", keyId);
    if (credential === null) return "key_unknown";
    const own = credential.algorithm;
    const isAccepted = (this.#own.algorithms as readonly (string | null)[]).includes(own);
    if (!isAccepted || (algorithm !== null && algorithm !== own)) return "algorithm";
    const problem = this.#problemOf(signature);
    if (problem !== null) return problem;
    const base = signatureBase(signature, messageOf(context));
    if (base === null) return "components";
    const material = validMaterial(credential, Date.now());
    if (material.length === 0) return "key_expired";
    const isRight =
      own === "ed25519"
        ? this.#fitsPublicKey(credential, base, signature.value)
        : material.some(
            ({ secret }) => secret !== null && fitsSecret(secret, base, signature.value),
          );
    return isRight ? { signature, credential } : "wrong";
  }

  /** Problems that need no key to find; null: none. */
  #problemOf(signature: MessageSignature): Problem | null {
    const { required_components: required, clock_skew: skew, nonce_cache: needsNonce } = this.#own;
    if (!required.every((name) => covers(signature, name))) return "components";
    const { created, expires, nonce } = signature;
    const now = Math.floor(Date.now() / 1000);
    if (created === null) return "no_time";
    if (created > now + skew) return "too_new";
    if (created < now - skew) return "too_old";
    if (expires !== null && expires < now) return "expired";
    if (!needsNonce) return null;
    const length = nonce?.length ?? 0;
    return length === 0 || length > MAX_NONCE_CHARACTERS ? "no_nonce" : null;
  }

  #fitsPublicKey({ publicKey }: CredentialView, base: Uint8Array, value: Uint8Array): boolean {
    if (publicKey === null) return false;
    let key = this.#keys.get(publicKey);
    if (key === undefined) {
      key = createPublicKey(publicKey);
      this.#keys.set(publicKey, key);
    }
    return verify(null, base, key, value);
  }

  async #checkBody(context: RequestContext, good: Good): Promise<Outcome> {
    const field = context.header("content-digest");
    if (field === null || !covers(good.signature, "content-digest"))
      return this.#reject(context, "digest");
    const body = await context.readBody(this.#own.max_body);
    if (body === null)
      return reject(413, "auth.hmac.body_too_large", {
        detail: "the body is too large to be verified",
      });
    return fitsDigest(field, body) ? this.#accept(context, good) : this.#reject(context, "digest");
  }

  #accept(context: RequestContext, good: Good): Outcome | Promise<Outcome> {
    if (!this.#own.nonce_cache) return this.#admit(context, good);
    if (this.#isReplay(good.signature)) return this.#reject(context, "replayed");
    const { shared } = this.#kit;
    if (shared === null) return this.#admit(context, good);
    const first = shared.once(nonceKey(good.signature), this.#nonceMs + CLOCKS_MS);
    const judge = (isFirst: boolean | null) => {
      if (isFirst === null) shared.noteFallback();
      return isFirst === false ? this.#reject(context, "replayed") : this.#admit(context, good);
    };
    return first === null ? judge(null) : first.then(judge);
  }

  #admit(context: RequestContext, { credential }: Good): Outcome {
    context.authenticate(credential.consumer, { credential });
    this.#kit.used(credential.id);
    this.hide(context);
    return undefined;
  }

  hide({ upstream }: RequestContext): void {
    if (!this.#own.hide_credentials) return;
    upstream.removeHeader("signature");
    upstream.removeHeader("signature-input");
  }

  /** Only valid signatures are stored, so that other clients can use up neither a nonce nor the memory. */
  #isReplay(signature: MessageSignature): boolean {
    // The previous window counts as well.
    const { current, previous } = this.#kit.counters.add(nonceKey(signature), 1, this.#nonceMs);
    return current + previous > 1;
  }

  /** A signature with a future time is valid for twice the clock skew. */
  get #nonceMs(): number {
    return 2 * this.#own.clock_skew * 1000;
  }

  #reject(context: RequestContext, problem: Problem): Outcome {
    return refuse(context, this.#own, {
      reason: `auth.hmac.${problem}`,
      detail: problems[problem],
      challenge: CHALLENGE,
    });
  }
}

const nonceKey = ({ keyId, nonce }: MessageSignature) => JSON.stringify([keyId, nonce]);

function fitsSecret(secret: string, base: Uint8Array, value: Uint8Array): boolean {
  const expected = createHmac("sha256", secret).update(base).digest();
  return expected.byteLength === value.byteLength && timingSafeEqual(expected, value);
}

const messageOf = (context: RequestContext): SignedMessage => ({
  method: context.method,
  scheme: context.scheme,
  authority: context.clientHost,
  path: context.path,
  query: context.query,
  target: context.target,
  header: (name) => context.header(name),
});
