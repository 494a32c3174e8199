// What a gateway is configured with before anybody said anything; knows no database.
import { decode } from "../model/decode.ts";
import type { ConfigChange } from "../model/gateway-config.ts";
import { type Listener, listenerInput } from "../model/listener.ts";
import { settingsInput } from "../model/settings.ts";

export interface FirstListeners {
  readonly http: { readonly hostname: string; readonly port: number };
  readonly https: { readonly hostname: string; readonly port: number };
}

/** The change from nothing to the first revision: one listener for each scheme, and default settings. */
export function firstConfiguration({ http, https }: FirstListeners, at: string): ConfigChange {
  const none = { upserts: [], removals: [] };
  const listener = (protocol: "http" | "https", { hostname, port }: FirstListeners["http"]) =>
    ({
      id: Bun.randomUUIDv7(),
      ...decode(listenerInput, { name: protocol, address: hostname, port, protocol }),
      created_at: at,
      updated_at: at,
    }) satisfies Listener;
  return {
    services: none,
    targets: none,
    routes: none,
    listeners: { upserts: [listener("http", http), listener("https", https)], removals: [] },
    settings: { ...decode(settingsInput, {}), updated_at: at },
  };
}
