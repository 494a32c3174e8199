// Servers of Caddy: where they listen, and what their routes share.
import { isIP } from "node:net";
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";
import { addRoutes, type Scope, type Site } from "./routes.ts";
import { addSites } from "./sites.ts";
import { always } from "./terms.ts";

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
  const found: { readonly sites: readonly Site[]; readonly rank: number }[] = [];
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name);
    if (server === null || server === undefined) continue;
    server.call(`server "${name}"`);
    found.push(addServer(server, { name, ports, context }));
  }
  const inOrder = found.toSorted((a, b) => a.rank - b.rank);
  addSites(
    inOrder.flatMap(({ sites }) => sites),
    context,
  );
}

interface Server {
  readonly name: string;
  readonly ports: Ports;
  readonly context: CaddyContext;
}

function addServer(server: Members, { name, ports, context }: Server) {
  const listening = server.texts("listen").map(placeOf);
  const policies = server.objects("tls_connection_policies");
  const automatic = server.object("automatic_https");
  const isOff = automatic?.flag("disable") ?? false;
  const redirects = !(automatic?.flag("disable_redirects") ?? false);
  const skipped = new Set([
    ...(automatic?.texts("skip") ?? []),
    ...(automatic?.texts("skip_certificates") ?? []),
  ]);
  automatic?.leaveOut("ignore_loaded_certificates", "certificates are chosen by their names");
  const isHttps = policies.length > 0 || listening.some((place) => place?.port === ports.https);
  const isUsual = (place: Place | null) =>
    place !== null && place.address === null && [ports.http, ports.https].includes(place.port);
  const own = listening.filter((place) => place !== null && !isUsual(place)) as Place[];
  const listeners = own.map((place) =>
    addListener({ name, place, isHttps: policies.length > 0 }, context),
  );
  const hasListeners = listeners.length > 0 && !listening.some(isUsual);
  const isGuarded = policies.some((policy) => policy.has("client_authentication"));
  for (const policy of policies) leaveOutOfPolicy(policy);
  const hidesAddresses = hasProxyInFront(server);
  leaveOutOfServer(server);
  const isRedirected = isHttps && redirects && !isOff;
  const schemes = new Set(
    listening.filter(isUsual).map((place) => (place?.port === ports.https ? "https" : "http")),
  );
  const scope: Scope = {
    bounds: always,
    steps: [],
    rewrite: null,
    name: "",
    vague: false,
    view: {
      path: "sent",
      patterns: [],
      changedFields: [],
      hidesAddresses,
      isMethodChanged: false,
      isQueryChanged: false,
    },
    lost: isGuarded ? `client certificates of ${server.label}` : unheard(listening, server),
    fields: {
      ...(hasListeners ? { listener_ids: listeners } : {}),
      ...(isRedirected ? { https_redirect: 308 } : {}),
      ...(schemes.size === 1 && !isRedirected ? { protocols: [...schemes] } : {}),
    },
  };
  const sites: Site[] = [];
  const walk = { context, sites, key: name, depth: 0 };
  addRoutes(server.objects("routes"), scope, walk);
  if (hasListeners) sites.push(restOf(server, scope, name));
  for (const { scope: at } of isHttps && !isOff ? sites : [])
    for (const host of at.bounds.over.hosts) if (!skipped.has(host)) context.secured.add(host);
  // Routes of one listener go before those of all, which would take its requests; those for plain requests before redirects.
  return { sites, rank: hasListeners ? 0 : schemes.has("http") && schemes.size === 1 ? 1 : 2 };
}

/** What a server does not serve is not for the routes of another one. */
const restOf = (server: Members, scope: Scope, name: string): Site => ({
  key: `${name} rest`,
  path: server.path,
  scope: { ...scope, lost: null },
  isRest: true,
  ending: { kind: "closed", status: 404, why: `what ${server.label} does not serve` },
});

interface Place {
  /** Null: all addresses. */
  readonly address: string | null;
  readonly port: number;
}

/** `:443`, `127.0.0.1:8080`, `tcp/[::]:80`; null for what is neither a port nor an address with one. */
function placeOf(text: string): Place | null {
  const [, bracketed, plain = "", port] =
    /^(?:tcp\/)?(?:\[([^\]]+)\]|([^:/]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = (bracketed ?? plain) === "localhost" ? "127.0.0.1" : (bracketed ?? plain);
  if (port === undefined || (host !== "" && isIP(host) === 0)) return null;
  return { address: /^(?:|0\.0\.0\.0|::)$/.test(host) ? null : host, port: Number(port) };
}

/** Why what it serves would be open to others here; null: it is not. */
function unheard(listening: readonly (Place | null)[], server: Members): string | null {
  const known = listening.filter((place) => place !== null);
  return known.length === 0 ? `where ${server.label} listens` : null;
}

/** Whether Caddy takes another address than that of the connection for the client's. */
const hasProxyInFront = (server: Members): boolean =>
  server.has("trusted_proxies") ||
  server.objects("listener_wrappers").some((each) => each.text("wrapper") === "proxy_protocol");

function addListener(
  { name, place, isHttps }: { name: string; place: Place; isHttps: boolean },
  { output }: CaddyContext,
): string {
  const { address, port } = place;
  const where = address === null ? `port ${port}` : `${address}, port ${port}`;
  const label = `${where} of server "${name}"`;
  output.report.changed(
    label,
    "became a listener that is switched off: enable it when Caddy no longer listens there",
  );
  return output.add(
    "listeners",
    { key: `${name} ${address === null ? "" : `${address} `}${port}`, label },
    {
      name: output.name("listeners", `caddy-${port}`),
      port,
      protocol: isHttps ? "https" : "http",
      enabled: false,
      ...(address === null ? {} : { address }),
    },
  );
}

function leaveOutOfPolicy(policy: Members): void {
  policy.leaveOut("client_authentication", "set client_auth of the listener");
  policy.leaveOut("match", "certificates are chosen by their names");
  for (const field of ["cipher_suites", "curves", "alpn", "protocol_min", "protocol_max"])
    policy.leaveOut(field, "listeners have tls_min_version, http2 and http3");
  for (const field of ["certificate_selection", "default_sni", "fallback_sni"])
    policy.leaveOut(field, "certificates are chosen by their names");
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
