// Where TCP routers of labels listen: TLS ports that exist already, which they share by server name; knows no label.
import {
  type SharedPort,
  type SharedPorts,
  usualEntryPoints,
} from "../import/traefik/entry-points.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { withProxyNetworks } from "../net/known-proxies.ts";

/**
 * An entry point is an HTTPS listener or a person's stream route of that name, and the usual ones for HTTPS (`websecure`) are all
 * HTTPS listeners, as for HTTP routers.
 */
export function sharedPortsOf({
  listeners,
  stream_routes: streams,
  settings,
}: Pick<GatewayConfig, "listeners" | "stream_routes" | "settings">): SharedPorts {
  const secure = [...listeners.values()].filter(
    ({ enabled, protocol }) => enabled && protocol === "https",
  );
  return (entryPoint) => {
    const named = secure.filter(({ name }) => name === entryPoint);
    const isUsual = usualEntryPoints.get(entryPoint)?.isTls === true;
    const found = named.length === 0 && isUsual ? secure : named;
    const usable = found
      .filter(({ http3 }) => !http3)
      .map(({ address, port, proxy_protocol: expectsHeader, trusted_proxies: trusted }) => ({
        address,
        port,
        proxies: expectsHeader ? withProxyNetworks(trusted, settings) : null,
      }));
    const [blocked] = found;
    if (blocked !== undefined && usable.length === 0)
      return `the listener ${blocked.name} offers HTTP/3, which cannot be routed by server name: turn it off there`;
    // Objects of labels must not open ports for other labels.
    const ofPerson = [...streams.values()].flatMap((route): readonly SharedPort[] => {
      const isShared = route.tls_mode === "passthrough" && route.sni.length > 0;
      if (route.name !== entryPoint || route.managed_by !== undefined) return [];
      if (!route.enabled || !isShared || route.listen_port === null) return [];
      const { listen_address: address, listen_port: port } = route;
      const proxies = route.proxy_protocol_in ? route.proxy_protocol_trusted : null;
      return [{ address, port, proxies }];
    });
    const ports = new Map(
      [...usable, ...ofPerson].map((one) => [`${one.address} ${one.port}`, one]),
    );
    if (ports.size > 0) return [...ports.values()];
    return `labels open no ports: add an HTTPS listener with the name ${entryPoint}, or a stream route of this name for TLS passthrough with a server name`;
  };
}
