// Sticky sessions: a cookie with an opaque, unforgeable value for each target; knows no balancer.
import { createHmac } from "node:crypto";
import type { Service } from "../model/service.ts";
import { cookieValue } from "../http/cookie.ts";
import type { FieldList } from "../http/field-list.ts";

/** 96 bits cannot be guessed. */
const SIGNATURE_BYTES = 12;

/** The targets of one service by cookie value. */
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

  /** The target of the client's cookie; null without a cookie of this service. */
  targetOf(cookies: string | null): T | null {
    const value = cookieValue(cookies, this.#cookie);
    return value === null ? null : (this.#byValue.get(value) ?? null);
  }

  /** Value of Set-Cookie for the target (RFC 6265 section 4.1). */
  setCookie(target: T, isSecure: boolean): string {
    const age = this.#ttl === 0 ? "" : `; Max-Age=${this.#ttl}`;
    const secure = isSecure ? "; Secure" : "";
    return `${this.#cookie}=${this.#values.get(target.id) ?? ""}; Path=/; HttpOnly; SameSite=Lax${age}${secure}`;
  }
}

/**
 * Adds the cookie to a response. A shared cache would bind all its clients to one target, so the response
 * becomes private (as with `nocache` of HAProxy's `cookie insert`).
 */
export function addStickyCookie(fields: FieldList, cookie: string): void {
  fields.append("Set-Cookie", cookie);
  const control = fields.get("cache-control");
  if (control === null) fields.append("Cache-Control", "private");
  else if (!/(^|[\s,])(private|no-store)([\s,]|$)/i.test(control))
    fields.set("Cache-Control", `${control}, private`);
}

function cookieFor(serviceId: string, targetId: string, key: string): string {
  const signature = createHmac("sha256", key).update(`${serviceId} ${targetId}`).digest();
  return signature.subarray(0, SIGNATURE_BYTES).toString("base64url");
}
