// Servers of Caddy: where they listen, and what their routes share.
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";
import { anything } from "./matching.ts";
import { addRoutes, type Site } from "./routes.ts";

interface Ports {
  readonly http: number;
  readonly https: number;
}

export function addServers(http: Members, context: CaddyContext): void {
  const ports = { http: http.number("http_port") ?? 80, https: http.number("https_port") ?? 443 };
  http.leaveOut("grace_period", "settings.limits.shutdown_timeout decides");
  http.leaveOut("shutdown_delay", "settings.limits.shutdown_timeout decides");
  http.leaveOut("metrics", "metrics are built in");
  const servers = http.object("servers");
  const sites: Site[] = [];
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name);
    if (server === null || server === undefined) continue;
    server.call(`server "${name}"`);
    addServer(server, { name, ports, context, sites });
  }
  // The first that fits is taken there; here a higher number is tried first.
  for (const [index, { id }] of sites.entries()) {
    const made = context.output.made.find((object) => object.id === id);
    if (made !== undefined) made.fields["priority"] = sites.length - index;
  }
}

interface Server {
  readonly name: string;
  readonly ports: Ports;
  readonly context: CaddyContext;
  readonly sites: Site[];
}

function addServer(server: Members, { name, ports, context, sites }: Server): void {
  const listening = server.texts("listen").map(portOf);
  const policies = server.objects("tls_connection_policies");
  const automatic = server.object("automatic_https");
  const isOff = automatic?.flag("disable") ?? false;
  const redirects = !(automatic?.flag("disable_redirects") ?? false);
  const skipped = new Set([
    ...(automatic?.texts("skip") ?? []),
    ...(automatic?.texts("skip_certificates") ?? []),
  ]);
  automatic?.leaveOut("ignore_loaded_certificates", "certificates are chosen by their names");
  const isHttps = policies.length > 0 || listening.includes(ports.https);
  const usual = [ports.http, ports.https];
  const listeners = listening
    .filter((port) => port !== null && !usual.includes(port))
    .map((port) => addListener({ name, port: port ?? 0, isHttps: policies.length > 0 }, context));
  const isGuarded = policies.some((policy) => policy.has("client_authentication"));
  for (const policy of policies) {
    policy.leaveOut("client_authentication", "set client_auth of the listener");
    policy.leaveOut("match", "certificates are chosen by their names");
    for (const field of ["cipher_suites", "curves", "alpn", "protocol_min", "protocol_max"])
      policy.leaveOut(field, "listeners have tls_min_version, http2 and http3");
    for (const field of ["certificate_selection", "default_sni", "fallback_sni"])
      policy.leaveOut(field, "certificates are chosen by their names");
  }
  leaveOutOfServer(server);
  const first = sites.length;
  const scope = {
    match:
      listening.every((port) => port === ports.http) && listening.length > 0
        ? { ...anything, protocols: ["http"] }
        : anything,
    steps: [],
    rewrite: null,
    lost: isGuarded ? `client certificates of ${server.label}` : null,
    fields: {
      ...(listeners.length > 0 && listeners.length === listening.length
        ? { listener_ids: listeners }
        : {}),
      ...(isHttps && redirects && !isOff ? { https_redirect: 308 } : {}),
    },
  };
  addRoutes(server.objects("routes"), scope, { context, sites, key: `${name}`, depth: 0 });
  if (!isHttps || isOff) return;
  for (const { hosts } of sites.slice(first))
    for (const host of hosts) if (!skipped.has(host)) context.secured.add(host);
}

/** `:443`, `127.0.0.1:8080`, `tcp/[::]:80`. */
function portOf(address: string): number | null {
  const [, port] = /:(\d{1,5})$/.exec(address) ?? [];
  return port === undefined ? null : Number(port);
}

function addListener(
  { name, port, isHttps }: { name: string; port: number; isHttps: boolean },
  { output }: CaddyContext,
): string {
  const label = `port ${port} of server "${name}"`;
  output.report.changed(
    label,
    "became a listener that is switched off: enable it when Caddy no longer listens there",
  );
  return output.add(
    "listeners",
    { key: `${name} ${port}`, label },
    {
      name: output.name("listeners", `caddy-${port}`),
      port,
      protocol: isHttps ? "https" : "http",
      enabled: false,
    },
  );
}

function leaveOutOfServer(server: Members): void {
  server.leaveOut("logs", "use the plugin access-log");
  server.leaveOut("errors", "use the plugin error-pages");
  server.leaveOut("named_routes", "write them where they are used");
  for (const field of ["trusted_proxies", "client_ip_headers", "trusted_proxies_strict"])
    server.leaveOut(field, "set trusted_proxies of the listener or the settings");
  for (const field of ["read_timeout", "read_header_timeout", "write_timeout", "idle_timeout"])
    server.leaveOut(field, "listeners and services have time-outs of their own");
  server.leaveOut("max_header_bytes", "listeners have max_header_bytes");
  server.leaveOut("strict_sni_host", "listeners have strict_sni");
  server.leaveOut("protocols", "listeners have http2 and http3");
  server.leaveOut("listener_wrappers", "listeners have proxy_protocol");
}
