// Maps the provider's claims to an identity, authorizes it, and sets upstream headers; knows no token.
import { type Outcome, reject } from "../../pdk/response.ts";
import { storeClaims } from "../../pdk/authentication.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { Config } from "./settings.ts";

type Document = Readonly<Record<string, unknown>>;

/** Values by the claim names of the settings. */
export type Known = Readonly<Record<string, unknown>>;

export class Identity {
  readonly #own: Config;
  readonly #headers: readonly (readonly [string, string])[];
  /** All claims that the settings name. */
  readonly names: readonly string[];

  constructor(own: Config) {
    this.#own = own;
    this.#headers = Object.entries(own.headers).map(([name, claim]) => [name.toLowerCase(), claim]);
    const asked = [...Object.values(own.headers), ...Object.keys(own.required_claims)];
    this.names = [...new Set([...asked, own.groups_claim])].sort();
  }

  /** Picks these claims; later sources fill in what earlier ones lack. */
  pick(...sources: readonly Document[]): Known {
    const known: Record<string, unknown> = {};
    for (const name of this.names)
      for (const source of sources) {
        const value = claimAt(source, name);
        if (value === undefined || value === null) continue;
        known[name] = value;
        break;
      }
    return known;
  }

  isComplete(known: Known): boolean {
    return this.names.every((name) => known[name] !== undefined);
  }

  /** Removes what clients send under the names of these headers. */
  strip({ upstream }: RequestContext): void {
    for (const [name] of this.#headers) upstream.removeHeader(name);
  }

  /** Authenticates the user, or rejects the request. */
  admit(context: RequestContext, subject: string, known: Known): Outcome {
    const { required_claims: required, allowed_groups: allowed, groups_claim } = this.#own;
    for (const [name, wanted] of Object.entries(required)) {
      const value = known[name];
      if (value !== wanted && !(Array.isArray(value) && value.includes(wanted)))
        return forbidden("auth.oidc.claim");
    }
    const groups = groupsOf(known[groups_claim]);
    if (allowed.length > 0 && !groups.some((each) => allowed.includes(each)))
      return forbidden("auth.oidc.group");
    const { consumer, isAnonymous, credential } = context;
    // A client that was authenticated before keeps its identity.
    const before = isAnonymous ? null : consumer;
    context.authenticate(before, {
      credential: before === null ? null : credential,
      credentialId: subject,
      groups,
    });
    storeClaims(context, { sub: subject, ...known });
    for (const [name, claim] of this.#headers) {
      const value = fieldValue(known[claim]);
      if (value !== "") context.upstream.setHeader(name, value);
    }
    return undefined;
  }
}

const forbidden = (reason: string) =>
  reject(403, reason, { detail: "this account is not allowed to use the application" });

function claimAt(claims: Document, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Document)[part];
  }
  return value;
}

function groupsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return value === "" ? [] : [value];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/**
 * A claim as a header value: lists separated by commas, objects as JSON. Percent signs, everything but printable ASCII, and
 * commas inside of members are percent-encoded, so that one group cannot be read as two.
 */
function fieldValue(value: unknown): string {
  const encoded = (text: string, what: RegExp) => text.trim().replace(what, encodeURIComponent);
  if (Array.isArray(value))
    return value.map((each) => encoded(textOf(each), /[^\x20-\x7e]+|[%,]/gu)).join(",");
  return encoded(textOf(value), /[^\x20-\x7e]+|%/gu);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.toWellFormed();
  return value === undefined || value === null ? "" : JSON.stringify(value).toWellFormed();
}
