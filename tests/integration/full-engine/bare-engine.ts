// An engine with HTTP/2 of our listeners alone, with a handler of the test instead of the request path.
import { createSecureContext } from "node:tls";
import type { TlsTermination } from "../../../src/dataplane/listener/tls-terminators.ts";
import { Acceptor } from "../../../src/dataplane/listener/acceptor.ts";
import { connectionInfo } from "../../../src/dataplane/listener/connection-info.ts";
import type { StreamHandler } from "../../../src/dataplane/server/bun-stream.ts";
import type { ConnectionBounds } from "../../../src/dataplane/server/full-connection.ts";
import { FullEngine } from "../../../src/dataplane/server/full-engine.ts";
import type { OutgoingHead } from "../../../src/dataplane/server/client-stream.ts";
import { OpenChallenges } from "../../../src/dataplane/challenges.ts";
import { CertificateIndex } from "../../../src/dataplane/listener/certificate-index.ts";
import { SocketListener } from "../../../src/dataplane/server/socket-listener.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Listener, listenerInput } from "../../../src/model/listener.ts";
import type { ListenerPlan } from "../../../src/snapshot/snapshot.ts";
import type { Http2End } from "../../../src/dataplane/server/served-connection.ts";
import { grpcEngine } from "../../support/engines.ts";
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
  /** What the metric counts; always empty for the full engine. */
  readonly ended: readonly Http2End[];
  stop(): Promise<void>;
}

const BOUNDS: ConnectionBounds = {
  offersHttp2: true,
  maxStreams: 100,
  handshakeTimeout: 5000,
  headTimeout: 30_000,
  idleTimeout: 60_000,
  writeTimeout: 60_000,
  maxAge: 0,
};

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** `grpcEngine` chooses which one. */
export function startEngine(
  serve: StreamHandler,
  bounds: Partial<ConnectionBounds> = {},
  certificate: Certificate | null = null,
): BareEngine {
  return grpcEngine === "sluice"
    ? startSluice(serve, { ...BOUNDS, ...bounds }, certificate)
    : startFull(serve, bounds, certificate);
}

function startSluice(
  serve: StreamHandler,
  bounds: ConnectionBounds,
  certificate: Certificate | null,
): BareEngine {
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
    needsFullEngine: () => false,
    admit: () => ({ claim: () => null, release() {} }),
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

function startFull(
  serve: StreamHandler,
  bounds: Partial<ConnectionBounds>,
  certificate: Certificate | null,
): BareEngine {
  const tls: TlsTermination | null =
    certificate === null
      ? null
      : {
          context: createSecureContext({ ...certificate }),
          requestsCertificate: false,
          requiresCertificate: false,
          verify: (socket, info) => ({ ...info, tlsVersion: socket.getProtocol() }),
        };
  const refusals: string[] = [];
  const refused = (reason: string) => void refusals.push(reason);
  const engine = new FullEngine({
    serve,
    websocket: { message() {} },
    refused,
    onHandshake() {},
    bounds: () => ({ ...BOUNDS, ...bounds }),
  });
  const port = quietPort();
  const acceptor = new Acceptor({
    address: "127.0.0.1",
    port,
    trusts: null,
    readsHello: tls !== null,
    prereadTimeout: () => 5000,
    admit: () => ({ claim: () => null, release() {} }),
    refused,
    decide: (preread) => ({
      owner: engine.accept({
        socket: preread.socket,
        buffered: preread.buffered,
        info: connectionInfo(preread),
        tls,
        ended: () => preread.slot.release(),
      }),
      ownsSlot: true,
    }),
  });
  return {
    port,
    engine,
    refusals,
    ended: [],
    async stop() {
      await acceptor.close();
      await engine.close();
    },
  };
}

export const head = (status: number, fields: Record<string, string> = {}): OutgoingHead => {
  const headers = new Headers(fields);
  return {
    status,
    headers,
    hasContentType: headers.has("content-type"),
    hasLength: headers.has("content-length"),
  };
};
