// Converts servers of Caddy: their addresses and the common fields of their routes.
import { isIP } from "node:net";
import { shareHosts } from "../exposure.ts";
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";
import { addRoutes, MAX_HANDLERS, type Scope, type Site } from "./routes.ts";
import { addSites } from "./sites.ts";
import { always } from "./terms.ts";

interface Ports {
  readonly http: number;
  readonly https: number;
}

export function addServers(http: Members, context: CaddyContext): void {
  const ports = { http: http.number("http_port") ?? 80, https: http.number("https_port") ?? 443 };
  http.omit("grace_period", "settings.limits.shutdown_timeout decides");
  http.omit("shutdown_delay", "settings.limits.shutdown_timeout decides");
  http.omit("metrics", "the management API serves metrics");
  const servers = http.object("servers");
  const found: { readonly sites: readonly Site[]; readonly rank: number }[] = [];
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name);
    if (server === null || server === undefined) continue;
    server.setLabel(`server "${name}"`);
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
  const listening = server.texts("listen").map(addressOf);
  const policies = server.objects("tls_connection_policies");
  const automatic = server.object("automatic_https");
  const isOff = automatic?.flag("disable") ?? false;
  const redirects = !(automatic?.flag("disable_redirects") ?? false);
  const skipped = new Set([
    ...(automatic?.texts("skip") ?? []),
    ...(automatic?.texts("skip_certificates") ?? []),
  ]);
  for (const name of ["ignore_loaded_certificates", "prefer_wildcard"])
    automatic?.omit(name, "the gateway selects certificates by name");
  const isHttps = policies.length > 0 || listening.some((socket) => socket?.port === ports.https);
  const isUsual = (socket: Address | null) =>
    socket !== null && socket.address === null && [ports.http, ports.https].includes(socket.port);
  const own = listening.filter((socket) => socket !== null && !isUsual(socket)) as Address[];
  const listeners = own.map((socket) =>
    addListener({ name, socket, isHttps: policies.length > 0 }, context),
  );
  const hasListeners = listeners.length > 0 && !listening.some(isUsual);
  const certified = policies.filter((policy) => policy.has("client_authentication")).map(namesOf);
  for (const policy of policies) {
    policy.setLabel(`TLS for ${namesOf(policy).join(", ") || "all other names"}`);
    omitOfPolicy(policy);
  }
  const hidesAddresses = hasProxyInFront(server);
  omitOfServer(server);
  const isRedirected = isHttps && redirects && !isOff;
  const schemes = new Set(
    listening.filter(isUsual).map((socket) => (socket?.port === ports.https ? "https" : "http")),
  );
  const scope: Scope = {
    ...outermost(server, hidesAddresses),
    lost: unsupportedAddress(listening, server),
    fields: {
      ...(hasListeners ? { listener_ids: listeners } : {}),
      ...(isRedirected ? { https_redirect: 308 } : {}),
      ...(schemes.size === 1 && !isRedirected ? { protocols: [...schemes] } : {}),
    },
  };
  const found: Site[] = [];
  const walk = {
    context,
    sites: found,
    key: name,
    depth: 0,
    budget: { left: MAX_HANDLERS },
    named: server.object("named_routes"),
  };
  addRoutes(server.objects("routes"), scope, walk);
  const sites = found.map((site) => withCertificates(site, certified));
  if (hasListeners) sites.push(restOf(server, scope, name));
  for (const { scope: at } of isHttps && !isOff ? sites : [])
    for (const host of at.outerHosts) if (!skipped.has(host)) context.secured.add(host);
  // Routes of one listener go before those of all listeners, which would match its requests; HTTP routes before redirects.
  return { sites, rank: hasListeners ? 0 : schemes.has("http") && schemes.size === 1 ? 1 : 2 };
}

/** All requests, as the client sent them. */
const outermost = (server: Members, hidesAddresses: boolean): Scope => ({
  bounds: always,
  steps: [],
  rewrite: null,
  name: "",
  place: server.label,
  outerHosts: [],
  mayIdentifyClient: false,
  lost: null,
  fields: {},
  view: {
    path: "sent",
    patterns: [],
    changedFields: [],
    hidesAddresses,
    isMethodChanged: false,
    isQueryChanged: false,
  },
});

