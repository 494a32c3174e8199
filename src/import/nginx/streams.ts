// Converts the block stream to stream routes; knows no HTTP.
import type { Document } from "../../control/body.ts";
import { socketOf } from "./listens.ts";
import type { NginxContext } from "./nginx.ts";
import { type Directive, Level, shownPlace } from "./tree.ts";
import { addressOf, readUpstreams, shownAddress, type Upstream } from "./upstreams.ts";
import { hasVariables, millisecondsOf, withFixed } from "./variables.ts";

export function addStreams(stream: Level, context: NginxContext): void {
  const upstreams = readUpstreams(stream.block, context.output.report);
  for (const directive of stream.own("server")) {
    const server = new Level(directive, stream);
    for (const listen of server.own("listen")) addListen({ listen, server, upstreams }, context);
  }
}

interface Listening {
  readonly listen: Directive;
  readonly server: Level;
  readonly upstreams: ReadonlyMap<string, Upstream>;
}

function addListen({ listen, server, upstreams }: Listening, context: NginxContext): void {
  const { output } = context;
  const [text = "", ...flags] = listen.args;
  const label = `stream on ${text} at ${shownPlace(listen.place)}`;
  const range = /^(?:(.*):)?(\d+-\d+)$/.exec(text);
  const socket = range === null ? socketOf(text, 0) : socketOf(range[1] ?? "*", 0);
  if (socket === null) {
    output.report.omitted(label, "is not an address and a port");
    return;
  }
  const fields = {
    ...(socket.address === null ? {} : { listen_address: socket.address }),
    ...(range === null ? { listen_port: socket.port } : { port_range: range[2] }),
    protocol: flags.includes("udp") ? "udp" : "tcp",
  };
  const isTerminated = flags.includes("ssl");
  const choices = choicesOf(server);
  if (choices === null) {
    output.report.omitted(label, "it has no proxy_pass to fixed targets");
    return;
  }
  for (const [at, { sni, target }] of choices.entries()) {
    const mode = isTerminated ? "terminate" : sni.length > 0 ? "passthrough" : "none";
    const place = { label, key: `${label} ${at}`, server, upstreams };
    const port = range?.[2] ?? socket.port;
    addRoute(
      { ...place, target, name: sni[0] ?? `stream-${fields.protocol}-${port}` },
      {
        ...fields,
        ...(sni.length > 0 ? { sni } : {}),
        tls_mode: mode,
      },
      context,
    );
  }
  if (flags.includes("proxy_protocol"))
    output.report.changed(label, "set proxy_protocol_in and proxy_protocol_trusted");
}

interface Choice {
  readonly sni: readonly string[];
  readonly target: string;
}

/** Targets by TLS name; null: they depend on something else. */
function choicesOf(server: Level): readonly Choice[] | null {
  const pass = server.own("proxy_pass").at(-1)?.args[0];
  if (pass === undefined) return null;
  const fixed = withFixed(pass, server);
  if (!hasVariables(fixed)) return [{ sni: [], target: fixed }];
  const wanted = fixed.replace(/^\$\{(\w+)\}$/, "$$$1");
  const map = server.parent?.own("map").find(({ args }) => args[1] === wanted);
  if (map === undefined || map.args[0] !== "$ssl_preread_server_name") return null;
  const found = new Map<string, string[]>();
  const hasHostnames = map.block?.some(({ name }) => name === "hostnames") ?? false;
  for (const { name, args } of map.block ?? []) {
    const [target = ""] = args;
    if (/^(?:hostnames|volatile)$/.test(name) && args.length === 0) continue;
    if (hasVariables(target) || target === "") return null;
    const isWild = /^\*?\./.test(name);
    const isUnknown = /^(?:~|\\|include$)|\.\*$/.test(name) || (isWild && !hasHostnames);
    if (isUnknown) return null;
    const names = name.startsWith(".") ? [name.slice(1), `*${name}`] : [name];
    found.set(target, [...(found.get(target) ?? []), ...(name === "default" ? [""] : names)]);
  }
  return [...found].flatMap(([target, names]): Choice[] => {
    const sni = names.filter((name) => name !== "");
    return [
      ...(sni.length > 0 ? [{ sni, target }] : []),
      ...(names.includes("") ? [{ sni: [], target }] : []),
    ];
  });
}

interface StreamRoute {
  readonly label: string;
  readonly key: string;
  readonly name: string;
  readonly target: string;
  readonly server: Level;
  readonly upstreams: ReadonlyMap<string, Upstream>;
}

