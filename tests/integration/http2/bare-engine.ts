// An engine with HTTP/2 of our listeners alone, with a handler of the test instead of the request path.
import type { ServerCertificate } from "../../../src/dataplane/server/bun-tls.ts";
import { headOf } from "../../support/outgoing-head.ts";
import type { StreamHandler } from "../../../src/dataplane/server/bun-stream.ts";
import type { OutgoingHead } from "../../../src/dataplane/server/client-stream.ts";
import { OpenChallenges } from "../../../src/dataplane/challenges.ts";
import { CertificateIndex } from "../../../src/dataplane/listener/certificate-index.ts";
import { SocketListener } from "../../../src/dataplane/server/socket-listener.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Listener, listenerInput } from "../../../src/model/listener.ts";
import type { ListenerPlan } from "../../../src/snapshot/snapshot.ts";
import type { Http2End } from "../../../src/dataplane/server/served-connection.ts";
import { quietPort } from "../../support/quiet-port.ts";

export interface BareEngine {
  readonly port: number;
  readonly engine: {
    /** Requests in progress. */
    readonly pending: number;
    goAway(): void;
    /** Resolves when no connection is left. */
    ended(): Promise<void>;
    close(): Promise<void>;
  };
  /** Reasons of refused connections. */
  readonly refusals: string[];
  /** What the metric counts. */
  readonly ended: readonly Http2End[];
  stop(): Promise<void>;
}

/** Times in milliseconds. */
export interface Bounds {
  readonly offersHttp2: boolean;
  readonly maxStreams: number;
  readonly handshakeTimeout: number;
  readonly headTimeout: number;
  readonly idleTimeout: number;
  readonly writeTimeout: number;
  readonly maxAge: number;
}

const BOUNDS: Bounds = {
  offersHttp2: true,
  maxStreams: 100,
  handshakeTimeout: 5000,
  headTimeout: 30_000,
  idleTimeout: 60_000,
  writeTimeout: 60_000,
  maxAge: 0,
};

export function startEngine(
  serve: StreamHandler,
  given: Partial<Bounds> = {},
  certificate: ServerCertificate | null = null,
): BareEngine {
  const bounds = { ...BOUNDS, ...given };
  const refusals: string[] = [];
  const ended: Http2End[] = [];
  const port = quietPort();
  const listener: Listener = {
    ...decode(listenerInput, { name: "bare", address: "127.0.0.1", port }),
    http2: bounds.offersHttp2,
    max_concurrent_streams: bounds.maxStreams,
    idle_timeout: bounds.idleTimeout / 1000,
    max_connection_age: bounds.maxAge / 1000,
    id: "bare",
    created_at: "",
    updated_at: "",
  };
  const plan: ListenerPlan = { id: "bare", listener, tls: certificate };
  const engine = new SocketListener(plan, {
    serve,
    websocket: { message() {} },
    certificates: new Map(),
    livePlan: () => plan,
    planFor: () => plan,
    livePlans: () => [plan],
    liveCertificates: () => new CertificateIndex(new Map()),
    admit: () => ({ claim: () => null, release() {} }),
    proxyLists: () => ({ cloudflare: { networks: [] } }),
    prereadTimeout: () => bounds.handshakeTimeout,
    adopt: () => null,
    refused: (reason) => void refusals.push(reason),
    headTimeoutMs: () => bounds.headTimeout,
    responseWriteTimeout: () => bounds.writeTimeout,
    challenges: new OpenChallenges(() => {}),
    onHttp2End: (reason) => void ended.push(reason),
    onHandshake() {},
  });
  return {
    port,
    engine: {
      get pending() {
        return engine.pending;
      },
      goAway: () => engine.goAway(),
      ended: () => engine.stop(),
      close: () => engine.close(),
    },
    refusals,
    ended,
    stop: () => engine.close(),
  };
}

export const head = (status: number, fields: Record<string, string> = {}): OutgoingHead =>
  headOf(fields, status);
