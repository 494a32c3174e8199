// Who somebody is by the claims of the provider, whether that is enough, and what of it goes upstream; knows no token.
import { type Outcome, reject } from "../../pdk/response.ts";
import { storeClaims } from "../../pdk/authentication.ts";
import type { RequestContext } from "../../pdk/context.ts";
import type { Document } from "./provider.ts";
import type { Config } from "./settings.ts";

/** Values by the name under which the settings ask for them. */
export type Known = Readonly<Record<string, unknown>>;

export class Identity {
  readonly #own: Config;
  readonly #headers: readonly (readonly [string, string])[];
  /** Every claim that anything is asked of. */
  readonly names: readonly string[];

  constructor(own: Config) {
    this.#own = own;
    this.#headers = Object.entries(own.headers).map(([name, claim]) => [name.toLowerCase(), claim]);
    const asked = [...Object.values(own.headers), ...Object.keys(own.required_claims)];
    this.names = [...new Set([...asked, own.groups_claim])].sort();
  }

  /** The part of the claims that is asked for; later sources fill in what earlier ones lack. */
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

  /** Whatever a client says of itself under our names stays behind. */
  strip({ upstream }: RequestContext): void {
    for (const [name] of this.#headers) upstream.removeHeader(name);
  }

  /** Says who it is, or why that is not enough. */
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
    // Whom another plugin has recognised before stays who it is.
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
  reject(403, reason, { detail: "this account may not use the application" });

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
 * A claim as a field value: lists with commas between, objects as JSON. Percent signs, whatever is not printable ASCII, and
 * commas in members of lists are percent-encoded, so that nobody's group can be read as two.
 */
export function fieldValue(value: unknown): string {
  const encoded = (text: string, what: RegExp) => text.trim().replace(what, encodeURIComponent);
  if (Array.isArray(value))
    return value.map((each) => encoded(textOf(each), /[^\x20-\x7e]+|[%,]/gu)).join(",");
  return encoded(textOf(value), /[^\x20-\x7e]+|%/gu);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.toWellFormed();
  return value === undefined || value === null ? "" : JSON.stringify(value).toWellFormed();
}
