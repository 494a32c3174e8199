// The configuration of a first start; knows no database.
import { decode } from "../model/decode.ts";
import {
  type CollectionName,
  type GatewayConfig,
  mapCollections,
} from "../model/gateway-config.ts";
import { type Listener, listenerInput } from "../model/listener.ts";
import { settingsInput } from "../model/settings.ts";
import { ssoRecord } from "../model/sso.ts";

export interface FirstListeners {
  readonly http: { readonly hostname: string; readonly port: number };
  readonly https: { readonly hostname: string; readonly port: number };
}

/** One listener for each scheme, and default settings. */
export function firstConfiguration({ http, https }: FirstListeners, at: string): GatewayConfig {
  const listeners = [toListener("http", http, at), toListener("https", https, at)];
  return {
    ...emptyConfiguration(at),
    listeners: new Map(listeners.map((listener) => [listener.id, listener])),
  };
}

/** No objects, and default settings. */
export function emptyConfiguration(at: string): GatewayConfig {
  return {
    ...(mapCollections(() => new Map()) as Pick<GatewayConfig, CollectionName>),
    settings: { ...decode(settingsInput, {}), updated_at: at },
    sso: { ...decode(ssoRecord, {}), updated_at: at },
  };
}

function toListener(
  protocol: "http" | "https",
  { hostname, port }: FirstListeners["http"],
  at: string,
): Listener {
  const fields = decode(listenerInput, { name: protocol, address: hostname, port, protocol });
  return { id: Bun.randomUUIDv7(), ...fields, created_at: at, updated_at: at };
}