const HARMLESS =
  /^(?:listen|proxy_(?:pass|timeout|connect_timeout|protocol|buffer_size|socket_keepalive|next_upstream\w*|responses|requests|upload_rate|download_rate|bind|half_close|ssl\w*)|ssl_(?!verify)\w+|allow|deny|preread_\w+|resolver\w*|tcp_nodelay|access_log|error_log|log_format|upstream|map\w*|server|set|variables_hash_\w+|status_zone|server_name)$/;

function addRoute(
  { label, key, name, target, server, upstreams }: StreamRoute,
  fields: Document,
  { output }: NginxContext,
): void {
  const upstream = upstreams.get(target);
  const direct = addressOf(target, null);
  const servers = upstream?.servers ?? (direct === null ? [] : [{ ...direct, weight: 100 }]);
  const isTls = server.value("proxy_ssl") === "on";
  const protocol = fields["protocol"] === "udp" ? "udp" : isTls ? "tls" : "tcp";
  const serviceId = output.add(
    "services",
    { key, label: `service of ${label}` },
    {
      name: output.name("services", name),
      protocol,
      ...upstream?.fields,
      ...(isTls ? { tls: { verify: server.value("proxy_ssl_verify") === "on" } } : {}),
    },
  );
  for (const each of servers)
    output.add(
      "targets",
      { key: `${key} ${shownAddress(each)}`, label: `target ${shownAddress(each)} of ${label}` },
      {
        service_id: serviceId,
        host: each.host,
        port: each.port,
        weight: each.weight,
        ...("isBackup" in each && each.isBackup ? { priority: 1 } : {}),
        ...("isDown" in each && each.isDown ? { enabled: false } : {}),
      },
    );
  const access = networksOf(server);
  const idle = millisecondsOf(server.value("proxy_timeout"));
  const connect = millisecondsOf(server.value("proxy_connect_timeout"));
  const id = output.add(
    "stream_routes",
    { key, label },
    {
      name: output.name("stream_routes", name),
      ...fields,
      service_id: serviceId,
      enabled: false,
      ...access.fields,
      ...(idle === null || fields["protocol"] === "udp"
        ? {}
        : { idle_timeout: Math.min(604_800, Math.round(idle / 1000)) }),
      ...(connect === null || connect === 0 ? {} : { connect_timeout: connect }),
      ...(server.value("proxy_protocol") === "on" ? { proxy_protocol_out: "v1" } : {}),
    },
  );
  const unknown = server.chain.flatMap(({ block }) =>
    block
      .filter((each) => !HARMLESS.test(each.name))
      .map((each) => `${each.name} at ${shownPlace(each.place)}`),
  );
  for (const what of [...access.lost, ...unknown])
    output.loseProtection({ scope: { stream_route_id: id }, what });
  output.report.changed(
    label,
    "became a disabled stream route: enable it when nginx no longer listens there",
  );
}

/** `deny` wins over `allow` in a stream route: only lists of one kind and its end can be expressed. */
function networksOf(server: Level): {
  readonly fields: Document;
  readonly lost: readonly string[];
} {
  const owner = server.chain.find(({ block }) => block.some(isRule));
  const rules = (owner?.block ?? []).filter(isRule);
  const [first] = rules;
  if (first === undefined) return { fields: {}, lost: [] };
  const networks = rules.filter(({ args }) => args[0] !== "all").map(({ args }) => args[0] ?? "");
  const kinds = new Set(rules.filter(({ args }) => args[0] !== "all").map(({ name }) => name));
  const last = rules.at(-1);
  const isWhole =
    last?.args[0] === "all" && rules.findIndex((one) => one.args[0] === "all") === rules.length - 1;
  if (kinds.has("allow") && kinds.size === 1 && isWhole && last?.name === "deny")
    return { fields: { allow: networks }, lost: [] };
  if (
    kinds.has("deny") &&
    kinds.size === 1 &&
    (isWhole ? last?.name === "allow" : !rules.some(({ args }) => args[0] === "all"))
  )
    return { fields: { deny: networks }, lost: [] };
  if (kinds.size === 0 && last?.name === "allow") return { fields: {}, lost: [] };
  return { fields: {}, lost: [`${first.name} at ${shownPlace(first.place)}`] };
}

const isRule = ({ name }: Directive): boolean => name === "allow" || name === "deny";
