// Converts Caddy's reverse proxy to a service with its targets.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { millisecondsOf } from "./placeholders.ts";
import type { CaddyContext } from "./caddy.ts";
import { headerSteps, lostBy, type Step } from "./steps.ts";
import { transportOf } from "./transport.ts";

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

interface Position {
  readonly context: CaddyContext;
  readonly key: string;
  /** For the report. */
  readonly place: string;
}

export function addProxy(
  handler: Members,
  { context, key, place }: Position,
): {
  readonly serviceId: string | null;
  readonly steps: readonly Step[];
  readonly lost: string | null;
} {
  const { output } = context;
  const upstreams = handler.objects("upstreams");
  const dials = upstreams.map((upstream) => upstream.text("dial") ?? "");
  const transport = handler.object("transport");
  const balancing = handler.object("load_balancing");
  const health = handler.object("health_checks");
  const headers = handler.object("headers");
  const { host, steps, lost } = headersOf(headers);
  const weights = balancing?.object("selection_policy")?.numbers("weights") ?? [];
  omit(handler);
  transport?.raw("protocol");
  const dynamic = dynamicOf(handler.object("dynamic_upstreams"));
  const { label } = handler;
  const wanted = dials[0] ?? (dynamic === null ? null : String(dynamic.target["host"])) ?? place;
  const name = output.name("services", wanted.replace(/^:/, "localhost:").replaceAll("/", "-"));
  const passive = health?.object("passive") ?? null;
  const most =
    upstreams[0]?.number("max_requests") ?? passive?.number("unhealthy_request_count") ?? null;
  const isStreamed = String(handler.raw("flush_interval") ?? "").startsWith("-");
  if (!isStreamed) handler.omit("flush_interval", "parts are sent as they arrive");
  const serviceId = output.add(
    "services",
    { key, label },
    {
      name,
      host_header: host ?? "preserve",
      ...balancingOf(balancing),
      ...(health === null
        ? { health: { passive: { enabled: false } } }
        : { health: healthOf(health, transport?.has("tls") ?? false) }),
      ...(transport === null ? {} : transportOf(transport)),
      ...dynamic?.fields,
      // A negative interval sends each part at once.
      ...(isStreamed ? { response_buffer_bytes: 0 } : {}),
      ...(dials.some((dial) => dial.startsWith("unix+h2c/")) ? { protocol: "h2c" } : {}),
      ...(most === null || most === 0 ? {} : { max_connections_per_target: most }),
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
  if (dynamic !== null)
    output.add(
      "targets",
      { key: `${key} dynamic`, label: `dynamic target of ${handler.label}` },
      { ...dynamic.target, service_id: serviceId },
    );
  return { serviceId, steps, lost };
}

/** Targets that Caddy looks up in DNS, as the gateway does with every name; null: another source, or none. */
function dynamicOf(
  source: Members | null,
): { readonly target: Document; readonly fields: Document } | null {
  if (source === null) return null;
  const kind = source.text("source") ?? "";
  const name = source.text("name") ?? "";
  const port = Number(source.raw("port") ?? 80);
  const labels = [source.text("service"), source.text("proto")].flatMap((label) =>
    label === null || label === "" ? [] : [`_${label}`],
  );
  for (const each of ["refresh", "resolver", "dial_timeout", "dial_fallback_delay", "versions"])
    source.omit(each, "the gateway looks names up again when their TTL ends");
  source.omit("grace_period", "the gateway keeps known addresses while DNS fails");
  const isKnown = !/[{}]/.test(name) && name !== "" && Number.isInteger(port);
  if (kind === "a" && isKnown) return { target: { host: name, port }, fields: {} };
  if (kind === "srv" && isKnown)
    return {
      target: { host: [...labels, name].join("."), port: null },
      fields: { resolve: "srv" },
    };
  source.drop("list the targets; resolve looks up their names in DNS");
  return null;
}

function omit(handler: Members): void {
  handler.omit("trusted_proxies", "set trusted_proxies of the listener or the settings");
  for (const name of ["request_buffers", "response_buffers", "buffer_requests", "buffer_responses"])
    handler.omit(name, "the service's response_buffer_bytes decides");
  handler.omit("max_buffer_size", "the service's response_buffer_bytes decides");
  for (const name of ["stream_timeout", "stream_close_delay", "stream_buffer_size"])
    handler.omit(name, "upgraded connections stay open");
  handler.omit("verbose_logs", "recent requests are at GET /requests");
}

/** `127.0.0.1:9000`, `[::1]:80`, `:9000` on this machine, `unix//run/app.sock`. */
function addressOf(dial: string): Document | null {
  const [, path] = /^unix(?:\+h2c)?\/(\/.+)$/.exec(dial) ?? [];
  if (path !== undefined) return { host: `unix:${path.replace(/\|\d+$/, "")}`, port: null };
  const [, bracketed, plain, port] =
    /^(?:tcp[46]?\/)?(?:\[([^\]]+)\]|([^:/{}]*)):(\d+)$/.exec(dial) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? null : { host: host === "" ? "localhost" : host, port: Number(port) };
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
  const interval = millisecondsOf(members.raw("try_interval"));
  members.omit("retry_match", "set methods and on of the retries");
  const source = Object.hasOwn(hashSources, word) ? hashSources[word] : undefined;
  return {
    algorithm: algorithm ?? "round_robin",
    ...(source === undefined ? {} : { hash_on: { source, name: field } }),
    ...(word === "cookie"
      ? { sticky: { enabled: true, ...(name === "" ? {} : { cookie: name }) } }
      : {}),
    retries: {
      count: retries ?? (hasTime ? 2 : 0),
      ...(interval === null ? {} : { backoff_ms: Math.min(60_000, interval) }),
    },
  };
}

function healthOf(members: Members, isTls: boolean): Document {
  const active = members.object("active");
  const passive = members.object("passive");
  return {
    ...(active === null ? {} : { active: activeOf(active, isTls) }),
    passive: passive === null ? { enabled: false } : passiveOf(passive),
  };
}

const seconds = (members: Members, name: string): number | null => {
  const time = millisecondsOf(members.raw(name));
  return time === null ? null : Math.max(1, Math.round(time / 1000));
};

function activeOf(members: Members, isTls: boolean): Document {
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
    type: isTls ? "https" : null,
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
  members.raw("unhealthy_request_count");
  return {
    enabled: time !== null,
    consecutive_failures: most ?? 1,
    ...(time === null ? {} : { ejection_seconds: Math.min(3600, time) }),
    ...(statuses.length === 0 ? {} : { statuses: statuses.filter((status) => status >= 100) }),
  };
}
