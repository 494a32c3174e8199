// Converts services of Traefik to services with targets, and weighted and mirrored ones to plugins; knows no router.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { secondsOf, millisecondsOf } from "./durations.ts";
import { type TraefikContext, withoutProvider } from "./context.ts";

/** A plugin of the routes that use the service. */
export interface ServicePlugin {
  readonly name: string;
  readonly config: Document;
  readonly what: string;
}

export interface UsedService {
  readonly id: string;
  readonly plugins: readonly ServicePlugin[];
}

const MAX_DEPTH = 8;

/** Adds each service that a router uses once. */
export class TraefikServices {
  readonly #context: TraefikContext;
  readonly #members: Members | null;
  readonly #transports: Members | null;
  readonly #known = new Map<string, UsedService | null>();

  constructor(context: TraefikContext, http: Members | null) {
    this.#context = context;
    this.#members = http?.object("services") ?? null;
    this.#transports = http?.object("serversTransports") ?? null;
  }

  /** Null, with an entry in the report: it cannot be imported. */
  use(reference: string, depth = 0): UsedService | null {
    const name = withoutProvider(reference);
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    // A service that contains itself.
    this.#known.set(name, null);
    const made = this.#make(name, depth);
    this.#known.set(name, made);
    return made;
  }

  omitUnused(): void {
    for (const name of this.#members?.names ?? []) {
      if (this.#known.has(name)) continue;
      const members = this.#members?.object(name);
      members?.setLabel(`service "${name}"`);
      members?.drop("no router uses it");
    }
    for (const name of this.#transports?.names ?? []) this.#transports?.object(name)?.ignoreRest();
  }

  #make(name: string, depth: number): UsedService | null {
    const { report } = this.#context.output;
    const members = this.#members?.has(name) === true ? this.#members.object(name) : null;
    if (members === null || depth > MAX_DEPTH) {
      report.omitted(`service "${name}"`, "it is not in the configuration");
      return null;
    }
    members.setLabel(`service "${name}"`);
    const balancer = members.object("loadBalancer");
    if (balancer !== null) return this.#balanced(name, balancer);
    const weighted = members.object("weighted");
    if (weighted !== null) return this.#weighted(name, weighted, depth);
    const mirroring = members.object("mirroring");
    if (mirroring !== null) return this.#mirrored(name, mirroring, depth);
    const failover = members.object("failover");
    if (failover !== null) {
      failover.omit("healthCheck", "health checks of services decide");
      failover.omit("fallback", "add its servers as targets of a higher tier");
      return this.use(failover.text("service") ?? "", depth + 1);
    }
    members.drop("the import does not support its type");
    return null;
  }

  #balanced(name: string, members: Members): UsedService | null {
    const { output } = this.#context;
    const label = `service "${name}"`;
    const servers = members.objects("servers").map(serverOf);
    members.raw("server");
    const [first] = servers.flatMap((server) => server ?? []);
    if (first === undefined) {
      members.drop("it has no server with a URL");
      return null;
    }
    const { protocol, path } = first;
    const targets = servers.flatMap((server) => {
      if (server?.protocol === protocol && server.path === path) return [server];
      if (server !== null)
        output.report.omitted(
          `server ${server.url} of ${label}`,
          "the servers of a service must have the same scheme and path",
        );
      return [];
    });
    const made = output.name("services", name);
    const transport = this.#transportOf(members);
    const id = output.add(
      "services",
      { key: name, label },
      {
        name: made,
        protocol,
        path,
        host_header: members.flag("passHostHeader") === false ? "target" : "preserve",
        ...balancing(members),
        // Traefik waits without limit for the response, and does not retry.
        connect_timeout: 30_000,
        response_timeout: 0,
        retries: { count: 0 },
        ...transport,
        health: { active: healthOf(members), passive: { enabled: false } },
      },
    );
    for (const name of ["responseForwarding", "passiveHealthCheck"])
      members.omit(name, "the gateway streams responses and has its own passive health checks");
    output.report.imported(label, `became the service ${made}`);
    for (const { host, port, weight } of targets) {
      const where = `${host}:${port}`;
      output.add(
        "targets",
        { key: `${id} ${where}`, label: `target ${where} of ${label}` },
        { host, port, service_id: id, ...(weight === null ? {} : { weight }) },
      );
    }
    return { id, plugins: [] };
  }

