// A data plane in front of one manual target, and both ends of a WebSocket through it.
import {
  type RunningDataPlane,
  type RouteSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import { handshake, ManualTarget, Peer, switching } from "./peer.ts";

export interface Scene {
  readonly target: ManualTarget;
  readonly gateway: RunningDataPlane;
  /** Both ends of a new WebSocket; `lines` go into the client's handshake, `answer` into the target's. */
  open(lines?: string, answer?: string): Promise<{ client: Peer; origin: Peer }>;
  /** A client whose handshake the target has, and has not answered. */
  knock(request?: string): Promise<{ client: Peer; origin: Peer; head: string }>;
  /** How many WebSockets the gateway counts as open. */
  openCount(): number;
  stop(): Promise<void>;
}

export async function startScene(
  options: {
    readonly route?: Partial<RouteSketch>;
    readonly service?: Omit<
      NonNullable<Parameters<typeof startDataPlane>[0]["services"]>[0],
      "name"
    >;
    readonly listener?: Parameters<typeof startDataPlane>[0]["listener"];
    readonly webSocketTimeouts?: Parameters<typeof startDataPlane>[0]["webSocketTimeouts"];
    readonly settings?: Parameters<typeof startDataPlane>[0]["settings"];
    readonly plugins?: Parameters<typeof startDataPlane>[0]["plugins"];
    /** Of the clients. Default: HTTP/1.1. */
    readonly isHttp2?: boolean;
    /** Both ends may send FIN and read on. Default: they close then. */
    readonly allowHalfOpen?: boolean;
  } = {},
): Promise<Scene> {
  const { allowHalfOpen = false } = options;
  const target = await ManualTarget.start(allowHalfOpen);
  const gateway = await startDataPlane({
    services: [{ name: "app", targets: [{ port: target.port }], ...options.service }],
    routes: [{ name: "all", service_id: "app", ...options.route }],
    webSocketTimeouts: options.webSocketTimeouts,
    ...(options.listener === undefined ? {} : { listener: options.listener }),
    ...(options.settings === undefined ? {} : { settings: options.settings }),
    ...(options.plugins === undefined ? {} : { plugins: options.plugins }),
  });
  const clients: Peer[] = [];
  const knock = async (request = handshake()) => {
    const connect = options.isHttp2 === true ? Peer.h2Client : Peer.client;
    const client = await connect(gateway.port, allowHalfOpen);
    clients.push(client);
    client.write(request);
    const origin = await target.connection();
    return { client, origin, head: await origin.head() };
  };
  return {
    target,
    gateway,
    knock,
    open: async (lines, answer) => {
      const { client, origin, head } = await knock(handshake(lines));
      origin.write(switching(head, answer));
      await client.head();
      return { client, origin };
    },
    openCount: () => gateway.board.get(0, "open_websockets"),
    stop: async () => {
      for (const client of clients) client.destroy();
      await gateway.stop();
      await target.stop();
    },
  };
}
