// A data plane in front of an origin that responds with the bytes of a test.
import { type DataPlaneSketch, type RunningDataPlane, startDataPlane } from "./data-plane.ts";
import type { Engine } from "./engines.ts";
import { type Answer as Script, type Answerer, type Origin, startOrigin } from "./origin.ts";
import { type Conversation, exchange, type ExchangeOptions } from "./raw-exchange.ts";

/** The outcome of one request. */
export interface Served extends Conversation {
  /** Connections that the gateway opened besides a pooled one, for it and for a plain request after it. */
  readonly connections: number;
}

export interface ScriptedScene {
  readonly origin: Origin;
  readonly gateway: RunningDataPlane;
  readonly port: number;
  /** Sends a request (default: GET /) to which the origin responds with `script`. */
  ask(
    script: Script | Answerer,
    request?: string,
    options?: Partial<ExchangeOptions>,
  ): Promise<Conversation>;
  /** `ask`, and then a plain request, which must succeed: it shows whether the connection was reused. */
  askTwice(script: Script | Answerer, request?: string): Promise<Served>;
  /** Connections to the origin that are open. */
  openConnections(): number;
  /** Throws when a request is still in flight: nothing may leak. */
  stop(): Promise<void>;
}

export const GET = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const PLAIN = "GET /plain HTTP/1.1\r\nHost: h\r\n\r\n";

/** One service with one target, one route; the sketches change them. */
export async function startScriptedScene(
  options: Omit<Parameters<typeof startDataPlane>[0], "services" | "routes"> & {
    readonly service?: Omit<NonNullable<DataPlaneSketch["services"]>[number], "name" | "targets">;
    readonly route?: Omit<NonNullable<DataPlaneSketch["routes"]>[number], "name">;
    /** Respond as soon as the request's head is there. */
    readonly early?: boolean;
  } = {},
): Promise<ScriptedScene> {
  const { service = {}, route = {}, early = false, ...rest } = options;
  const origin = startOrigin({ early });
  const gateway = await startDataPlane({
    services: [{ name: "origin", targets: [{ port: origin.port }], ...service }],
    routes: [{ name: "all", service_id: "origin", ...route }],
    ...rest,
  });
  const to = { port: gateway.port, tls: gateway.url.startsWith("https:") };
  const scene: ScriptedScene = {
    origin,
    gateway,
    port: gateway.port,
    ask(script, request = GET, exchangeOptions = {}) {
      origin.answer = script;
      const methods = [request.slice(0, request.indexOf(" "))];
      return exchange(request, { ...to, methods, ...exchangeOptions });
    },
    async askTwice(script, request = GET) {
      await scene.ask(plainAnswer, PLAIN);
      const before = origin.connections.length;
      const conversation = await scene.ask(script, request);
      const plain = await scene.ask(plainAnswer, PLAIN);
      if (plain.answers[0]?.body !== "plain")
        throw new Error(`the next request was answered with ${JSON.stringify(plain.received)}`);
      return { ...conversation, connections: origin.connections.length - before };
    },
    openConnections: () => origin.connections.filter(({ isClosed }) => !isClosed).length,
    async stop() {
      const left = await gateway.drain(3000);
      origin.stop();
      if (left > 0) throw new Error(`${left} requests never ended`);
    },
  };
  return scene;
}

const plainAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain";

/** A scene of this engine, and one that streams responses instead of buffering them. */
export async function startScriptedScenes(
  engine: Engine,
): Promise<{ scene: ScriptedScene; streaming: ScriptedScene }> {
  const listener = { engine };
  return {
    scene: await startScriptedScene({ listener }),
    streaming: await startScriptedScene({ listener, service: { response_buffer_bytes: 0 } }),
  };
}