  #transportOf(members: Members): Document {
    const reference = members.text("serversTransport");
    if (reference === null || reference === "default@internal") return {};
    const name = withoutProvider(reference);
    const transport = this.#transports?.has(name) === true ? this.#transports.object(name) : null;
    if (transport === null) {
      members.changed("serversTransport", `${name} is not in the configuration`);
      return {};
    }
    transport.setLabel(`serversTransport "${name}"`);
    transport.omit("rootCAs", "set tls.ca_certificates of the services");
    transport.omit("certificates", "set the client certificate of the services");
    transport.omit("maxIdleConnsPerHost", "set keepalive of the services");
    transport.raw("disableHTTP2");
    const times = transport.object("forwardingTimeouts");
    const connect = millisecondsOf(times, "dialTimeout");
    const response = millisecondsOf(times, "responseHeaderTimeout");
    times?.ignoreRest();
    return {
      tls: {
        verify: transport.flag("insecureSkipVerify") !== true,
        server_name: transport.text("serverName") ?? "",
      },
      ...(connect === null ? {} : { connect_timeout: connect }),
      ...(response === null ? {} : { response_timeout: response }),
    };
  }

  #weighted(name: string, members: Members, depth: number): UsedService | null {
    members.omit("healthCheck", "health checks of services decide");
    const parts = members.objects("services").flatMap((part) => {
      const used = this.use(part.text("name") ?? "", depth + 1);
      const weight = part.bounded("weight", { min: 0, max: 1_000_000 }) ?? 1;
      return used === null ? [] : [{ used, weight }];
    });
    const [first] = parts;
    if (first === undefined) return null;
    if (parts.some(({ used }) => used.plugins.length > 0))
      members.changed("services", "weights and mirrors inside of its services do not apply");
    const targets = parts.map(({ used, weight }) => ({ service_id: used.id, weight }));
    const cookie = members.object("sticky")?.object("cookie") ?? null;
    const own = cookie?.text("name") ?? null;
    cookie?.ignoreRest();
    const sticky = cookie === null ? null : own === null ? {} : { cookie: own };
    const config = { rules: [{ targets }], force_header: null, sticky };
    const what = `weights of service "${name}"`;
    return { id: first.used.id, plugins: [{ name: "traffic-split", config, what }] };
  }

  #mirrored(name: string, members: Members, depth: number): UsedService | null {
    members.omit("healthCheck", "health checks of services decide");
    const main = this.use(members.text("service") ?? "", depth + 1);
    const withBody = members.flag("mirrorBody") ?? true;
    const limit = members.number("maxBodySize") ?? -1;
    const mirrors = members.objects("mirrors").flatMap((mirror): readonly ServicePlugin[] => {
      const used = this.use(mirror.text("name") ?? "", depth + 1);
      const percent = mirror.bounded("percent", { min: 0, max: 100 }) ?? 0;
      if (used === null) return [];
      const config = {
        service_id: used.id,
        percent,
        methods: [],
        include_body: withBody,
        ...(limit > 0 ? { max_body: Math.min(limit, 67_108_864) } : {}),
      };
      return [{ name: "mirror", config, what: `mirror of service "${name}"` }];
    });
    for (const _ of mirrors.slice(1))
      this.#context.output.report.omitted(`service "${name}"`, "a route has one mirror");
    return main === null ? null : { ...main, plugins: [...main.plugins, ...mirrors.slice(0, 1)] };
  }
}

interface Server {
  readonly url: string;
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly weight: number | null;
}

const PROTOCOLS: Readonly<Record<string, string>> = { http: "http", https: "https", h2c: "h2c" };

