// Fields of a Kong route beside its paths, hosts and headers; knows no route of the gateway.
import { isGrpcProtocol } from "../../snapshot/upstream-protocol.ts";
import type { Members } from "../members.ts";
import type { OrderKey } from "./route-order.ts";

export const isPlain = (hosts: readonly string[]): boolean =>
  hosts.length > 0 && !hosts.some((host) => host.includes("*"));

export function rulesOf(members: Members): OrderKey["rules"] {
  const lists = { host: "hosts", path: "paths", method: "methods", sni: "snis" } as const;
  const given = Object.entries(lists).filter(([, name]) => members.texts(name).length > 0);
  const hasHeaders = (members.object("headers")?.names.length ?? 0) > 0;
  const rules = given.map(([rule]) => rule as OrderKey["rules"][number]);
  return hasHeaders ? [...rules, "header"] : rules;
}

/** Conditions on the addresses of connections. */
export function sourcesOf(members: Members) {
  const addresses = members.objects("sources").map((each) => {
    each.omit("port", "client ports cannot be matched");
    return { ip: each.text("ip"), hasPort: each.has("port") };
  });
  const cidrs = addresses.flatMap(({ ip }) => ip ?? []);
  const isWhole = cidrs.length === addresses.length && addresses.every(({ hasPort }) => !hasPort);
  const hasDestinations = members.objects("destinations").length > 0;
  members.omit("destinations", "listeners decide on which addresses a route is reachable");
  return {
    client_cidrs: cidrs.length === addresses.length ? [...new Set(cidrs)] : [],
    isWider: !isWhole || hasDestinations,
  };
}

const REDIRECTS: Readonly<Record<number, number>> = { 301: 301, 302: 301, 307: 308, 308: 308 };

const schemes: Readonly<Record<string, string>> = {
  grpc: "http",
  grpcs: "https",
  ws: "http",
  wss: "https",
};

/** A route for HTTPS also matches plain HTTP requests, and redirects them. */
export function httpsOf(members: Members): Record<string, unknown> {
  const given = members.texts("protocols").map((name) => schemes[name] ?? name);
  const protocols = given.length === 0 ? ["http", "https"] : [...new Set(given)];
  const status = members.number("https_redirect_status_code") ?? 426;
  // Clients of gRPC follow no redirect.
  const isOfGrpc = members.texts("protocols").some(isGrpcProtocol);
  if (protocols.includes("http") || isOfGrpc) return { protocols };
  const code = REDIRECTS[status] ?? 308;
  if (code !== status) members.changed("https_redirect_status_code", `${status} became ${code}`);
  return { protocols: ["http", "https"], https_redirect: code };
}

export function omitRest(members: Members): void {
  members.omit("path_handling", "paths are joined as in v0", "v0");
  for (const name of ["request_buffering", "response_buffering"])
    members.omit(name, "the service's response_buffer_bytes decides", true);
}

/** Whether Kong matches handshakes of WebSockets only. */
export const isWebSocket = (members: Members, service: Members | null): boolean => {
  const protocols = members.texts("protocols");
  const isWs = (protocol: string) => protocol === "ws" || protocol === "wss";
  if (protocols.length > 0) return protocols.some(isWs);
  const url = service?.text("url") ?? "";
  return /^wss?:/.test(url) || isWs(service?.text("protocol") ?? "");
};
