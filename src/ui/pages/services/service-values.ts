// The fields of the form of a service, converted from and to the API's objects; renders nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";

export interface TargetValues {
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
  readonly priority: number;
  readonly enabled: boolean;
}

type Service = Read<"services">;
type Health = Service["health"];

/** The API's fields with every default filled in; lists of status codes are texts, as typed. */
export interface ServiceValues extends Pick<
  Service,
  | "name"
  | "description"
  | "tags"
  | "enabled"
  | "protocol"
  | "path"
  | "host_header"
  | "algorithm"
  | "hash_on"
  | "sticky"
  | "connect_timeout"
  | "response_timeout"
  | "read_timeout"
  | "write_timeout"
  | "request_timeout"
  | "slow_start"
  | "retries"
  | "keepalive"
  | "response_buffer_bytes"
  | "tls"
  | "resolve"
  | "max_connections_per_target"
> {
  readonly health: {
    readonly active: Omit<Health["active"], "expect_statuses"> & {
      readonly expect_statuses: string[];
    };
    readonly passive: Omit<Health["passive"], "statuses"> & { readonly statuses: string[] };
    readonly panic_percent: number;
  };
  /** Only for a new service; targets of a stored service are changed one by one. */
  readonly targets: readonly TargetValues[] | undefined;
}

export const newTarget: TargetValues = {
  host: "",
  port: null,
  weight: 100,
  priority: 0,
  enabled: true,
};

/** The defaults of the API. */
export const defaultRetries: Service["retries"] = {
  count: 2,
  on: ["connect", "reset", "502", "503", "504"],
  methods: "idempotent",
  per_try_timeout: 0,
  backoff_ms: 25,
  budget_percent: 20,
};

/** The API's defaults, so that the form shows them. */
const defaults: Omit<Service, "id" | "created_at" | "updated_at" | "targets"> = {
  name: "",
  description: "",
  tags: [],
  enabled: true,
  protocol: "http",
  path: "",
  host_header: "preserve",
  algorithm: "round_robin",
  hash_on: { source: "ip", name: "", fallback: "ip" },
  sticky: { enabled: false, cookie: "sluice_sticky", ttl: 0 },
  connect_timeout: 5000,
  response_timeout: 60_000,
  read_timeout: 60_000,
  write_timeout: 60_000,
  request_timeout: 0,
  slow_start: 0,
  retries: defaultRetries,
  keepalive: { size: 64, idle_timeout: 60_000, max_requests: 1000 },
  response_buffer_bytes: 1_048_576,
  resolve: "dns",
  max_connections_per_target: 0,
  tls: {
    verify: true,
    ca_certificates: "",
    server_name: "",
    client_certificate_id: null,
    min_version: "1.2",
  },
  health: {
    active: {
      enabled: false,
      type: "http",
      path: "/",
      method: "GET",
      headers: {},
      port: null,
      interval: 10,
      unhealthy_interval: 5,
      timeout: 2,
      expect_statuses: ["200-399"],
      grpc_service: "",
      expect_body: null,
      healthy_threshold: 2,
      unhealthy_threshold: 3,
    },
    passive: {
      enabled: true,
      consecutive_failures: 5,
      statuses: [502, 503, 504],
      ejection_seconds: 30,
      max_ejection_seconds: 300,
      max_ejection_percent: 50,
    },
    panic_percent: 0,
  },
};

export function toValues(service: Partial<Service>): ServiceValues {
  const names = Object.keys(defaults) as (keyof typeof defaults)[];
  const known = names.filter((name) => service[name] !== undefined);
  const own = Object.fromEntries(known.map((name) => [name, service[name]]));
  const all = { ...defaults, ...own } as typeof defaults;
  const { active, passive, panic_percent } = all.health;
  return {
    ...all,
    health: {
      active: { ...active, expect_statuses: active.expect_statuses.map(String) },
      passive: { ...passive, statuses: passive.statuses.map(String) },
      panic_percent,
    },
    targets: targetsOf(service),
  };
}

/** A stored service manages its targets separately; a clone copies those of its source. */
function targetsOf({ id, targets }: Partial<Service>): readonly TargetValues[] | undefined {
  if (id !== undefined) return undefined;
  if (targets === undefined) return [newTarget];
  return (targets as readonly Schemas["Target"][]).map(
    ({ host, port, weight, priority, enabled }) => ({ host, port, weight, priority, enabled }),
  );
}

export function toBody({ targets, health, ...values }: ServiceValues): Write<"services"> {
  const { active, passive } = health;
  return {
    ...values,
    health: {
      ...health,
      active: { ...active, expect_body: active.expect_body === "" ? null : active.expect_body },
      passive: { ...passive, statuses: passive.statuses.map(Number) },
    },
    ...(targets === undefined
      ? {}
      : { targets: targets.filter(({ host }) => host !== "").map((target) => ({ ...target })) }),
  };
}

/** Whether the service speaks HTTP rather than raw bytes. */
export const isHttp = (protocol: Service["protocol"]): boolean =>
  !["tcp", "tls", "udp"].includes(protocol);

/** Whether it speaks HTTP/2 only. */
export const isHttp2 = (protocol: Service["protocol"]): boolean =>
  ["h2", "h2c", "grpc", "grpcs"].includes(protocol);

export const isGrpc = (protocol: string): boolean => protocol === "grpc" || protocol === "grpcs";

export const hasTls = (protocol: Service["protocol"]): boolean =>
  ["https", "h2", "grpcs", "tls"].includes(protocol);

/** What is wrong with the host of a target; null: nothing. */
export const hostProblem = (value: string): string | null =>
  /\s|\/\//.test(value) && !value.startsWith("unix:")
    ? "Only a host name or address, such as 10.0.0.5"
    : null;

const statusesProblem = (pattern: RegExp, example: string) => (values: string[]) =>
  values.every((value) => pattern.test(value)) ? null : `Status codes such as ${example}`;

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  path: (value: string) =>
    /^(\/[^?#\s]*)?$/.test(value) ? null : "Must be empty, or start with / and have no query",
  targets: { host: hostProblem },
  sticky: {
    cookie: (value: string) =>
      /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(value)
        ? null
        : "Letters and digits without spaces",
  },
  health: {
    active: {
      path: (value: string) => (value.startsWith("/") ? null : "Must start with /"),
      expect_statuses: statusesProblem(/^[1-5]\d\d(-[1-5]\d\d)?$/, "204 or 200-399"),
    },
    passive: { statuses: statusesProblem(/^[1-5]\d\d$/, "503") },
  },
};
