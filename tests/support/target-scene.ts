// A data plane in front of several origins, in a fixed order; reports the health of each.
import { type Health, readHealth } from "../../src/shared-memory/target-health.ts";
import { type RunningDataPlane, startDataPlane } from "./data-plane.ts";
import type { RouteSketch, ServiceSketch } from "./data-plane.ts";
import { type Origin, startOrigin } from "./origin.ts";
import { eventually } from "./poll.ts";
import { type Conversation, exchange, type ExchangeOptions } from "./raw-exchange.ts";

export interface TargetScene {
  readonly origins: readonly Origin[];
  readonly gateway: RunningDataPlane;
  readonly service: ServiceSketch;
  /** Sends the bytes of one request and reads the response. */
  send(request: string, options?: Partial<ExchangeOptions>): Promise<Conversation>;
  /** Requests that each origin has received. */
  counts(): number[];
  /** The health of a target according to the gateway. */
  health(index: number): Health;
  /** Requests in flight on a target. */
  active(index: number): number;
  /** Open connections to a target. */
  open(index: number): number;
  /** The last reason that the gateway logged for a failed request, and its `error`. */
  lastFailure(): { error: unknown; reason: unknown };
  /** Throws when a request is still in flight or still counted: nothing may leak. */
  stop(): Promise<void>;
}

export interface TargetSceneOptions {
  /** Number of origins; default 2. */
  readonly targets?: number;
  readonly service?: Omit<ServiceSketch, "name" | "targets">;
  readonly route?: Omit<RouteSketch, "name">;
  /** Respond as soon as the head of a request is there. */
  readonly early?: boolean;
}

export const request = (method: string, fields = "", body = "") =>
  `${method} / HTTP/1.1\r\nHost: h\r\n${fields}\r\n${body}`;

/** The service `app` has the algorithm `first` by default; its targets are `app-0`, `app-1` and so on. */
export async function startTargetScene(options: TargetSceneOptions = {}): Promise<TargetScene> {
  const { targets = 2, early = false } = options;
  const origins = Array.from({ length: targets }, () => startOrigin({ early }));
  const service: ServiceSketch = {
    name: "app",
    algorithm: "first",
    ...options.service,
    targets: origins.map(({ port }) => ({ port })),
  };
  const gateway = await startDataPlane({
    services: [service],
    routes: [{ name: "all", service_id: "app", ...options.route }],
  });
  const row = (index: number) => gateway.targets.rowOf(`app-${index}`);
  return {
    origins,
    gateway,
    service,
    send: (bytes, more = {}) =>
      exchange(bytes, {
        port: gateway.port,
        methods: [bytes.slice(0, bytes.indexOf(" "))],
        ...more,
      }),
    counts: () => origins.map(({ requests }) => requests.length),
    health: (index) => readHealth(gateway.targets, row(index), Date.now()),
    active: (index) => gateway.targets.active(row(index)),
    open: (index) => origins[index]!.connections.filter(({ isClosed }) => !isClosed).length,
    lastFailure() {
      const fields = gateway.log.findLast(({ message }) => message === "request failed")?.fields;
      return { error: fields?.["error"], reason: fields?.["reason"] };
    },
    async stop() {
      const left = await gateway.drain(3000);
      for (const origin of origins) origin.stop();
      if (left > 0) throw new Error(`${left} requests never ended`);
      await eventually(() => origins.every((_, index) => gateway.targets.active(row(index)) === 0));
    },
  };
}
