// The fields of the form of a stream route, from what the API reads and to what it writes; draws nothing.
import type { ApiError } from "../../api/error.ts";
import type { Read, Write } from "../../api/resources.ts";

type StreamRoute = Read<"stream-routes">;

/** As the API has them; the service may still be missing, and one port or several is a choice. */
export interface StreamRouteValues extends Omit<
  StreamRoute,
  "id" | "created_at" | "updated_at" | "service_id" | "port_range"
> {
  readonly service_id: string | null;
  readonly ports: "one" | "several";
  readonly port_range: string;
}

/** The defaults of the API, so that the form shows what will happen. */
const defaults: StreamRouteValues = {
  ...{ name: "", service_id: null, listen_address: "0.0.0.0", listen_port: null, port_range: "" },
  ...{ ports: "one", protocol: "tcp", udp_session_timeout: 60, udp_max_sessions: 10_000, sni: [] },
  ...{ tls_mode: "none", certificate_id: null, proxy_protocol_in: false },
  ...{ proxy_protocol_trusted: [], proxy_protocol_out: "off", connect_timeout: 5000 },
  ...{ idle_timeout: 600, max_connections: 0, allow: [], deny: [], enabled: true, tags: [] },
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
    ...{ protocol, service_id: service_id ?? "" },
    listen_port: ports === "one" ? listen_port : null,
    port_range: ports === "several" ? port_range : null,
    // What a form no longer shows must not stand in the way.
    tls_mode: isTcp ? tls_mode : "none",
    sni: isTcp && tls_mode !== "none" ? rest.sni : [],
    certificate_id: isTcp && tls_mode === "terminate" ? rest.certificate_id : null,
    proxy_protocol_in: isTcp && rest.proxy_protocol_in,
    proxy_protocol_out: isTcp ? rest.proxy_protocol_out : "off",
  };
}

/** The gateway names the address that it could not have, not the field. */
export function placeOf(error: ApiError): { field: string; text: string } | null {
  const [, text] = /^stream route "[^"]*": ((?:UDP )?port .*)$/s.exec(error.message) ?? [];
  if (text === undefined) return null;
  return { field: text.includes("no such address") ? "listen_address" : "listen_port", text };
}

/** The same rules as the gateway's, so that mistakes show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "A name is needed"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  service_id: (value: string | null) => (value === null ? "A service is needed" : null),
  listen_port: (value: number | null, { ports }: StreamRouteValues) =>
    ports === "one" && value === null ? "A port is needed" : null,
  port_range: (value: string, { ports }: StreamRouteValues) =>
    ports === "one" || /^[1-9]\d{0,4}-[1-9]\d{0,4}$/.test(value)
      ? null
      : "Two ports, such as 32500-32599",
};
