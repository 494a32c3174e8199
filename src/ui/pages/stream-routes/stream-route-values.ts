// The fields of the form of a stream route, converted from and to the API's objects; renders nothing.
import type { ApiError } from "../../api/error.ts";
import type { Read, Write } from "../../api/resources.ts";

type StreamRoute = Read<"stream-routes">;

/** The API's fields; the service may still be missing, and a choice tells one port from a range. */
export interface StreamRouteValues extends Omit<
  StreamRoute,
  "id" | "created_at" | "updated_at" | "service_id" | "port_range"
> {
  readonly service_id: string | null;
  readonly ports: "one" | "several";
  readonly port_range: string;
}

/** The API's defaults, so that the form shows them. */
const defaults: StreamRouteValues = {
  name: "",
  service_id: null,
  listen_address: "0.0.0.0",
  listen_port: null,
  port_range: "",
  ports: "one",
  protocol: "tcp",
  udp_session_timeout: 60,
  udp_max_sessions: 10_000,
  sni: [],
  tls_mode: "none",
  certificate_id: null,
  proxy_protocol_in: false,
  proxy_protocol_trusted: [],
  proxy_protocol_out: "off",
  connect_timeout: 5000,
  idle_timeout: 600,
  max_connections: 0,
  allow: [],
  deny: [],
  enabled: true,
  tags: [],
  description: "",
};

export function toValues(route: Partial<StreamRoute>): StreamRouteValues {
  const names = Object.keys(defaults).filter((name) => name !== "ports") as (keyof StreamRoute)[];
  const known = names.filter((name) => route[name] !== undefined && route[name] !== null);
  const own = Object.fromEntries(known.map((name) => [name, route[name]]));
  const isRange = typeof route.port_range === "string";
  return { ...defaults, ...own, ports: isRange ? "several" : "one" };
}

export function toBody(values: StreamRouteValues): Write<"stream-routes"> {
  const { ports, service_id, port_range, listen_port, tls_mode, protocol, ...rest } = values;
  const isTcp = protocol === "tcp";
  return {
    ...rest,
    protocol,
    service_id: service_id ?? "",
    listen_port: ports === "one" ? listen_port : null,
    port_range: ports === "several" ? port_range : null,
    // Hidden fields must not fail validation.
    tls_mode: isTcp ? tls_mode : "none",
    sni: isTcp && tls_mode !== "none" ? rest.sni : [],
    certificate_id: isTcp && tls_mode === "terminate" ? rest.certificate_id : null,
    proxy_protocol_in: isTcp && rest.proxy_protocol_in,
    proxy_protocol_out: isTcp ? rest.proxy_protocol_out : "off",
  };
}

/** The gateway's error names the address in use, not the field. */
export function fieldErrorOf(error: ApiError): { field: string; text: string } | null {
  const [, text] = /^stream route "[^"]*": ((?:UDP )?port .*)$/s.exec(error.message) ?? [];
  if (text === undefined) return null;
  return { field: text.includes("no such address") ? "listen_address" : "listen_port", text };
}

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  service_id: (value: string | null) => (value === null ? "Service is required" : null),
  listen_port: (value: number | null, { ports }: StreamRouteValues) =>
    ports === "one" && value === null ? "Port is required" : null,
  port_range: (value: string, { ports }: StreamRouteValues) =>
    ports === "one" || /^[1-9]\d{0,4}-[1-9]\d{0,4}$/.test(value)
      ? null
      : "Two ports, such as 32500-32599",
};
