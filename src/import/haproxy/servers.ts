// Converts backends of HAProxy to services with targets and health checks; knows no frontend.
import type { Document } from "../../control/body.ts";
import type { Output } from "../output.ts";
import type { UsedService } from "../traefik/services.ts";
import { millisecondsOf, type Section, settingOf } from "./sections.ts";

interface Server {
  readonly name: string;
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
  readonly isBackup: boolean;
  readonly isDisabled: boolean;
  readonly isTls: boolean;
  readonly isVerified: boolean;
  readonly isHttp2: boolean;
  readonly isChecked: boolean;
  readonly options: ReadonlyMap<string, string>;
}

/** Adds the service of a backend; null, with an entry in the report: it has no server. */
export function addBackend(
  section: Section,
  output: Output,
  { isStream = false }: { readonly isStream?: boolean } = {},
): UsedService | null {
  const label = `${section.kind} "${section.name}"`;
  const servers = serversOf(section, output);
  const [first] = servers;
  if (first === undefined) {
    output.report.omitted(label, "it has no server that could be imported");
    return null;
  }
  const used = servers.filter((server) => server.isTls === first.isTls);
  for (const { name } of servers)
    if (!used.some((server) => server.name === name))
      output.report.omitted(`server "${name}" of ${label}`, "all servers must use TLS, or none");
  const name = output.name("services", section.name);
  const streamProtocol = first.isTls ? "tls" : "tcp";
  const httpProtocol = first.isHttp2
    ? first.isTls
      ? "h2"
      : "h2c"
    : first.isTls
      ? "https"
      : "http";
  const key = `${section.kind} ${section.name}`;
  const sni = /^str\(([^()]*)\)$/.exec(first.options.get("sni") ?? "")?.[1] ?? "";
  const id = output.add(
    "services",
    { key, label },
    {
      name,
      protocol: isStream ? streamProtocol : httpProtocol,
      ...(first.isTls ? { tls: { verify: first.isVerified, server_name: sni } } : {}),
      ...(isStream ? balancingOf(section) : { ...balancingOf(section), ...stickyOf(section) }),
      ...timesOf(section),
      health: healthOf(section, used),
    },
  );
  if (first.isTls && first.options.has("ca-file"))
    output.report.changed(
      label,
      "set tls.ca_certificates of the service: the import reads no files",
    );
  if (first.isTls && first.options.has("crt"))
    output.report.changed(
      label,
      "set the client certificate of the service: the import reads no files",
    );
  output.report.imported(label, `became the service ${name}`);
  for (const server of used) addTarget(server, { key, label, service: id }, output);
  return { id, plugins: [] };
}

function serversOf(section: Section, { report }: Output): readonly Server[] {
  const base = [...section.defaults, ...section.lines].flatMap(({ words }) =>
    words[0] === "default-server" ? words.slice(1) : [],
  );
  return section.lines.flatMap(({ words, number }) => {
    const [keyword, name = "", address = "", ...rest] = words;
    if (keyword === "server-template")
      report.omitted(`server-template (line ${number})`, "add its servers as targets");
    if (keyword !== "server") return [];
    const server = serverOf(name, address, [...base, ...rest]);
    if (server === null)
      report.omitted(
        `server "${name}" (line ${number})`,
        `its address ${address} is not supported`,
      );
    return server ?? [];
  });
}

function addTarget(
  server: Server,
  {
    key,
    label,
    service,
  }: { readonly key: string; readonly label: string; readonly service: string },
  output: Output,
): void {
  const where = server.port === null ? server.host : `${server.host}:${server.port}`;
  output.add(
    "targets",
    { key: `${key} ${where}`, label: `server "${server.name}" of ${label}` },
    {
      host: server.host,
      port: server.port,
      service_id: service,
      weight: server.weight,
      ...(server.isBackup ? { priority: 1 } : {}),
      ...(server.isDisabled ? { enabled: false } : {}),
    },
  );
}

/** Settings with a value. */
const VALUED: ReadonlySet<string> = new Set([
  ...["weight", "verify", "ca-file", "crt", "sni", "cookie", "inter", "fall", "rise", "maxconn"],
  ...[
    "port",
    "addr",
    "proto",
    "alpn",
    "check-alpn",
    "check-sni",
    "fastinter",
    "downinter",
    "source",
  ],
  ...[
    "maxqueue",
    "slowstart",
    "resolvers",
    "resolve-prefer",
    "init-addr",
    "id",
    "on-error",
    "observe",
  ],
  ...["error-limit", "on-marked-down", "on-marked-up", "ciphers", "ssl-min-ver", "ssl-max-ver"],
  ...["verifyhost", "track", "redir", "agent-port", "agent-inter", "agent-addr", "pool-max-conn"],
  ...[
    "pool-purge-delay",
    "pool-low-conn",
    "max-reuse",
    "minconn",
    "namespace",
    "check-proto",
    "ws",
  ],
]);

