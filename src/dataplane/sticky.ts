// Session affinity: a cookie that names a target without saying which, and that no client can make up; knows no balancer.
import { createHmac } from "node:crypto";
import type { Service } from "../model/service.ts";
import { cookieValue } from "../http/cookie.ts";

/** Bytes of a signature in a cookie: 96 bits cannot be guessed. */
const SIGNATURE_BYTES = 12;

/** The targets of one service by the value of their cookie. */
export class StickyTargets<T extends { readonly id: string }> {
  readonly #cookie: string;
  readonly #ttl: number;
  readonly #byValue: ReadonlyMap<string, T>;
  readonly #values: ReadonlyMap<string, string>;

  /** `key` is the same in all workers and after a restart. */
  constructor(service: Service, targets: readonly T[], key: string) {
    this.#cookie = service.sticky.cookie;
    this.#ttl = service.sticky.ttl;
    const values = targets.map(
      (target) => [cookieFor(service.id, target.id, key), target] as const,
    );
    this.#byValue = new Map(values);
    this.#values = new Map(values.map(([value, target]) => [target.id, value]));
  }

  /** The target that the client's cookie names; null when it has none, or one that this service did not give. */
  targetOf(cookies: string | null): T | null {
    const value = cookieValue(cookies, this.#cookie);
    return value === null ? null : (this.#byValue.get(value) ?? null);
  }

  /** Value of Set-Cookie that keeps the client on the target (RFC 6265 section 4.1). */
  setCookie(target: T, isSecure: boolean): string {
    const age = this.#ttl === 0 ? "" : `; Max-Age=${this.#ttl}`;
    const secure = isSecure ? "; Secure" : "";
    return `${this.#cookie}=${this.#values.get(target.id) ?? ""}; Path=/; HttpOnly; SameSite=Lax${age}${secure}`;
  }
}

/**
 * Adds the cookie to the fields of an answer. What a shared cache kept would bind everybody to one target, so the answer
 * becomes one for this client alone (as with `nocache` of HAProxy's `cookie insert`).
 */
export function addStickyCookie(fields: Headers, cookie: string): void {
  fields.append("Set-Cookie", cookie);
  const control = fields.get("cache-control") ?? "";
  if (!/(^|[\s,])(private|no-store)([\s,]|$)/i.test(control))
    fields.append("Cache-Control", "private");
}

function cookieFor(serviceId: string, targetId: string, key: string): string {
  const signature = createHmac("sha256", key).update(`${serviceId} ${targetId}`).digest();
  return signature.subarray(0, SIGNATURE_BYTES).toString("base64url");
}
