// The attempts of a request without any socket: real targets on a real board, a request that only has a method and fields.
import type { Server } from "bun";
import { Attempts } from "../../../src/dataplane/attempts.ts";
import { knownFields } from "../../../src/http/known-fields.ts";
import type { ListenerFacts } from "../../../src/dataplane/listener/listener-facts.ts";
import { Intents } from "../../../src/dataplane/intents.ts";
import { NameResolver } from "../../../src/dataplane/names/name-resolver.ts";
import type { Plan } from "../../../src/dataplane/plan.ts";
import { RequestContext } from "../../../src/dataplane/request-context.ts";
import {
  PoolRegistry,
  type ServiceRuntime,
  serviceRuntime,
} from "../../../src/dataplane/service-runtime.ts";
import { Pace } from "../../../src/pace.ts";
import { decode } from "../../../src/model/decode.ts";
import { serviceInput } from "../../../src/model/service.ts";
import { inlineTargetInput } from "../../../src/model/target.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";

export interface TargetSketch {
  readonly weight?: number;
  readonly priority?: number;
}

const identity = (id: string) => ({
  id,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
});

/** A service `app` whose targets are `app-0`, `app-1` and so on, as one worker sees it. */
export class World {
  readonly board: TargetBoard;
  readonly runtime: ServiceRuntime;

  constructor(
    service: Record<string, unknown>,
    targets: readonly TargetSketch[],
    { board = TargetBoard.create(2), worker = 0, stickyKey = "key" } = {},
  ) {
    this.board = board;
    const plan = {
      id: "app",
      clientCertificate: null,
      service: { ...decode(serviceInput, { name: "app", ...service }), ...identity("app") },
      targets: targets.map((target, index) => ({
        ...decode(inlineTargetInput, { host: "127.0.0.1", port: 1000 + index, ...target }),
        service_id: "app",
        ...identity(`app-${index}`),
      })),
    };
    const names = { resolver: new NameResolver({ servers: [] }), now: () => 0, log() {} };
    const pools = new PoolRegistry(() => 0, names);
    const intents = new Intents();
    this.runtime = serviceRuntime(plan, { board, worker, stickyKey, pools, intents });
    // At once: it rests only between slices.
    void intents.activate(new Pace({ objects: Number.POSITIVE_INFINITY, ms: 1e9 }));
  }

  row(index: number): number {
    return this.board.rowOf(`app-${index}`);
  }

  /** Requests in flight on each target. */
  active(): number[] {
    return this.runtime.targets.map(({ row }) => this.board.active(row));
  }

  /** Takes a target out, as failures do. */
  eject(index: number): void {
    for (let failure = 0; failure < 5; failure++)
      this.runtime.group.passive.failed(this.row(index), "the target refused the connection");
  }

  attempts(method = "GET", headers: Record<string, string> = {}): Attempts {
    const context = contextOf(method, headers);
    return new Attempts({
      context,
      service: this.runtime,
      route: { route: { retries: null } },
    } as unknown as Plan);
  }
}

export function contextOf(
  method: string,
  headers: Record<string, string> = {},
  { path = "/", query = "" } = {},
): RequestContext {
  const target = query === "" ? path : `${path}?${query}`;
  const server = { requestIP: () => ({ address: "192.0.2.7" }) } as unknown as Server<unknown>;
  const listener = { trustsAnyone: false, protocol: "http" } as unknown as ListenerFacts;
  const all = { host: "h", ...headers };
  return new RequestContext(
    { request: new Request(`http://h${target}`, { method }), server, listener, connection: null },
    { host: "h", path, query, target, headers: all, known: knownFields(all) },
  );
}
