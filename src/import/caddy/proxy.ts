// Converts Caddy's reverse proxy to a service with its targets.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { millisecondsOf } from "./placeholders.ts";
import type { CaddyContext } from "./caddy.ts";
import { headerSteps, lostBy, type Step } from "./steps.ts";

const algorithms: Readonly<Record<string, string>> = {
  round_robin: "round_robin",
  weighted_round_robin: "round_robin",
  random: "random_two",
  random_choose: "random_two",
  least_conn: "least_connections",
  first: "first",
  ip_hash: "consistent_hash",
  client_ip_hash: "consistent_hash",
  uri_hash: "consistent_hash",
  header: "consistent_hash",
  query: "consistent_hash",
  cookie: "round_robin",
};

const hashSources: Readonly<Record<string, string>> = {
  ip_hash: "ip",
  client_ip_hash: "ip",
  uri_hash: "path",
  header: "header",
  query: "query",
};

export function addProxy(
  handler: Members,
  { context, key }: { readonly context: CaddyContext; readonly key: string },
): {
  readonly serviceId: string | null;
  readonly steps: readonly Step[];
  readonly lost: string | null;
} {
  const { output } = context;
  const upstreams = handler.objects("upstreams");
  const dials = upstreams.map((upstream) => upstream.text("dial") ?? "");
  handler.setLabel(`reverse_proxy ${dials.join(" ")} at ${handler.path}`);
  const transport = handler.object("transport");
  const balancing = handler.object("load_balancing");
  const health = handler.object("health_checks");
  const headers = handler.object("headers");
  const { host, steps, lost } = headersOf(headers);
  const weights = balancing?.object("selection_policy")?.numbers("weights") ?? [];
  omit(handler);
  const isFastCgi = (transport?.text("protocol") ?? "http") !== "http";
  if (isFastCgi) transport?.drop("targets must use HTTP: add a web server as a target");
  const { label } = handler;
  const name = output.name("services", dials[0]?.replaceAll("/", "-") ?? "upstream");
  const most = upstreams[0]?.number("max_requests") ?? null;
  const serviceId = output.add(
    "services",
    { key, label },
    {
      name,
      host_header: host ?? "preserve",
      ...balancingOf(balancing),
      ...(health === null
        ? { health: { passive: { enabled: false } } }
        : { health: healthOf(health) }),
      ...(transport === null || isFastCgi ? {} : transportOf(transport)),
      ...(dials.some((dial) => dial.startsWith("unix+h2c/")) ? { protocol: "h2c" } : {}),
      ...(most === null ? {} : { max_connections_per_target: most }),
    },
  );
  output.report.imported(handler.label, `became the service ${name}`);
  for (const [index, dial] of dials.entries()) {
    upstreams[index]?.raw("max_requests");
    const address = addressOf(dial);
    const target = { key: `${key} ${dial}`, label: `target "${dial}" of ${handler.label}` };
    const weight = weights[index];
    if (address === null) output.report.omitted(target.label, "it is not a host and port");
    else
      output.add("targets", target, {
        ...address,
        service_id: serviceId,
        ...(weight === undefined ? {} : { weight }),
      });
  }
  return { serviceId, steps, lost };
}

function omit(handler: Members): void {
  handler.omit("dynamic_upstreams", "list the targets; resolve looks up their names in DNS");
  handler.omit("rewrite", "the route rewrites paths");
  handler.omit("trusted_proxies", "set trusted_proxies of the listener or the settings");
  for (const name of ["flush_interval", "request_buffers", "response_buffers", "buffer_requests"])
    handler.omit(name, "the service's response_buffer_bytes decides");
  for (const name of ["stream_timeout", "stream_close_delay", "stream_buffer_size"])
    handler.omit(name, "upgraded connections stay open");
  handler.omit("verbose_logs", "recent requests are at GET /requests");
}

