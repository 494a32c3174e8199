// Opens the provider, to which requests go as callouts of the gateway; knows no session.
import { systemClock } from "../../clock.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import { OidcError, OidcProvider } from "../../pdk/oidc.ts";
import type { Config } from "./settings.ts";

/** Time between attempts while the provider is down. */
const RETRY_AFTER_MS = 2000;

export function providerOf({ issuer, timeout: timeoutMs }: Config, kit: PluginKit): OidcProvider {
  return new OidcProvider({
    issuer,
    clock: systemClock,
    retryAfterMs: RETRY_AFTER_MS,
    async send(url, { method, headers, body }) {
      const form = body instanceof URLSearchParams ? body.toString() : null;
      try {
        const response = await kit.callout({ url, method, headers, body: form, timeoutMs });
        const bytes = response.body.length === 0 ? null : new Uint8Array(response.body);
        return new Response(bytes, { status: response.status, headers: response.headers });
      } catch (error) {
        const where = URL.parse(url)?.host ?? "";
        throw new OidcError("unreachable", `${where}: ${(error as Error).message}`);
      }
    },
  });
}
