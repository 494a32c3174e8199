// Converts services of Kong, each with a copy of the targets of its upstream.
import { invalid } from "../../model/error.ts";
import type { Members } from "../members.ts";
import { commonOf, type KongContext, referenceOf, remember } from "./context.ts";
import type { Upstream } from "./upstreams.ts";

export interface KongService {
  readonly id: string;
  readonly name: string;
  readonly members: Members;
  /** `http`, `tcp` and so on. */
  readonly protocol: string;
}

const protocols: Readonly<Record<string, string>> = {
  http: "http",
  https: "https",
  grpc: "grpc",
  grpcs: "grpcs",
  ws: "http",
  wss: "https",
  tcp: "tcp",
  tls: "tls",
  tls_passthrough: "tcp",
  udp: "udp",
};

const time = { min: 0, max: 86_400_000 };

export interface KongServices {
  readonly services: readonly KongService[];
  /** Services that were not imported; the protections of their routes still count. */
  readonly lost: readonly Members[];
}

export function addServices(
  context: KongContext,
  upstreams: ReadonlyMap<string, Upstream>,
): KongServices {
  const used = new Set<string>();
  const services: KongService[] = [];
  const lost: Members[] = [];
  for (const members of context.root.objects("services")) {
    const service = addService(members, { context, upstreams, used });
    if (service === null) lost.push(members);
    else services.push(service);
  }
  for (const [name, { members }] of upstreams)
    if (!used.has(name)) members.drop("no service uses it");
  return { services, lost };
}

interface ServiceContext {
  readonly context: KongContext;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly used: Set<string>;
}

function addService(members: Members, serviceContext: ServiceContext): KongService | null {
  const { context, upstreams, used } = serviceContext;
  const { output } = context;
  const address = addressOf(members);
  const id = members.text("id");
  const wanted = members.text("name") ?? address.host;
  members.setLabel(`service "${wanted}"`);
  const protocol = Object.hasOwn(protocols, address.protocol)
    ? protocols[address.protocol]
    : undefined;
  if (protocol === undefined) {
    members.drop(`the gateway has no services with the protocol ${address.protocol}`);
    return null;
  }
  const name = output.name("services", wanted);
  if (name !== wanted) members.changed("name", `became ${name}`);
  const upstream = upstreams.get(address.host) ?? null;
  if (upstream !== null) used.add(address.host);
  const tls = tlsOf(members, upstream, context);
  const common = commonOf(members);
  const made = output.add(
    "services",
    { key: id ?? wanted, label: members.label },
    {
      name,
      protocol,
      path: address.path === "/" ? "" : address.path,
      host_header: "target",
      ...upstream?.fields,
      ...timesOf(members),
      tls,
      ...(members.flag("enabled") === false ? { enabled: false } : {}),
      ...common,
      tags: [...new Set([...(common["tags"] as string[]), ...(upstream?.tags ?? [])])],
    },
  );
  members.report.imported(members.label, "became a service");
  if (upstream !== null)
    members.report.imported(upstream.members.label, `became part of ${members.label}`);
  remember(context, { kind: "services", words: [id, members.text("name")], id: made });
  const targets = upstream?.targets ?? [
    { host: address.host, port: address.port, weight: 100, tags: [] },
  ];
  const usesSrv = upstream?.fields["resolve"] === "srv";
  for (const target of targets) {
    const where = `${target.host}:${target.port}`;
    const port = usesSrv ? null : target.port;
    const label = `target "${where}" of ${members.label}`;
    members.report.imported(label, "became a target");
    output.add(
      "targets",
      { key: `${made} ${where}`, label },
      { ...target, port, service_id: made },
    );
  }
  for (const plugin of members.objects("plugins"))
    context.plugins.push({ members: plugin, owner: members.label, scope: { service_id: made } });
  return { id: made, name, members, protocol };
}

interface Address {
  readonly protocol: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

function addressOf(members: Members): Address {
  const url = members.text("url");
  const parsed = url === null ? null : URL.parse(url);
  if (url !== null && parsed === null) throw invalid(`${members.path}.url`, "must be a URL");
  const protocol = parsed?.protocol.slice(0, -1) ?? members.text("protocol") ?? "http";
  const host = parsed?.hostname.replace(/^\[(.*)\]$/, "$1") ?? members.text("host");
  if (host === null || host === "") throw invalid(`${members.path}.host`, "is required");
  // With a URL, the default is the port of the scheme; without one it is 80.
  const usual = parsed !== null && /^(?:https|wss)$/.test(protocol) ? 443 : 80;
  const port = parsed !== null && parsed.port !== "" ? Number(parsed.port) : null;
  return {
    protocol,
    host,
    port: port ?? members.number("port") ?? usual,
    path: parsed?.pathname ?? members.text("path") ?? "",
  };
}

function timesOf(members: Members): Record<string, unknown> {
  const connect = members.bounded("connect_timeout", time) ?? 60_000;
  const read = members.bounded("read_timeout", time) ?? 60_000;
  const write = members.bounded("write_timeout", time) ?? 60_000;
  const retries = members.bounded("retries", { min: 0, max: 10 }) ?? 5;
  return {
    connect_timeout: connect,
    response_timeout: read,
    read_timeout: read,
    write_timeout: write,
    retries: { count: retries, on: ["connect", "reset", "timeout"] },
  };
}

/** Kong does not verify certificates of targets unless tls_verify is set. */
function tlsOf(members: Members, upstream: Upstream | null, context: KongContext) {
  const verify = members.flag("tls_verify") ?? false;
  members.omit("tls_verify_depth", "the length of certificate chains cannot be limited");
  members.omit("tls_sans", "the name of tls.server_name is verified");
  const caCertificates = members.texts("ca_certificates").map((id) => {
    const pem = context.caCertificates.get(id);
    if (pem === undefined) members.changed("ca_certificates", `${id} is not in the file`);
    return pem ?? "";
  });
  const wanted = referenceOf(members, "client_certificate") ?? upstream?.clientCertificate ?? null;
  const certificate = wanted === null ? null : (context.ids.get(`certificates ${wanted}`) ?? null);
  if (wanted !== null && certificate === null)
    members.changed("client_certificate", "no client certificate is sent: it was not imported");
  const pem = caCertificates.join("\n").trim();
  return {
    verify,
    ...(pem === "" ? {} : { ca_certificates: pem }),
    client_certificate_id: certificate,
  };
}
