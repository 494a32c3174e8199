// The failures of the request path, as values; knows no socket and no page.
import type { ProxyStatusError } from "../http/proxy-status.ts";
import { isRejection, type Rejection } from "../pdk/response.ts";

/**
 * Whether the request may be retried: `never`; `always`, because no byte of it was sent; `fresh-connection`, because a
 * kept-alive connection was closed before a response, which says nothing about the target; `fresh-connection-unread`, because the
 * target closed it before it had any byte of the request.
 */
export type RetryDecision = "never" | "always" | "fresh-connection" | "fresh-connection-unread";

/** Whether the next attempt is for the same target. */
export const wantsFresh = ({ retry }: ProxyError): boolean =>
  retry === "fresh-connection" || retry === "fresh-connection-unread";

/** A failed request or attempt. `detail` is shown to clients in Proxy-Status: no addresses, no internals. */
export interface ProxyError {
  readonly source: "client" | "upstream" | "gateway";
  readonly status: number;
  readonly token: ProxyStatusError;
  readonly detail: string;
  readonly retry: RetryDecision;
  /** Another request has reported the same failure, of the connection that they shared: health checks count it once. */
  readonly isRepeated?: boolean;
  /** Reason of a refusal, such as `auth.key.missing`. */
  readonly reason?: string;
  /** The gRPC status, where the HTTP status says too little. */
  readonly grpcStatus?: number;
  /** Value of Allow. */
  readonly allow?: string;
  /** The system's error, for the log. */
  readonly cause?: unknown;
}

/** Thrown by the body of a request that is malformed. */
export class BodyProblem extends Error {
  readonly problem: ProxyError;

