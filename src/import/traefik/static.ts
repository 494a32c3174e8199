// Reads the static configuration of Traefik: entry points and certificate resolvers; omits everything else.
import type { Members } from "../members.ts";
import type { CertificateResolver, EntryPoint } from "./entry-points.ts";

const STATIC = [
  ...["entryPoints", "certificatesResolvers", "providers", "api", "log", "accessLog", "metrics"],
  ...["tracing", "global", "ping", "serversTransport", "tcpServersTransport", "experimental"],
  ...["hostResolver", "core", "ocsp"],
];

export interface StaticConfiguration {
  /** Null: the file has none. */
  readonly entryPoints: Readonly<Record<string, EntryPoint>> | null;
  readonly resolvers: Readonly<Record<string, CertificateResolver>>;
}

/** Names of members that only static configurations have. */
export const staticMembers: ReadonlySet<string> = new Set(STATIC);

export function readStatic(root: Members): StaticConfiguration {
  const points = root.object("entryPoints");
  const resolvers = root.object("certificatesResolvers");
  for (const name of STATIC)
    if (!["entryPoints", "certificatesResolvers"].includes(name) && root.has(name)) {
      root.raw(name);
      root.report.omitted(name, WHY[name] ?? "set it in this gateway");
    }
  return {
    entryPoints:
      points === null
        ? null
        : Object.fromEntries(
            points.names.flatMap((name) => {
              const point = points.object(name);
              return point === null ? [] : [[name, entryPointOf(name, point)]];
            }),
          ),
    resolvers: Object.fromEntries(
      (resolvers?.names ?? []).flatMap((name) => {
        const resolver = resolvers?.object(name) ?? null;
        return resolver === null ? [] : [[name, resolverOf(name, resolver)]];
      }),
    ),
  };
}

const WHY: Readonly<Record<string, string>> = {
  providers: "import the dynamic configuration of its files, too",
  api: "the management API and the web UI replace it",
  ping: "the management API has health endpoints",
  metrics: "metrics are built in: GET /metrics of the management API",
  accessLog: "use the plugin access-log",
  tracing: "use the plugin otel-tracing",
  serversTransport: "set tls and the timeouts of the services",
};

function entryPointOf(name: string, point: Members): EntryPoint {
  point.setLabel(`entry point "${name}"`);
  const address = point.text("address") ?? "";
  const http = point.object("http");
  const tls = http?.object("tls") ?? null;
  const target = http?.object("redirections")?.object("entryPoint") ?? null;
  const scheme = target?.text("scheme") ?? "https";
  const middlewares = http?.texts("middlewares") ?? [];
  const options = tls?.text("options") ?? null;
  const certResolver = tls?.text("certResolver") ?? null;
  http?.ignoreRest();
  const trusting = ["forwardedHeaders", "proxyProtocol"].filter((member) => {
    const settings = point.object(member);
    settings?.ignoreRest();
    return settings !== null && settings.names.length > 0;
  });
  for (const member of trusting)
    point.changed(member, "set trusted_proxies to the proxies in front of the gateway");
  for (const member of ["http2", "http3", "transport", "asDefault", "reusePort", "allowACMEByPass"])
    point.omit(member, "set it in the listener", false);
  return {
    address,
    isTls: tls !== null,
    certResolver,
    tlsOptions: options,
    trustsProxies: trusting.length > 0,
    redirectsToHttps: target !== null && scheme === "https",
    middlewares,
  };
}

function resolverOf(name: string, resolver: Members): CertificateResolver {
  resolver.setLabel(`certificate resolver "${name}"`);
  const acme = resolver.object("acme");
  const found: CertificateResolver = {
    email: acme?.text("email") ?? null,
    directory: acme?.text("caServer") ?? null,
    isDns: acme?.has("dnsChallenge") === true,
    keyType:
      /^RSA/i.test(acme?.text("keyType") ?? "RSA4096") && acme?.has("keyType") === true
        ? "rsa"
        : "ecdsa",
  };
  if (acme === null) resolver.drop("it does not use ACME");
  else resolver.ignoreRest();
  if (found.isDns) resolver.changed("acme.dnsChallenge", "add a DNS provider with its secrets");
  return found;
}
