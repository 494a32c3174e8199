// Opens the identity provider of single sign-on, with limits on requests to it; knows no sign-in.
import type { Fetch } from "../../dialer/dialer.ts";
import type { Clock } from "../../clock.ts";
import { readText, reasonOf, type RequestLimits } from "../../control/outgoing-request.ts";
import { OidcError } from "../../oidc/failure.ts";
import { OidcProvider, type Send } from "../../oidc/provider.ts";

interface ProviderOptions {
  readonly clock: Clock;
  readonly limits: RequestLimits;
  readonly fetch: Fetch;
}

/** Sends requests to the provider within the limits. */
const sendWithin =
  ({ fetch: send, limits }: ProviderOptions): Send =>
  async (url, { method, headers, body }) => {
    const host = URL.parse(url)?.host ?? "";
    try {
      const response = await send(url, {
        method,
        headers,
        ...(body instanceof URLSearchParams ? { body } : {}),
        redirect: "manual",
        signal: AbortSignal.timeout(limits.timeoutMs),
      });
      const text = await readText(response, limits.maxBytes);
      if (text === null) throw new OidcError("unusable", `the response of ${host} is too large`);
      return withBody(response, text);
    } catch (error) {
      if (error instanceof OidcError) throw error;
      throw new OidcError("unreachable", `${host} ${reasonOf(error, limits)}`);
    }
  };

/** Only the head fields that say what the body is, or why it is refused. */
function withBody({ status, headers }: Response, text: string): Response {
  const copied = ["content-type", "www-authenticate"].flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value] as [string, string]];
  });
  return new Response(text === "" ? null : text, { status, headers: copied });
}

/** Returns the provider of an issuer; another issuer starts with empty caches. */
export class Providers {
  readonly #options: ProviderOptions;
  #current: OidcProvider | null = null;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  of(issuer: string): OidcProvider {
    if (this.#current?.issuer !== issuer) this.#current = this.open(issuer);
    return this.#current;
  }

  /** One with empty caches. */
  open(issuer: string): OidcProvider {
    const { clock } = this.#options;
    return new OidcProvider({ issuer, clock, send: sendWithin(this.#options), retryAfterMs: 0 });
  }
}
