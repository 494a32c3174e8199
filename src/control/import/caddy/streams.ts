// The layer 4 app of Caddy, as far as it passes whole ports on.
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";

export function addStreams(app: Members, context: CaddyContext): void {
  const servers = app.object("servers");
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name);
    if (server === null || server === undefined) continue;
    server.call(`layer 4 server "${name}"`);
    const listening = server.texts("listen");
    for (const [index, route] of server.objects("routes").entries())
      for (const address of listening)
        addRoute(route, { name: `${name}-${index + 1}`, address }, context);
  }
}

function addRoute(
  route: Members,
  { name, address }: { readonly name: string; readonly address: string },
  { output }: CaddyContext,
): void {
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
    route.drop("only ports that are passed on, by TLS name or as a whole, are carried over");
    return;
  }
  const dials = proxy.objects("upstreams").flatMap((upstream) => upstream.texts("dial"));
  for (const field of ["health_checks", "load_balancing"])
    proxy.leaveOut(field, "set it in the service");
  const version = proxy.text("proxy_protocol");
  const label = `${route.path} on port ${port}`;
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
        ...{ service_id: serviceId, host, port: Number(target) },
      },
    );
  }
  output.add(
    "stream_routes",
    { key: label, label },
    {
      name: output.name("stream_routes", wanted),
      ...{ listen_port: Number(port), protocol: network, service_id: serviceId, sni },
      tls_mode: ends ? "terminate" : sni.length > 0 ? "passthrough" : "none",
      proxy_protocol_out: version === "v1" || version === "v2" ? version : "off",
      enabled: false,
    },
  );
  output.report.changed(
    label,
    "became a stream route that is switched off: enable it when Caddy no longer listens there",
  );
}