  constructor(problem: ProxyError) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Why a request body could not be read to its end. */
export function bodyFailure(error: unknown): ProxyError {
  if (error instanceof BodyProblem) return error.problem;
  return isRejection(error) ? failures.rejected(error) : { ...failures.clientGone, cause: error };
}

/** Which check of the target's certificate failed. */
export type CertificateProblem =
  | "the target's certificate has expired"
  | "the target's certificate is not valid yet"
  | "the target's certificate is self-signed"
  | "the target's certificate comes from an unknown CA"
  | "the target's certificate is for another name"
  | "the target's certificate is not valid";

/** Why the TLS handshake failed. */
export type TlsProblem =
  | "the target's TLS version is too low"
  | "the target does not speak TLS"
  | "the target does not speak HTTP/2"
  | "the TLS handshake with the target failed";

/** A failure of the target; `retry` only where the target cannot have processed anything. */
const upstream =
  (status: number, token: ProxyStatusError, detail: string) =>
  (cause?: unknown): ProxyError => ({
    source: "upstream",
    status,
    token,
    detail,
    retry: "never",
    cause,
  });

const unsent =
  (failure: (cause?: unknown) => ProxyError, retry: RetryDecision = "always") =>
  (cause?: unknown): ProxyError => ({ ...failure(cause), retry });

const client = (status: number, detail: string): ProxyError => ({
  source: "client",
  status,
  token: status === 431 || status === 400 ? "http_request_error" : "http_request_denied",
  detail,
  retry: "never",
});

/** Every failure that the gateway responds with, by name. */
export const failures = {
  badRequest: (detail: string) => client(400, detail),
  traceMethod: {
    ...client(405, "the gateway does not forward TRACE"),
    allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
  },
  headTimeout: client(408, "the request head did not arrive in time"),
  bodyTimeout: client(408, "the request body stopped arriving"),
  bodyTooSlow: {
    ...client(408, "the request body arrived too slowly"),
    reason: "body.too_slow",
  },
  bodyTooLarge: client(413, "the request body is too large"),
  misdirected: client(
    421,
    "the host is not one of the certificate that the connection was made for",
  ),
  grpcEngine: client(
    421,
    'this listener cannot send the trailers that gRPC needs; it needs engine "sluice"',
  ),
  rawEngine: client(
    421,
    'this listener does not know paths as they came; it needs engine "sluice" without http3',
  ),
  grpcDeadline: {
    ...client(504, "the deadline of the call has passed"),
    token: "http_response_timeout",
    reason: "grpc.deadline",
  },
  grpcIdle: {
    source: "gateway",
    status: 504,
    token: "http_response_timeout",
    detail: "the stream was idle for too long",
    retry: "never",
    reason: "grpc.idle",
    grpcStatus: 14,
  },
  grpcRequestMessage: {
    ...client(413, "a message of the request is too large"),
    reason: "grpc.message_too_large",
  },
  grpcResponseMessage: {
    source: "gateway",
    status: 502,
    token: "http_response_body_size",
    detail: "a message of the response is too large",
    retry: "never",
    reason: "grpc.message_too_large",
    grpcStatus: 8,
  },
  targetTooLong: client(414, "the request target is too long"),
  tooManyFields: client(431, "the request has too many header fields"),
  headTooLarge: client(431, "the request head is too large"),
  connectionAborts: {
    ...client(429, "too many requests of this connection were aborted"),
    reason: "aborts.connection",
  },
  addressAborts: {
    ...client(429, "too many requests from this address were aborted"),
    reason: "aborts.address",
  },
  webSocketVersion: client(426, "the version of the WebSocket protocol is not 13"),
  clientGone: client(499, "the client closed the connection"),
  clientStalled: client(499, "the client stopped reading the response"),
  httpVersion: client(505, "the HTTP version of the request is not supported"),
  noRoute: {
    source: "gateway",
    status: 404,
    token: "destination_not_found",
    detail: "no route matches this request",
    retry: "never",
  },
  loop: {
    source: "client",
    status: 508,
    token: "proxy_loop_detected",
    detail: "this gateway has already forwarded the request",
    retry: "never",
  },
  noTarget: {
    source: "gateway",
    status: 503,
    token: "destination_unavailable",
    detail: "no target is available",
    retry: "never",
  },
  targetsFull: {
    source: "gateway",
    status: 503,
    token: "connection_limit_reached",
    detail: "every target has as many requests in flight as it may have",
    retry: "never",
  },
  maintenance: {
    source: "gateway",
    status: 503,
    token: "destination_unavailable",
    detail: "this site is under maintenance",
    retry: "never",
  },
  tooBusy: {
    source: "gateway",
    status: 503,
    token: "connection_limit_reached",
    detail: "too many requests are in flight",
    retry: "never",
  },
  shortOfMemory: {
    source: "gateway",
    status: 503,
    token: "connection_limit_reached",
    detail: "the gateway is busy",
    retry: "never",
    reason: "overload.memory",
  },
  shortOfDescriptors: {
    source: "gateway",
    status: 503,
    token: "connection_limit_reached",
    detail: "the gateway is busy",
    retry: "never",
    reason: "overload.descriptors",
  },
  starting: {
    source: "gateway",
    status: 503,
    token: "destination_unavailable",
    detail: "this listener is not serving yet",
    retry: "never",
  },
  stopping: {
    source: "gateway",
    status: 503,
    token: "destination_unavailable",
    detail: "the gateway stops",
    retry: "never",
    reason: "grpc.stopped",
  },
  /** A plugin has rejected the request. Not `client`: the connection stays open, the server reads the rest of a body. */
  rejected: ({ status, token, detail, reason }: Rejection): ProxyError => ({
    source: "gateway",
    status,
    token,
    detail,
    retry: "never",
    reason,
  }),
  noStorage: (cause: Error): ProxyError => ({
    source: "gateway",
    status: 507,
    token: "proxy_internal_error",
    detail: "the gateway has no room to buffer the request body",
    retry: "never",
    cause,
  }),
  internal: (cause: unknown): ProxyError => ({
    source: "gateway",
    status: 500,
    token: "proxy_internal_error",
    detail: "the gateway failed",
    retry: "never",
    cause,
  }),
  dns: unsent(upstream(502, "dns_error", "the target's name could not be resolved")),
  refused: unsent(upstream(502, "connection_refused", "the target refused the connection")),
  connectTimeout: unsent(
    upstream(504, "connection_timeout", "the target did not accept the connection in time"),
  )(),
  tlsCertificate: (detail: CertificateProblem, cause: unknown): ProxyError => ({
    ...upstream(502, "tls_certificate_error", detail)(cause),
    retry: "always",
  }),
  tlsProtocol: (detail: TlsProblem, cause: unknown): ProxyError => ({
    ...upstream(502, "tls_protocol_error", detail)(cause),
    retry: "always",
  }),
  tlsSettings: unsent(
    upstream(502, "proxy_configuration_error", "the TLS settings for the target are not valid"),
  ),
  tlsAlert: upstream(502, "tls_alert_received", "the target requires a client certificate"),
  closedEarly: upstream(
    502,
    "connection_terminated",
    "the target closed the connection without a response",
  )(),
  closedKept: unsent(
    upstream(502, "connection_terminated", "the target closed the connection without a response"),
    "fresh-connection",
  )(),
  closedUnread: unsent(
    upstream(502, "connection_terminated", "the target closed the connection without a response"),
    "fresh-connection-unread",
  )(),
  /** REFUSED_STREAM, or GOAWAY with a lower last stream: safe to retry whatever the method (RFC 9113 section 8.7). */
  streamRefused: unsent(
    upstream(503, "connection_limit_reached", "the target refused the request"),
  )(),
  streamReset: upstream(502, "connection_terminated", "the target reset the request")(),
  noHttp2: unsent(upstream(502, "http_protocol_error", "the target does not speak HTTP/2"))(),
  incomplete: upstream(
    502,
    "http_response_incomplete",
    "the target closed the connection in the middle of the response",
  )(),
  responseTimeout: upstream(504, "http_response_timeout", "the target did not respond in time")(),
  readTimeout: upstream(504, "connection_read_timeout", "the target stopped sending")(),
  writeTimeout: upstream(504, "connection_write_timeout", "the target stopped reading")(),
  requestTimeout: upstream(504, "http_response_timeout", "the exchange took too long")(),
  /** `status` of the response, which has no `grpc-status`. */
  notGrpc: (status: number): ProxyError => ({
    ...upstream(
      status >= 400 ? status : 502,
      "http_protocol_error",
      `the target responded with HTTP status ${status} instead of gRPC`,
    )(),
    ...(status >= 400 ? {} : { grpcStatus: 2 }),
  }),
  headTooLong: upstream(
    502,
    "http_response_header_section_size",
    "the target's response head is too large",
  )(),
  upgrade: (detail: string): ProxyError => upstream(502, "http_upgrade_failed", detail)(),
  protocol: (detail: string): ProxyError => upstream(502, "http_protocol_error", detail)(),
  transferCoding: upstream(
    502,
    "http_response_transfer_coding",
    "the target's transfer coding is not valid",
  )(),
} as const satisfies Record<string, ProxyError | ((...values: never[]) => ProxyError)>;