function serverOf(members: Members): Server | null {
  const url = members.text("url") ?? "";
  const weight = members.bounded("weight", { min: 0, max: 65_535 });
  const preservesPath = members.flag("preservePath") === true;
  const [, scheme = ""] = /^([a-z0-9]+):\/\//i.exec(url) ?? [];
  // A URL parser knows the host only of schemes that it knows.
  const parsed = URL.parse(url.replace(/^h2c:/i, "http:"));
  const protocol = PROTOCOLS[scheme.toLowerCase()];
  if (parsed === null || protocol === undefined) {
    if (url !== "") members.report.omitted(`server ${url}`, "its URL is not supported");
    return null;
  }
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = parsed.port === "" ? (protocol === "https" ? 443 : 80) : Number(parsed.port);
  // Traefik ignores the path otherwise.
  const path = preservesPath && parsed.pathname !== "/" ? parsed.pathname : "";
  return { url, protocol, host, port, path, weight };
}

const STRATEGIES: Readonly<Record<string, string>> = {
  wrr: "round_robin",
  p2c: "random_two",
  leasttime: "ewma",
  hrw: "consistent_hash",
};

function balancing(members: Members): Document {
  const strategy = members.text("strategy");
  const algorithm = STRATEGIES[strategy?.toLowerCase() ?? "wrr"];
  if (algorithm === undefined) members.changed("strategy", `${strategy} became round_robin`);
  const cookie = members.object("sticky")?.object("cookie") ?? null;
  if (cookie === null) return { algorithm: algorithm ?? "round_robin" };
  const name = cookie.text("name");
  const maxAge = cookie.number("maxAge") ?? 0;
  for (const each of ["secure", "httpOnly", "sameSite", "path", "domain"])
    cookie.omit(
      each,
      "the gateway sets the attributes of its cookie",
      each === "path" ? "/" : true,
    );
  const ttl = Math.min(Math.max(0, maxAge), 31_536_000);
  return {
    algorithm: algorithm ?? "round_robin",
    sticky: { enabled: true, ttl, ...(name === null ? {} : { cookie: name }) },
  };
}

function healthOf(members: Members): Document {
  const check = members.object("healthCheck");
  if (check === null) return {};
  const interval = secondsOf(check, "interval", { min: 1, max: 3600 });
  const again = secondsOf(check, "unhealthyInterval", { min: 1, max: 3600 });
  const timeout = secondsOf(check, "timeout", { min: 1, max: 300 });
  const path = check.text("path");
  const host = check.text("hostname");
  const status = check.number("status") ?? 0;
  const method = (check.text("method") ?? "GET").toUpperCase();
  const isKnown = ["GET", "HEAD", "POST", "OPTIONS"].includes(method);
  if (!isKnown) check.changed("method", `${method} became GET`);
  const scheme = check.text("scheme");
  const mode = check.text("mode");
  const port = check.bounded("port", { min: 1, max: 65_535 });
  check.raw("followRedirects");
  const headers = headersOf(check.object("headers"));
  const withHost = host === null ? headers : { ...headers, Host: host };
  return {
    enabled: true,
    type: mode === "grpc" ? "grpc" : scheme === "https" ? "https" : "http",
    path: path === null || path === "" ? "/" : path.startsWith("/") ? path : `/${path}`,
    method: isKnown ? method : "GET",
    interval: interval ?? 30,
    unhealthy_interval: again ?? interval ?? 30,
    timeout: timeout ?? 5,
    healthy_threshold: 1,
    unhealthy_threshold: 1,
    ...(port === null ? {} : { port }),
    ...(status === 0 ? {} : { expect_statuses: [status] }),
    ...(Object.keys(withHost).length === 0 ? {} : { headers: withHost }),
  };
}

const headersOf = (members: Members | null): Readonly<Record<string, string>> =>
  Object.fromEntries((members?.names ?? []).map((name) => [name, members?.text(name) ?? ""]));