function serverOf(name: string, address: string, words: readonly string[]): Server | null {
  const options = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const isValued = VALUED.has(word);
    options.set(word, isValued ? (words[at + 1] ?? "") : "");
    if (isValued) at += 1;
  }
  const isTls = options.has("ssl") && !options.has("no-ssl");
  const bare = address.replace(/^(?:ipv[46]|ipv4@|ipv6)@/, "");
  const [, socket] = /^(?:unix@)?(\/.*)$/.exec(bare) ?? [];
  const [, bracketed, plain, given] = /^(?:\[([^\]]+)\]|([^:@/]+))(?::(\d+))?$/.exec(bare) ?? [];
  const host = socket === undefined ? (bracketed ?? plain) : `unix:${socket}`;
  if (host === undefined) return null;
  const usual = isTls ? 443 : 80;
  return {
    name,
    host,
    port: socket === undefined ? Number(given ?? usual) : null,
    weight: options.has("weight") ? Math.min(256, Number(options.get("weight")) || 0) : 1,
    isBackup: options.has("backup"),
    isDisabled: options.has("disabled"),
    isTls,
    isVerified: options.get("verify") !== "none",
    isHttp2: options.get("proto") === "h2",
    isChecked: options.has("check") && !options.has("no-check"),
    options,
  };
}

const ALGORITHMS: Readonly<Record<string, string>> = {
  roundrobin: "round_robin",
  "static-rr": "round_robin",
  leastconn: "least_connections",
  first: "first",
  random: "random_two",
};

function balancingOf(section: Section): Document {
  const [word = "roundrobin", argument = ""] = settingOf(section, "balance") ?? [];
  const hash = (source: string, name = ""): Document => ({
    algorithm: "consistent_hash",
    hash_on: { source, name },
  });
  const [, field] = /^hdr\(([^()]+)\)$/.exec(word) ?? [];
  if (field !== undefined) return hash("header", field);
  if (word === "source" || (word === "hash" && argument === "src")) return hash("ip");
  if (word === "uri") return hash("path");
  if (word === "url_param") return hash("query", argument);
  return { algorithm: ALGORITHMS[word.replace(/\(.*$/, "")] ?? "round_robin" };
}

function stickyOf(section: Section): Document {
  const [name, ...words] = settingOf(section, "cookie") ?? [];
  const isOwn = words.some((word) => /^(?:insert|prefix|rewrite)$/.test(word));
  return name === undefined || !isOwn ? {} : { sticky: { enabled: true, cookie: name } };
}

function timesOf(section: Section): Document {
  const connect = millisecondsOf(settingOf(section, "timeout", "connect")?.[0]);
  const server = millisecondsOf(settingOf(section, "timeout", "server")?.[0]);
  const retries = Number(settingOf(section, "retries")?.[0] ?? 3);
  return {
    ...(connect === null || connect === 0
      ? {}
      : { connect_timeout: Math.min(connect, 86_400_000) }),
    ...(server === null
      ? {}
      : {
          response_timeout: Math.min(server, 86_400_000),
          read_timeout: Math.min(server, 86_400_000),
        }),
    retries: { count: Math.min(10, Math.max(0, retries || 0)), on: ["connect"] },
  };
}

function healthOf(section: Section, servers: readonly Server[]): Document {
  const [checked] = servers.filter(({ isChecked }) => isChecked);
  const passive = { enabled: false };
  if (checked === undefined) return { passive };
  const seconds = (name: string, usual: number) => {
    const value = millisecondsOf(checked.options.get(name)) ?? usual;
    return Math.min(3600, Math.max(1, Math.round(value / 1000)));
  };
  const count = (name: string, usual: number) =>
    Math.min(100, Math.max(1, Number(checked.options.get(name) ?? usual) || usual));
  const http = settingOf(section, "option", "httpchk");
  const [one = "", two] = http ?? [];
  const send = section.lines.find(({ words }) => words[0] === "http-check" && words[1] === "send");
  const sent = (word: string) => {
    const at = send?.words.indexOf(word) ?? -1;
    return at === -1 ? undefined : send?.words[at + 1];
  };
  const uri = sent("uri") ?? (two === undefined ? one : two);
  const method = sent("meth") ?? (two === undefined ? "GET" : one);
  const expect = settingOf(section, "http-check", "expect", "status")?.[0];
  const isStatus = /^[1-5]\d\d(?:-[1-5]\d\d)?$/.test(expect ?? "");
  return {
    passive,
    active: {
      enabled: true,
      type: http === null ? "tcp" : checked.isTls ? "https" : "http",
      interval: seconds("inter", 2000),
      unhealthy_interval: seconds("inter", 2000),
      healthy_threshold: count("rise", 2),
      unhealthy_threshold: count("fall", 3),
      ...(http === null ? {} : { path: uri.startsWith("/") ? uri : "/" }),
      ...(["GET", "HEAD", "POST", "OPTIONS"].includes(method) && http !== null ? { method } : {}),
      ...(isStatus && expect !== undefined ? { expect_statuses: [expect] } : {}),
      ...(checked.options.has("port") ? { port: Number(checked.options.get("port")) } : {}),
    },
  };
}
