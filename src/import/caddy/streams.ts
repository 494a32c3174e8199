// Converts the layer 4 app of Caddy for forwarded ports to stream routes.
import { isIP } from "node:net";
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";

export function addStreams(app: Members, context: CaddyContext): void {
  const servers = app.object("servers");
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name);
    if (server === null || server === undefined) continue;
    server.setLabel(`layer 4 server "${name}"`);
    const listening = server.texts("listen");
    // A route that is not imported may have closed connections before the next one.
    let lost: string | null = null;
    for (const [index, route] of server.objects("routes").entries()) {
      route.setLabel(`route ${index + 1} of ${server.label}`);
      let isAdded = true;
      for (const address of listening) {
        const id = addRoute(route, { name: `${name}-${index + 1}`, address }, context);
        isAdded &&= id !== null;
        const what = lost ?? lossOf(route, address);
        if (id !== null && what !== null)
          context.output.loseProtection({ scope: { stream_route_id: id }, what });
      }
      if (!isAdded) lost ??= route.label;
    }
  }
}

/** A protection without an equivalent. */
function lossOf(route: Members, address: string): string | null {
  const isForSni = ({ names }: Members) => names.length === 1 && names[0] === "sni";
  const conditions = route.objects("match").map((match) => match.object("tls"));
  if (conditions.some((tls) => tls === null || !isForSni(tls)))
    return `conditions of ${route.label}`;
  const ends = route.objects("handle").filter((handler) => handler.text("handler") === "tls");
  if (ends.some(({ names }) => names.length > 1)) return `the TLS settings of ${route.label}`;
  const host = hostOf(address);
  return host === "" || isIP(host) !== 0 ? null : `the address of ${route.label}`;
}

/** Empty: all. */
const hostOf = (address: string): string =>
  /^(?:(?:tcp|udp)\/)?\[?([^/]*?)\]?:\d+$/.exec(address)?.[1] ?? "";

function addRoute(
  route: Members,
  { name, address }: { readonly name: string; readonly address: string },
  { output }: CaddyContext,
): string | null {
  const [, network = "tcp", port] = /^(?:(tcp|udp)\/)?[^/]*:(\d+)$/.exec(address) ?? [];
  const matches = route.objects("match");
  const sni = matches.flatMap((match) => match.object("tls")?.texts("sni") ?? []);
  const handlers = route.objects("handle");
  const kinds = handlers.map((handler) => handler.text("handler") ?? "");
  const proxy = handlers.find((handler) => handler.text("handler") === "proxy");
  const isKnown = kinds.every((kind) => kind === "proxy" || kind === "tls");
  const isPlain = matches.every((match) => match.names.every((each) => each === "tls"));
  if (proxy === undefined || !isKnown || !isPlain || port === undefined) {
    for (const part of [...matches, ...handlers]) part.ignoreRest();
    route.drop("only forwarded ports, by TLS name or without a condition, are imported");
    return null;
  }
  const dials = proxy.objects("upstreams").flatMap((upstream) => upstream.texts("dial"));
  for (const field of ["health_checks", "load_balancing"])
    proxy.omit(field, "set it in the service");
  const version = proxy.text("proxy_protocol");
  const label = `${route.label} on port ${port}`;
  const wanted = `${name}-${port}`;
  const ends = kinds.includes("tls");
  const serviceId = output.add(
    "services",
    { key: label, label: `service of ${label}` },
    {
      name: output.name("services", wanted),
      protocol: network,
    },
  );
  for (const dial of dials) {
    const [, bracketed, plain, target] =
      /^(?:(?:tcp|udp)\/)?(?:\[([^\]]+)\]|([^:/{}]+)):(\d+)$/.exec(dial) ?? [];
    const host = bracketed ?? plain ?? "";
    output.add(
      "targets",
      { key: `${label} ${dial}`, label: `target "${dial}" of ${label}` },
      {
        service_id: serviceId,
        host,
        port: Number(target),
      },
    );
  }
  const host = hostOf(address);
  const id = output.add(
    "stream_routes",
    { key: label, label },
    {
      name: output.name("stream_routes", wanted),
      ...(isIP(host) === 0 ? {} : { listen_address: host }),
      listen_port: Number(port),
      protocol: network,
      service_id: serviceId,
      sni,
      tls_mode: ends ? "terminate" : sni.length > 0 ? "passthrough" : "none",
      proxy_protocol_out: version === "v1" || version === "v2" ? version : "off",
      enabled: false,
    },
  );
  output.report.changed(
    label,
    "became a disabled stream route: enable it when Caddy no longer listens there",
  );
  return id;
}
