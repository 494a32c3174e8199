// Explains which engine serves a request, its gRPC method, and whether a gRPC client is served at all; routes nothing.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { ExplainedRequest, Explanation } from "../snapshot/explanation.ts";
import type { HttpEngine, Listener } from "../model/listener.ts";
import { servesGrpc } from "../snapshot/engine-choice.ts";
import { isGrpcProtocol } from "../snapshot/upstream-protocol.ts";

export interface GrpcCall {
  readonly service: string;
  readonly method: string;
}

export interface EngineChoice {
  readonly name: HttpEngine;
  /** A sentence for users. */
  readonly reason: string;
}

export interface EngineView {
  /** Null without a listener. */
  readonly engine: EngineChoice | null;
  /** Null: not a call of a gRPC method. */
  readonly grpc: GrpcCall | null;
  /** Why a gRPC client gets 421 in the place of the outcome; null: it does not. */
  readonly misdirected: string | null;
}

/** What gRPC-Web and JSON clients send has another content type. */
const GRPC = /^application\/grpc(?:[+;]|$)/i;

const CALL = /^\/([^/]+)\/([^/]+)$/;

export function explainEngine(
  config: GatewayConfig,
  request: ExplainedRequest,
  answer: Explanation,
): EngineView {
  const listener = config.listeners.get(answer.listenerId ?? "");
  const { pathname } = new URL(request.url);
  const service = config.services.get(answer.serviceId ?? "");
  const sendsGrpc = GRPC.test(request.headers["content-type"] ?? "");
  const isGrpc = sendsGrpc || (service !== undefined && isGrpcProtocol(service.protocol));
  const [, called = "", method = ""] = (isGrpc && CALL.exec(pathname)) || [];
  const grpc = method === "" ? null : { service: called, method };
  if (listener === undefined) return { engine: null, grpc, misdirected: null };
  const name = answer.engine ?? listener.engine;
  const isServed = servesGrpc({ ...listener, engine: name });
  return {
    engine: { name, reason: reasonOf(name, listener) },
    grpc,
    misdirected: sendsGrpc && !isServed ? MISDIRECTED : null,
  };
}

const MISDIRECTED =
  'this listener cannot send the trailers that gRPC needs; it needs engine "sluice"';

const reasonOf = (name: HttpEngine, { engine }: Listener): string =>
  name !== engine
    ? `The listener asks for "${engine}": the gateway was started with --http-engine, a stream route or a challenge needs its port, or its log says why.`
    : name === "sluice"
      ? "The listener has the gateway's own engine."
      : "The listener has Bun's engine.";
