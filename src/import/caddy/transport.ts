// Converts the transport of Caddy's reverse proxy: protocol, timeouts, connections and TLS of a service.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { millisecondsOf } from "./placeholders.ts";

export function transportOf(members: Members): Document {
  const tls = members.object("tls");
  const times = {
    connect_timeout: millisecondsOf(members.raw("dial_timeout")),
    response_timeout: millisecondsOf(members.raw("response_header_timeout")),
    read_timeout: millisecondsOf(members.raw("read_timeout")),
    write_timeout: millisecondsOf(members.raw("write_timeout")),
  };
  const keepAlive = members.object("keep_alive");
  const idle = millisecondsOf(keepAlive?.raw("idle_timeout") ?? null);
  for (const name of ["probe_interval", "max_idle_conns"])
    keepAlive?.omit(name, "set size of the service's keepalive");
  const isKept = keepAlive?.flag("enabled") ?? true;
  const most = keepAlive?.bounded("max_idle_conns_per_host", { min: 0, max: 10_000 }) ?? null;
  const pool = {
    ...(isKept ? {} : { size: 0 }),
    ...(isKept && most !== null ? { size: most } : {}),
    ...(idle === null ? {} : { idle_timeout: idle }),
  };
  const protocol = protocolOf(members.texts("versions"), tls !== null);
  if (protocol === "h2" || protocol === "h2c")
    members.changed("versions", `became the protocol ${protocol}: ${FOR_GRPC}`);
  members.omit("compression", "Accept-Encoding of the client is forwarded", false);
  members.omit("proxy_protocol", "targets of HTTP services get X-Forwarded-For");
  for (const name of ["resolver", "network_proxy", "forward_proxy_url", "local_address"])
    members.omit(name, "this gateway has no equivalent");
  members.omit("max_conns_per_host", "set max_connections_per_target of the service");
  for (const name of ["max_response_header_size", "dial_fallback_delay"])
    members.omit(name, "set the timeouts and limits of the service");
  for (const name of ["expect_continue_timeout", "read_buffer_size", "write_buffer_size"])
    members.omit(name, "set the timeouts and limits of the service");
  const filled = Object.entries(times).filter(([, time]) => time !== null && time > 0);
  return {
    protocol,
    ...(tls === null ? {} : { tls: tlsOf(tls) }),
    ...(Object.fromEntries(filled) as Document),
    ...(Object.keys(pool).length === 0 ? {} : { keepalive: pool }),
  };
}

const FOR_GRPC =
  'if the targets speak gRPC, set grpc or grpcs, and engine "sluice" of the listener';

/** Caddy's default is HTTP/1.1, and HTTP/2 where a target with TLS offers it. */
function protocolOf(versions: readonly string[], hasTls: boolean): "http" | "https" | "h2" | "h2c" {
  const isHttp2 = versions.length > 0 && !versions.includes("1.1");
  if (hasTls) return isHttp2 ? "h2" : "https";
  return isHttp2 && versions.includes("h2c") ? "h2c" : "http";
}

function tlsOf(members: Members): Document {
  const name = members.text("server_name");
  const trusted = [...members.texts("root_ca_pool"), ...inlineOf(members.object("ca"))];
  for (const file of ["root_ca_pem_files", "client_certificate_file"])
    members.omit(file, "files are not read: set them in tls of the service");
  for (const file of ["client_certificate_key_file", "client_certificate_automate"])
    members.omit(file, "set tls.client_certificate_id of the service");
  for (const each of ["handshake_timeout", "renegotiation", "except_ports", "curves"])
    members.omit(each, "set the timeouts and limits of the service");
  return {
    verify: !(members.flag("insecure_skip_verify") ?? false),
    ...(trusted.length === 0 ? {} : { ca_certificates: trusted.map(pemOf).join("\n") }),
    ...(name === null || name.includes("{") ? {} : { server_name: name }),
  };
}

/** Certificates in base64; those in files are not read. */
function inlineOf(pool: Members | null): readonly string[] {
  if (pool === null) return [];
  if (pool.text("provider") === "inline") return pool.texts("trusted_ca_certs");
  pool.drop("set tls.ca_certificates of the service");
  return [];
}

const pemOf = (base64: string): string =>
  `-----BEGIN CERTIFICATE-----\n${base64.match(/.{1,64}/g)?.join("\n") ?? ""}\n-----END CERTIFICATE-----`;
