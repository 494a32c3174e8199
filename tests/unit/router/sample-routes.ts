// Builds routes and requests for the tests of the router; the defaults are those of a route that matches everything.
import type { RouteSubject } from "../../../src/dataplane/router/compiled-match.ts";
import type { Route } from "../../../src/model/route.ts";

export function routeOf(fields: Partial<Route> & { readonly id: string }): Route {
  return {
    name: null,
    service_id: null,
    hosts: [],
    paths: [],
    grpc_methods: [],
    grpc_idle_timeout: 0,
    path_handling: "canonical",
    request_buffering: "off",
    grpc_max_message_bytes: 0,
    methods: [],
    headers: [],
    query: [],
    cookies: [],
    client_cidrs: [],
    protocols: ["http", "https"],
    listener_ids: [],
    priority: 0,
    strip_path: false,
    prefix_rewrite: null,
    path_rewrite: null,
    preserve_host: null,
    https_redirect: false,
    timeouts: {
      connect_timeout: null,
      response_timeout: null,
      read_timeout: null,
      write_timeout: null,
      request_timeout: null,
    },
    body_min_rate: null,
    retries: null,
    maintenance: null,
    websocket: true,
    upgrade_protocols: [],
    enabled: true,
    tags: [],
    description: "",
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
    ...fields,
  };
}

export interface SubjectFields {
  readonly method?: string;
  readonly host?: string;
  readonly path?: string;
  readonly query?: string;
  readonly protocol?: "http" | "https";
  readonly listenerId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly client?: string;
}

export function subjectOf(fields: SubjectFields = {}): RouteSubject {
  const { headers = {}, client = "192.0.2.1", ...rest } = fields;
  return {
    method: "GET",
    host: "app.example.com",
    path: "/",
    query: "",
    protocol: "http",
    listenerId: "web",
    ...rest,
    header: (name) => headers[name] ?? null,
    clientAddress: () => client,
  };
}

export const prefix = (value: string) => ({ type: "prefix", value }) as const;
export const exact = (value: string) => ({ type: "exact", value }) as const;
export const regex = (value: string) => ({ type: "regex", value }) as const;

/** Repeatable random numbers: a failure can be run again from its seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4_294_967_296) * limit);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  /** Up to `most` different items. */
  some<T>(list: readonly T[], most: number): T[] {
    return [...new Set(Array.from({ length: this.below(most + 1) }, () => this.pick(list)))];
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }
}