/** Names in the TLS handshake for which Caddy requires client certificates; empty: any. */
function namesOf(policy: Members): readonly string[] {
  const match = policy.object("match");
  return match !== null && match.names.join() === "sni" ? match.texts("sni") : [];
}

/** Caddy requires that the host is the name in the handshake. */
function withCertificates(site: Site, certified: readonly (readonly string[])[]): Site {
  const { scope } = site;
  const isCertified = certified.some((names) => shareHosts(scope.bounds.over.hosts, names));
  if (!isCertified || scope.lost !== null) return site;
  return { ...site, scope: { ...scope, lost: `client certificates at ${scope.place}` } };
}

/** Routes of another server must not match requests that a server does not serve. */
const restOf = (server: Members, scope: Scope, name: string): Site => ({
  key: `${name} rest`,
  label: `requests that ${server.label} does not serve`,
  scope: { ...scope, lost: null },
  isRest: true,
  ending: { kind: "closed", status: 404 },
});

interface Address {
  /** Null: all addresses. */
  readonly address: string | null;
  readonly port: number;
}

/** `:443`, `127.0.0.1:8080`, `tcp/[::]:80`; null for anything without a port. */
function addressOf(text: string): Address | null {
  const [, bracketed, plain = "", port] =
    /^(?:tcp\/)?(?:\[([^\]]+)\]|([^:/]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = (bracketed ?? plain) === "localhost" ? "127.0.0.1" : (bracketed ?? plain);
  if (port === undefined || (host !== "" && isIP(host) === 0)) return null;
  return { address: /^(?:|0\.0\.0\.0|::)$/.test(host) ? null : host, port: Number(port) };
}

/** Why other clients could reach the server after the import; null: they cannot. */
function unsupportedAddress(
  listening: readonly (Address | null)[],
  server: Members,
): string | null {
  const known = listening.filter((socket) => socket !== null);
  return known.length === 0 ? `the addresses of ${server.label}` : null;
}

/** Whether Caddy reads the client address from a header or the PROXY protocol. */
const hasProxyInFront = (server: Members): boolean =>
  server.has("trusted_proxies") ||
  server.objects("listener_wrappers").some((each) => each.text("wrapper") === "proxy_protocol");

function addListener(
  { name, socket, isHttps }: { name: string; socket: Address; isHttps: boolean },
  { output }: CaddyContext,
): string {
  const { address, port } = socket;
  const where = address === null ? `port ${port}` : `${address}, port ${port}`;
  const label = `${where} of server "${name}"`;
  output.report.changed(
    label,
    "became a disabled listener: enable it when Caddy no longer listens there",
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

function omitOfPolicy(policy: Members): void {
  policy.omit("client_authentication", "set client_auth of the listener");
  policy.omit("match", "the gateway selects certificates by name");
  for (const field of ["cipher_suites", "curves", "alpn", "protocol_min", "protocol_max"])
    policy.omit(field, "set tls_min_version, http2 and http3 of the listener");
  for (const field of ["certificate_selection", "default_sni", "fallback_sni"])
    policy.omit(field, "the gateway selects certificates by name");
}

function omitOfServer(server: Members): void {
  server.omit("logs", "use the plugin access-log");
  server.omit("errors", "use the plugin error-pages");
  for (const field of ["trusted_proxies", "client_ip_headers", "trusted_proxies_strict"])
    server.omit(field, "set trusted_proxies of the listener or the settings");
  for (const field of ["read_timeout", "read_header_timeout", "write_timeout", "idle_timeout"])
    server.omit(field, "set the timeouts of listeners and services");
  server.omit("max_header_bytes", "set max_header_bytes of the listener");
  server.omit("strict_sni_host", "set strict_sni of the listener");
  for (const name of ["protocols", "experimental_http3", "allow_h2c", "enable_full_duplex"])
    server.omit(name, "set http2 and http3 of the listener");
  server.omit("keepalive_interval", "set the timeouts of listeners and services");
  server.omit("listener_wrappers", "set proxy_protocol of the listener");
}
