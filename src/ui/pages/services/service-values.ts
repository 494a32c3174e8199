// The fields of the form of a service, from what the API reads and to what it writes; draws nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";

export interface TargetValues {
  /** Undefined for one that the form adds. */
  readonly id?: string;
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
  readonly priority: number;
  readonly enabled: boolean;
}

/** As the API has them, with every field filled in. */
export interface ServiceValues extends Pick<
  Read<"services">,
  | "name"
  | "description"
  | "tags"
  | "enabled"
  | "protocol"
  | "path"
  | "host_header"
  | "algorithm"
  | "connect_timeout"
  | "response_timeout"
  | "read_timeout"
  | "request_timeout"
  | "slow_start"
  | "health"
  | "sticky"
  | "retries"
> {
  readonly targets: readonly TargetValues[];
}

export const newTarget: TargetValues = {
  ...{ host: "", port: null, weight: 100, priority: 0, enabled: true },
};

/** The defaults of the API, so that the form shows what will happen. */
const defaults: ServiceValues = {
  ...{ name: "", description: "", tags: [], enabled: true, protocol: "http", path: "" },
  ...{ host_header: "preserve", algorithm: "round_robin" },
  ...{ connect_timeout: 5000, response_timeout: 60_000, read_timeout: 60_000 },
  ...{ request_timeout: 0, slow_start: 0 },
  sticky: { enabled: false, cookie: "sluice_sticky", ttl: 0 },
  retries: {
    ...{ count: 2, on: ["connect", "reset", "502", "503", "504"], methods: "idempotent" },
    ...{ per_try_timeout: 0, backoff_ms: 25, budget_percent: 20 },
  },
  health: {
    active: {
      ...{ enabled: false, type: "http", path: "/", method: "GET", headers: {}, port: null },
      ...{ interval: 10, unhealthy_interval: 5, timeout: 2, expect_statuses: ["200-399"] },
      ...{ expect_body: null, healthy_threshold: 2, unhealthy_threshold: 3 },
    },
    passive: {
      ...{ enabled: true, consecutive_failures: 5, statuses: [502, 503, 504] },
      ...{ ejection_seconds: 30, max_ejection_seconds: 300, max_ejection_percent: 50 },
    },
    panic_percent: 0,
  },
  targets: [newTarget],
};

export function toValues(service: Partial<Read<"services">>): ServiceValues {
  const names = Object.keys(defaults) as (keyof ServiceValues)[];
  const known = names.filter((name) => service[name] !== undefined);
  const own = Object.fromEntries(known.map((name) => [name, service[name]]));
  const targets = service.targets as readonly Schemas["Target"][] | undefined;
  return {
    ...defaults,
    ...own,
    ...(targets === undefined ? {} : { targets: targets.map(toTargetValues) }),
  };
}

function toTargetValues(target: Schemas["Target"]): TargetValues {
  const { id, host, port, weight, priority, enabled } = target;
  // A clone has no ids.
  return { ...(id === undefined ? {} : { id }), host, port, weight, priority, enabled };
}

export const toBody = (values: ServiceValues): Write<"services"> => ({
  ...values,
  targets: values.targets.filter(({ host }) => host !== "").map((target) => ({ ...target })),
});

/** The same rules as the gateway's, so that mistakes show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "A name is needed"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  path: (value: string) =>
    /^(\/[^?#\s]*)?$/.test(value) ? null : "Empty, or it starts with / and has no query",
  targets: {
    host: (value: string) =>
      /\s|\/\//.test(value) && !value.startsWith("unix:")
        ? "Only the name or address, such as 10.0.0.5"
        : null,
  },
};