/** `127.0.0.1:9000`, `[::1]:80`, `unix//run/app.sock`. */
function addressOf(dial: string): Document | null {
  const [, path] = /^unix(?:\+h2c)?\/(\/.+)$/.exec(dial) ?? [];
  if (path !== undefined) return { host: `unix:${path.replace(/\|\d+$/, "")}`, port: null };
  const [, bracketed, plain, port] =
    /^(?:tcp\/)?(?:\[([^\]]+)\]|([^:/{}]+)):(\d+)$/.exec(dial) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? null : { host, port: Number(port) };
}

/** The Host for targets is a field of the service; a plugin sets all other headers. */
function headersOf(headers: Members | null) {
  if (headers === null) return { host: null, steps: [], lost: null };
  const given = headers.object("request")?.object("set")?.raw("Host");
  const value = Array.isArray(given) ? String(given[0]) : null;
  const isTarget = value?.startsWith("{http.reverse_proxy.upstream.") ?? false;
  const isPlain = value !== null && !value.includes("{");
  if (value !== null && !isTarget && !isPlain && value !== "{http.request.host}")
    headers.changed("request.set.Host", "the Host of the client is forwarded");
  return {
    host: isTarget ? "target" : isPlain ? value : null,
    steps: headerSteps(headers, ["host"]),
    lost: lostBy(headers),
  };
}

function balancingOf(members: Members | null): Document {
  if (members === null) return {};
  const policy = members.object("selection_policy");
  const word = policy?.text("policy") ?? "random";
  const field = policy?.text("field") ?? policy?.text("key") ?? "";
  const name = policy?.text("name") ?? "";
  for (const each of ["weights", "choose", "secret"]) policy?.raw(each);
  policy?.omit("fallback", "the fallback is the client address");
  policy?.omit("max_age", "set ttl of sticky");
  const algorithm = Object.hasOwn(algorithms, word) ? algorithms[word] : undefined;
  if (algorithm === undefined) members.changed("selection_policy", `${word} became round_robin`);
  const retries = members.bounded("retries", { min: 0, max: 10 });
  const hasTime = members.has("try_duration");
  members.omit("try_duration", "set count of the retries, which have no time limit");
  members.omit("try_interval", "set backoff_ms of the retries");
  members.omit("retry_match", "set methods and on of the retries");
  const source = Object.hasOwn(hashSources, word) ? hashSources[word] : undefined;
  return {
    algorithm: algorithm ?? "round_robin",
    ...(source === undefined ? {} : { hash_on: { source, name: field } }),
    ...(word === "cookie"
      ? { sticky: { enabled: true, ...(name === "" ? {} : { cookie: name }) } }
      : {}),
    retries: { count: retries ?? (hasTime ? 2 : 0) },
  };
}

function healthOf(members: Members): Document {
  const active = members.object("active");
  const passive = members.object("passive");
  return {
    ...(active === null ? {} : { active: activeOf(active) }),
    passive: passive === null ? { enabled: false } : passiveOf(passive),
  };
}

const seconds = (members: Members, name: string): number | null => {
  const time = millisecondsOf(members.raw(name));
  return time === null ? null : Math.max(1, Math.round(time / 1000));
};

function activeOf(members: Members): Document {
  const path = members.text("uri") ?? members.text("path") ?? "/";
  const status = members.number("expect_status");
  const interval = seconds(members, "interval") ?? 30;
  const headers = members.object("headers");
  members.omit("max_size", "checks read only the beginning of the body");
  members.omit("upstream", "checks always go to the targets");
  members.omit("follow_redirects", "redirects count as healthy", false);
  members.omit("body", "checks have no body");
  const found: Readonly<Record<string, unknown>> = {
    path,
    interval,
    unhealthy_interval: interval,
    timeout: seconds(members, "timeout") ?? 5,
    port: members.number("port"),
    method: members.text("method"),
    expect_body: members.text("expect_body"),
    healthy_threshold: members.number("passes") ?? 1,
    unhealthy_threshold: members.number("fails") ?? 1,
    // One digit means a status class, such as 2 for 2xx.
    expect_statuses: status === null ? null : [status < 10 ? `${status}00-${status}99` : status],
    headers:
      headers === null
        ? null
        : Object.fromEntries(headers.names.map((name) => [name, headers.texts(name)[0] ?? ""])),
  };
  const filled = Object.entries(found).filter(([, value]) => value !== null);
  return { enabled: true, ...(Object.fromEntries(filled) as Document) };
}

