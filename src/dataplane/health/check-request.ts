// The request and expectations of a target's active check, from the settings of its service; knows no schedule.
import type { Service } from "../../model/service.ts";
import { isHttp2Protocol } from "../../snapshot/upstream-protocol.ts";
import { authorityOf, type TargetRuntime, tlsOptions } from "../service-runtime.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { checkMessage, GRPC_CHECK_PATH } from "./grpc-check.ts";
import type { ProbeSpec } from "./probe.ts";

type ActiveCheck = Service["health"]["active"];

/** Made once for all checks of the target. */
export function probeSpec(service: Service, target: Pick<TargetRuntime, "endpoint">): ProbeSpec {
  const { active } = service.health;
  const endpoint = endpointOf(service, target.endpoint);
  return {
    endpoint,
    request: active.type === "tcp" ? null : requestOf(service, endpoint),
    timeoutMs: active.timeout * 1000,
  };
}

function requestOf(service: Service, endpoint: Endpoint): ProbeSpec["request"] {
  const { active } = service.health;
  if (isGrpcCheck(active)) {
    const body = checkMessage(active.grpc_service);
    return {
      head: grpcHeadOf(service, endpoint),
      method: "POST",
      body,
      isHttp2: true,
      isLenient: false,
      isGrpc: true,
      accepts: (status) => status === 200,
      text: null,
    };
  }
  return {
    head: headOf(service, endpoint),
    method: active.method,
    body: null,
    isHttp2: isHttp2Protocol(service.protocol),
    isLenient: service.response_parsing === "lenient",
    isGrpc: false,
    accepts: statusTest(active.expect_statuses),
    text: active.expect_body === null ? null : Buffer.from(active.expect_body),
  };
}

const isGrpcCheck = ({ type }: ActiveCheck) => type === "grpc" || type === "grpcs";

function endpointOf(service: Service, own: Endpoint): Endpoint {
  const { type, port } = service.health.active;
  // On the target's own port a check uses TLS when the traffic does.
  const follows = (type === "http" || type === "grpc") && port === null && own.tls !== null;
  const isTls = type === "https" || type === "grpcs" || follows;
  return { ...own, port: port ?? own.port, tls: isTls ? tlsOf(service, own) : null };
}

function tlsOf(service: Service, own: Endpoint): Endpoint["tls"] {
  const { alpn: _, ...tls } = own.tls ?? tlsOptions(service);
  const isHttp2 = isGrpcCheck(service.health.active) || isHttp2Protocol(service.protocol);
  return isHttp2 ? { ...tls, alpn: "h2" } : tls;
}

function grpcHeadOf(service: Service, endpoint: Endpoint): string {
  const own = [["content-type", "application/grpc"]] as const;
  return `POST ${GRPC_CHECK_PATH} HTTP/1.1\r\n${fieldLines(service, endpoint, own)}\r\n`;
}

function headOf(service: Service, endpoint: Endpoint): string {
  const { active } = service.health;
  const lines = fieldLines(service, endpoint, [["accept", "*/*"]]);
  const framing = active.method === "POST" ? "content-length: 0\r\n" : "";
  return `${active.method} ${active.path} HTTP/1.1\r\n${lines}${framing}connection: close\r\n\r\n`;
}

function fieldLines(
  { host_header: rule, health }: Service,
  endpoint: Endpoint,
  own: readonly (readonly [string, string])[],
): string {
  const fields = new Map([
    ["host", rule === "preserve" || rule === "target" ? authorityOf(endpoint) : rule],
    ["user-agent", "sluice-health-check"],
    ...own,
  ]);
  for (const [name, value] of Object.entries(health.active.headers))
    fields.set(name.toLowerCase(), value);
  const lineOf = ([name, value]: [string, string]) =>
    `${name === "host" ? "Host" : name}: ${value}\r\n`;
  return [...fields].map(lineOf).join("");
}

/** Compiles `[204, "300-399"]`. */
function statusTest(list: ActiveCheck["expect_statuses"]): (status: number) => boolean {
  const ranges = list.map((entry) => {
    const [from = 0, to = from] = String(entry).split("-").map(Number);
    return { from, to };
  });
  return (status) => ranges.some(({ from, to }) => status >= from && status <= to);
}
