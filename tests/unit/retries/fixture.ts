// The attempts of a request without any socket: real targets on a real board, a request that only has a method and fields.
import type { ListenerRuntime } from "../../../src/dataplane/listener/listener-runtime.ts";
import { Intents } from "../../../src/dataplane/intents.ts";
import { NameResolver } from "../../../src/dataplane/names/name-resolver.ts";
import { ClientRequest, type ServeContext } from "../../../src/dataplane/request/client-request.ts";
import { UpstreamAttempts } from "../../../src/dataplane/request/upstream-attempts.ts";
import type { RouteRuntime } from "../../../src/dataplane/route-runtime.ts";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import {
  PoolRegistry,
  type ServiceRuntime,
  serviceRuntime,
} from "../../../src/dataplane/service-runtime.ts";
import { HostCache } from "../../../src/http/authority.ts";
import { HeaderBlock } from "../../../src/http/header-block.ts";
import { ManagementCookies } from "../../../src/http/management-cookies.ts";
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
    const names = {
      resolver: new NameResolver({ servers: [] }),
      now: () => 0,
      log() {},
      problemOf: () => null,
    };
    const pools = new PoolRegistry(() => 0, names);
    const intents = new Intents();
    const managementCookies = new ManagementCookies("test", () => false);
    const context = { board, worker, stickyKey, managementCookies, pools, intents };
    this.runtime = serviceRuntime(plan, context);
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

  attempts(method = "GET", headers: Record<string, string> = {}): TestAttempts {
    const route = { route: { retries: null }, timeouts: null } as unknown as RouteRuntime;
    return new TestAttempts(requestOf(method, headers), route, this.runtime);
  }
}

/** Attempts without an exchange. */
class TestAttempts extends UpstreamAttempts {
  get isFresh(): boolean {
    return this.needsFresh;
  }

  end(): void {
    this.endAttempts();
  }

  detach(): () => void {
    return this.detachTarget();
  }
}

export function requestOf(
  method: string,
  headers: Record<string, string> = {},
  { path = "/", query = "" } = {},
): ClientRequest {
  const target = query === "" ? path : `${path}?${query}`;
  const stream = {
    method,
    url: `http://h${target}`,
    fields: HeaderBlock.of({ host: "h", ...headers }),
    problem: null,
    connection: null,
    peerAddress: () => "192.0.2.7",
  } as unknown as ClientStream;
  const facts = {
    trustsAnyone: false,
    protocol: "http",
    maxTargetBytes: 8192,
    hosts: new HostCache(),
  };
  const generation = { managementCookies: new ManagementCookies("test", () => false) };
  const request = new ClientRequest(
    stream,
    { ...facts, choice: null } as unknown as ListenerRuntime,
    { generation } as unknown as ServeContext,
  );
  request.read();
  return request;
}
