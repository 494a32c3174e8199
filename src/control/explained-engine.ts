// Explains which engine serves a request, its gRPC method, and whether a gRPC client is served at all; routes nothing.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { ExplainedRequest, Explanation } from "../snapshot/explanation.ts";
import { chooseEngine, type EngineChoice, servesGrpc } from "../snapshot/engine-choice.ts";
import { isGrpcProtocol } from "../snapshot/upstream-protocol.ts";

export interface GrpcCall {
  readonly service: string;
  readonly method: string;
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
  const { hostname, pathname } = new URL(request.url);
  const service = config.services.get(answer.serviceId ?? "");
  const sendsGrpc = GRPC.test(request.headers["content-type"] ?? "");
  const isGrpc = sendsGrpc || (service !== undefined && isGrpcProtocol(service.protocol));
  const [, called = "", method = ""] = (isGrpc && CALL.exec(pathname)) || [];
  const grpc = method === "" ? null : { service: called, method };
  if (listener === undefined) return { engine: null, grpc, misdirected: null };
  const engine = chooseEngine(config, listener, hostname);
  const isServed = engine.name !== "standard" && servesGrpc(listener);
  return {
    engine,
    grpc,
    misdirected: sendsGrpc && !isServed ? MISDIRECTED : null,
  };
}

const MISDIRECTED =
  'this listener cannot send the trailers that gRPC needs; it needs engine "sluice", "full" or shared_engines';
