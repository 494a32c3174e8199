// Rules about listeners on one address and port, which share a socket and differ by host names; knows no other object.
import type { Listener } from "../model/listener.ts";
import { overlaps } from "./address-overlap.ts";
import type { Report } from "../model/object-rules.ts";

/** What applies before a client has named a host: equal for all listeners that share a port. */
const PORT_FIELDS = [
  "protocol",
  "engine",
  "http3",
  "proxy_protocol",
  "strict_sni",
  "max_connections",
  "max_connections_per_address",
] as const satisfies readonly (keyof Listener)[];

/** What only our own engine chooses by the name in the TLS handshake. */
const NAME_FIELDS = [
  "max_concurrent_streams",
  "max_connection_age",
  "http2",
  "tls_min_version",
  "client_auth",
  "client_ca",
  "client_crl",
  "idle_timeout",
] as const satisfies readonly (keyof Listener)[];

/** Reports why two enabled listeners cannot share an address and port. */
export function checkSharing(listener: Listener, other: Listener, report: Report): void {
  if (!overlaps(other, listener)) return;
  const where = `${listener.address} port ${listener.port}`;
  const isSame = other.address === listener.address;
  if (!isSame || (listener.hosts.length === 0 && other.hosts.length === 0))
    return report("port", `${where} belongs to listener "${other.name}"${isSame ? HINT : ""}`, 409);
  const taken = new Set(other.hosts.map(hostKey));
  for (const [index, host] of listener.hosts.entries())
    if (taken.has(hostKey(host)))
      report(`hosts[${index}]`, `${host} on ${where} belongs to listener "${other.name}"`, 409);
  // The networks whose PROXY header the gateway trusts belong to the socket too.
  const fields = [
    ...PORT_FIELDS,
    ...(listener.engine === "sluice" && listener.protocol === "https" ? [] : NAME_FIELDS),
    ...(listener.proxy_protocol ? (["trusted_proxies"] as const) : []),
  ];
  for (const field of fields)
    if (JSON.stringify(listener[field]) !== JSON.stringify(other[field]))
      report(
        field,
        `must be as that of listener "${other.name}", which has the same address and port: change both in one import, or disable one meanwhile`,
        409,
      );
}

const HINT = "; listeners with different hosts may share it";

const hostKey = (host: string): string => host.toLowerCase().replace(/\.$/, "");
