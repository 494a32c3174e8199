// The flags --http and --https: listeners at the first start, a warning afterwards; knows no database.
import type { Log } from "../log.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { FirstListeners } from "../store/first-configuration.ts";
import { type Address, formatAddress } from "./flags.ts";
import { defaultHttp, defaultHttps, type ServeOptions } from "./serve.ts";

type Given = Pick<ServeOptions, "http" | "https">;

/** The listeners of the first revision; a port of 0 becomes a free one, because the stored port must be fixed. */
export function firstListeners({ http, https }: Given): FirstListeners {
  return { http: withPort(http ?? defaultHttp), https: withPort(https ?? defaultHttps) };
}

function withPort({ hostname, port }: Address): Address {
  if (port !== 0) return { hostname, port };
  const probe = Bun.listen({ hostname, port: 0, socket: { data() {} } });
  probe.stop(true);
  return { hostname, port: probe.port };
}

/** Stored listeners win over the command line; warns about flags that differ from them. */
export function warnAboutIgnoredFlags(given: Given, config: GatewayConfig, log: Log): void {
  for (const protocol of ["http", "https"] as const) {
    const wanted = given[protocol];
    if (wanted === null) continue;
    const listeners = [...config.listeners.values()].filter((l) => l.protocol === protocol);
    const same = listeners.some(
      ({ address, port }) =>
        address === wanted.hostname && (port === wanted.port || wanted.port === 0),
    );
    if (same) continue;
    const stored = listeners.map(({ address, port }) => formatAddress({ hostname: address, port }));
    log.warn(
      `--${protocol} ${formatAddress(wanted)} is ignored: since the first start the database holds the listeners; change them with the management API`,
      { stored },
    );
  }
}
