// Caddy's reverse proxy as a service with its targets.
import type { Document } from "../../body.ts";
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
  handler.call(`reverse_proxy ${dials.join(" ")} at ${handler.path}`);
  const transport = handler.object("transport");
  const balancing = handler.object("load_balancing");
  const health = handler.object("health_checks");
  const headers = handler.object("headers");
  const { host, steps, lost } = headersOf(headers);
  const weights = balancing?.object("selection_policy")?.numbers("weights") ?? [];
  leaveOut(handler);
  const isFastCgi = (transport?.text("protocol") ?? "http") !== "http";
  if (isFastCgi) transport?.drop("this gateway speaks HTTP to targets: put a web server behind it");
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
      ...(most === null ? {} : { max_connections_per_target: most }),
    },
  );
  output.report.carried(handler.label, `became the service ${name}`);
  for (const [index, dial] of dials.entries()) {
    upstreams[index]?.raw("max_requests");
    const place = placeOf(dial);
    const target = { key: `${key} ${dial}`, label: `target "${dial}" of ${handler.label}` };
    const weight = weights[index];
    if (place === null) output.report.leftOut(target.label, "it is no host and port");
    else
      output.add("targets", target, {
        ...place,
        service_id: serviceId,
        ...(weight === undefined ? {} : { weight }),
      });
  }
  return { serviceId, steps, lost };
}

function leaveOut(handler: Members): void {
  handler.leaveOut("dynamic_upstreams", "write the targets; names may be looked up with resolve");
  handler.leaveOut("rewrite", "the route rewrites paths");
  handler.leaveOut("trusted_proxies", "set trusted_proxies of the listener or the settings");
  for (const name of ["flush_interval", "request_buffers", "response_buffers", "buffer_requests"])
    handler.leaveOut(name, "the service's response_buffer_bytes decides");
  for (const name of ["stream_timeout", "stream_close_delay", "stream_buffer_size"])
    handler.leaveOut(name, "connections that were upgraded stay open");
  handler.leaveOut("verbose_logs", "recent requests are at GET /requests");
}

/** `127.0.0.1:9000`, `[::1]:80`, `unix//run/app.sock`. */
function placeOf(dial: string): Document | null {
  const [, path] = /^unix(?:\+h2c)?\/(\/.+)$/.exec(dial) ?? [];
  if (path !== undefined) return { host: `unix:${path.replace(/\|\d+$/, "")}`, port: null };
  const [, bracketed, plain, port] =
    /^(?:tcp\/)?(?:\[([^\]]+)\]|([^:/{}]+)):(\d+)$/.exec(dial) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? null : { host, port: Number(port) };
}

/** The Host for targets is a field of the service; all others are set by a plugin. */
function headersOf(headers: Members | null) {
  if (headers === null) return { host: null, steps: [], lost: null };
  const given = headers.object("request")?.object("set")?.raw("Host");
  const value = Array.isArray(given) ? String(given[0]) : null;
  const isTarget = value?.startsWith("{http.reverse_proxy.upstream.") ?? false;
  const isPlain = value !== null && !value.includes("{");
  if (value !== null && !isTarget && !isPlain && value !== "{http.request.host}")
    headers.changed("request.set.Host", "the client's is passed on");
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
  policy?.leaveOut("fallback", "the client's address is hashed then");
  policy?.leaveOut("max_age", "set ttl of sticky");
  const algorithm = Object.hasOwn(algorithms, word) ? algorithms[word] : undefined;
  if (algorithm === undefined) members.changed("selection_policy", `${word} became round_robin`);
  const retries = members.bounded("retries", { min: 0, max: 10 });
  const hasTime = members.has("try_duration");
  members.leaveOut("try_duration", "retries are counted, not timed");
  members.leaveOut("try_interval", "set backoff_ms of the retries");
  members.leaveOut("retry_match", "set methods and on of the retries");
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
  members.leaveOut("max_size", "only the beginning of the body is looked at");
  members.leaveOut("upstream", "the targets themselves are checked");
  members.leaveOut("follow_redirects", "redirects count as working", false);
  members.leaveOut("body", "checks have no body");
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
    // One digit stands for all statuses that begin with it.
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
  members.leaveOut("unhealthy_latency", "how long answers take does not count");
  members.leaveOut("unhealthy_request_count", "set max_connections_per_target");
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
    keepAlive?.leaveOut(name, "set size of the service's keepalive");
  members.leaveOut("versions", "targets are spoken to with HTTP/1.1", ["1.1", "2"]);
  members.leaveOut("compression", "what the client accepts is passed on");
  members.leaveOut("proxy_protocol", "targets of HTTP services get X-Forwarded-For");
  for (const name of ["resolver", "network_proxy", "forward_proxy_url", "local_address"])
    members.leaveOut(name, "this gateway has nothing like it");
  for (const name of ["max_conns_per_host", "max_response_header_size", "dial_fallback_delay"])
    members.leaveOut(name, "the service has limits of its own");
  for (const name of ["expect_continue_timeout", "read_buffer_size", "write_buffer_size"])
    members.leaveOut(name, "the service has limits of its own");
  const filled = Object.entries(times).filter(([, time]) => time !== null && time > 0);
  return {
    ...(tls === null ? {} : { protocol: "https", tls: tlsOf(tls) }),
    ...(Object.fromEntries(filled) as Document),
    ...(idle === null ? {} : { keepalive: { idle_timeout: idle } }),
  };
}

function tlsOf(members: Members): Document {
  const name = members.text("server_name");
  members.leaveOut("ca", "write the certificates into tls.ca_certificates of the service");
  for (const file of ["root_ca_pem_files", "root_ca_pool", "client_certificate_file"])
    members.leaveOut(file, "files are not read: write them into the service");
  for (const file of ["client_certificate_key_file", "client_certificate_automate"])
    members.leaveOut(file, "name a certificate in tls.client_certificate_id");
  for (const each of ["handshake_timeout", "renegotiation", "except_ports", "curves"])
    members.leaveOut(each, "the service has limits of its own");
  return {
    verify: !(members.flag("insecure_skip_verify") ?? false),
    ...(name === null || name.includes("{") ? {} : { server_name: name }),
  };
}
