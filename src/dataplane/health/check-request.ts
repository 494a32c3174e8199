// The request and expectations of a target's active check, from the settings of its service; knows no schedule.
import type { Service } from "../../model/service.ts";
import { authorityOf, type TargetRuntime, tlsOptions } from "../service-runtime.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import type { ProbeSpec } from "./probe.ts";

type ActiveCheck = Service["health"]["active"];

/** Made once for all checks of the target. */
export function probeSpec(service: Service, target: Pick<TargetRuntime, "endpoint">): ProbeSpec {
  const { active } = service.health;
  const endpoint = endpointOf(service, target.endpoint);
  return {
    endpoint,
    request:
      active.type === "tcp"
        ? null
        : {
            head: headOf(service, endpoint),
            isHead: active.method === "HEAD",
            accepts: statusTest(active.expect_statuses),
            text: active.expect_body === null ? null : Buffer.from(active.expect_body),
          },
    timeoutMs: active.timeout * 1000,
  };
}

function endpointOf(service: Service, own: Endpoint): Endpoint {
  const { type, port } = service.health.active;
  // On the target's own port an HTTP check uses TLS when the traffic does.
  const isTls = type === "https" || (type === "http" && port === null && own.tls !== null);
  return { ...own, port: port ?? own.port, tls: isTls ? (own.tls ?? tlsOptions(service)) : null };
}

function headOf(service: Service, endpoint: Endpoint): string {
  const { active } = service.health;
  const { host_header: rule } = service;
  const fields = new Map([
    ["host", rule === "preserve" || rule === "target" ? authorityOf(endpoint) : rule],
    ["user-agent", "sluice-health-check"],
    ["accept", "*/*"],
  ]);
  for (const [name, value] of Object.entries(active.headers)) fields.set(name.toLowerCase(), value);
  const lines = [...fields].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const framing = active.method === "POST" ? "content-length: 0\r\n" : "";
  return `${active.method} ${active.path} HTTP/1.1\r\n${lines}${framing}connection: close\r\n\r\n`;
}

/** Compiles `[204, "300-399"]`. */
function statusTest(list: ActiveCheck["expect_statuses"]): (status: number) => boolean {
  const ranges = list.map((entry) => {
    const [from = 0, to = from] = String(entry).split("-").map(Number);
    return { from, to };
  });
  return (status) => ranges.some(({ from, to }) => status >= from && status <= to);
}
