// The fields of the form of a listener, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";
import { isHostPattern } from "../routes/route-values.ts";

type Listener = Read<"listeners">;

/** The API's fields; the port may still be missing, and strings are never null. */
export interface ListenerValues extends Omit<
  Listener,
  "id" | "created_at" | "updated_at" | "port" | "client_ca" | "client_crl"
> {
  readonly port: number | null;
  readonly client_ca: string;
  readonly client_crl: string;
}

/** The API's defaults, so that the form shows them. */
const defaults: ListenerValues = {
  name: "",
  address: "0.0.0.0",
  port: null,
  hosts: [],
  protocol: "http",
  engine: "standard",
  shared_engines: false,
  max_concurrent_streams: 100,
  max_connection_age: 0,
  http2: true,
  http3: false,
  tls_min_version: "1.2",
  client_auth: "none",
  client_ca: "",
  client_crl: "",
  proxy_protocol: false,
  trusted_proxies: [],
  strict_sni: false,
  max_connections: 0,
  max_connections_per_address: 0,
  max_header_bytes: 16_384,
  max_body_bytes: 0,
  max_in_flight_requests: 0,
  body_min_rate: 500,
  idle_timeout: 75,
  enabled: true,
  tags: [],
  description: "",
};

export function toValues(listener: Partial<Listener>): ListenerValues {
  const names = Object.keys(defaults) as (keyof ListenerValues)[];
  const known = names.filter((name) => listener[name] !== undefined && listener[name] !== null);
  return { ...defaults, ...Object.fromEntries(known.map((name) => [name, listener[name]])) };
}

export function toBody({
  port,
  client_ca,
  client_crl,
  ...values
}: ListenerValues): Write<"listeners"> {
  const isTls = values.protocol === "https";
  const requestsCertificates = isTls && values.client_auth !== "none";
  return {
    ...values,
    port: port ?? 0,
    // Hidden fields must not fail validation.
    http3: isTls && values.http3 && usesOnlyStandard(values),
    shared_engines: isTls && values.engine === "standard" && values.shared_engines,
    strict_sni: isTls && values.strict_sni,
    client_auth: isTls ? values.client_auth : "none",
    client_ca: requestsCertificates && client_ca !== "" ? client_ca : null,
    client_crl: requestsCertificates && client_crl !== "" ? client_crl : null,
  };
}

/** Without the full engine, so that HTTP/3 is possible. */
export const usesOnlyStandard = ({
  engine,
  shared_engines: isShared,
  protocol,
}: Pick<Listener, "engine" | "shared_engines" | "protocol">): boolean =>
  engine === "standard" && !(isShared && protocol === "https");

/** Fields whose change may disconnect the browser. */
const ENDPOINT_FIELDS = [
  "address",
  "port",
  "protocol",
  "engine",
  "shared_engines",
  "enabled",
  "client_auth",
  "proxy_protocol",
  "hosts",
] as const;

/** Whether saving could disconnect this page. */
export function mayDisconnect(
  listener: Pick<Listener, "port" | "protocol">,
  changed: Readonly<Record<string, boolean>>,
  { port, protocol }: Pick<Location, "port" | "protocol">,
): boolean {
  return (
    isOwnListener(listener, { port, protocol }) &&
    ENDPOINT_FIELDS.some((name) => changed[name] === true)
  );
}

/** Whether this page was probably reached through the listener: by its port and scheme. */
export function isOwnListener(
  listener: Pick<Listener, "port" | "protocol">,
  { port, protocol }: Pick<Location, "port" | "protocol">,
): boolean {
  const own = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  return own === listener.port && protocol === `${listener.protocol}:`;
}

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  hosts: (hosts: string[]) => {
    const wrong = hosts.find((host) => !isHostPattern(host));
    return wrong === undefined
      ? null
      : `${wrong} is not a host name: enter shop.example.com or *.example.com, without https:// and port`;
  },
  port: (value: number | null) => (value === null ? "Port is required" : null),
  client_ca: (value: string, { client_auth, protocol }: ListenerValues) =>
    protocol === "https" && client_auth !== "none" && value.trim() === ""
      ? "Client CAs are required"
      : null,
};