function passiveOf(members: Members): Document {
  const time = seconds(members, "fail_duration");
  const most = members.bounded("max_fails", { min: 1, max: 1000 });
  const statuses = members.numbers("unhealthy_status");
  members.omit("unhealthy_latency", "response times do not count");
  members.omit("unhealthy_request_count", "set max_connections_per_target");
  return {
    enabled: time !== null,
    consecutive_failures: most ?? 1,
    ...(time === null ? {} : { ejection_seconds: Math.min(3600, time) }),
    ...(statuses.length === 0 ? {} : { statuses: statuses.filter((status) => status >= 100) }),
  };
}

function transportOf(members: Members): Document {
  const tls = members.object("tls");
  const times = {
    connect_timeout: millisecondsOf(members.raw("dial_timeout")),
    response_timeout: millisecondsOf(members.raw("response_header_timeout")),
    read_timeout: millisecondsOf(members.raw("read_timeout")),
    write_timeout: millisecondsOf(members.raw("write_timeout")),
  };
  const keepAlive = members.object("keep_alive");
  const idle = millisecondsOf(keepAlive?.raw("idle_timeout") ?? null);
  for (const name of ["probe_interval", "max_idle_conns", "max_idle_conns_per_host", "enabled"])
    keepAlive?.omit(name, "set size of the service's keepalive");
  const protocol = protocolOf(members.texts("versions"), tls !== null);
  if (protocol === "h2" || protocol === "h2c")
    members.changed("versions", `became the protocol ${protocol}: ${FOR_GRPC}`);
  members.omit("compression", "Accept-Encoding of the client is forwarded");
  members.omit("proxy_protocol", "targets of HTTP services get X-Forwarded-For");
  for (const name of ["resolver", "network_proxy", "forward_proxy_url", "local_address"])
    members.omit(name, "this gateway has no equivalent");
  for (const name of ["max_conns_per_host", "max_response_header_size", "dial_fallback_delay"])
    members.omit(name, "set the timeouts and limits of the service");
  for (const name of ["expect_continue_timeout", "read_buffer_size", "write_buffer_size"])
    members.omit(name, "set the timeouts and limits of the service");
  const filled = Object.entries(times).filter(([, time]) => time !== null && time > 0);
  return {
    protocol,
    ...(tls === null ? {} : { tls: tlsOf(tls) }),
    ...(Object.fromEntries(filled) as Document),
    ...(idle === null ? {} : { keepalive: { idle_timeout: idle } }),
  };
}

const FOR_GRPC =
  'if the targets speak gRPC, set grpc or grpcs, and engine "full" or shared_engines of the listener';

/** Caddy's default is HTTP/1.1, and HTTP/2 where a target with TLS offers it. */
function protocolOf(versions: readonly string[], hasTls: boolean): "http" | "https" | "h2" | "h2c" {
  const isHttp2 = versions.length > 0 && !versions.includes("1.1");
  if (hasTls) return isHttp2 ? "h2" : "https";
  return isHttp2 && versions.includes("h2c") ? "h2c" : "http";
}

function tlsOf(members: Members): Document {
  const name = members.text("server_name");
  members.omit("ca", "set tls.ca_certificates of the service");
  for (const file of ["root_ca_pem_files", "root_ca_pool", "client_certificate_file"])
    members.omit(file, "files are not read: set them in tls of the service");
  for (const file of ["client_certificate_key_file", "client_certificate_automate"])
    members.omit(file, "set tls.client_certificate_id of the service");
  for (const each of ["handshake_timeout", "renegotiation", "except_ports", "curves"])
    members.omit(each, "set the timeouts and limits of the service");
  return {
    verify: !(members.flag("insecure_skip_verify") ?? false),
    ...(name === null || name.includes("{") ? {} : { server_name: name }),
  };
}
