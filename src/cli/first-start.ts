// What --http and --https mean: listeners at the first start, at most a warning afterwards; knows no database.
import type { Log } from "../log.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { FirstListeners } from "../store/first-configuration.ts";
import { type Address, formatAddress } from "./flags.ts";
import { defaultHttp, defaultHttps, type ServeOptions } from "./serve.ts";

type Given = Pick<ServeOptions, "http" | "https">;

/** The listeners of the first revision; a port of 0 becomes one that is free now, because the stored one has to last. */
export function firstListeners({ http, https }: Given): FirstListeners {
  return { http: withPort(http ?? defaultHttp), https: withPort(https ?? defaultHttps) };
}

function withPort({ hostname, port }: Address): Address {
  if (port !== 0) return { hostname, port };
  const probe = Bun.listen({ hostname, port: 0, socket: { data() {} } });
  probe.stop(true);
  return { hostname, port: probe.port };
}

/** What is stored wins over the command line; whoever gives a flag that says something else should know. */
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
      `--${protocol} ${formatAddress(wanted)} is ignored: listeners are kept in the database since the first start, and cannot be changed yet`,
      { stored },
    );
  }
}
