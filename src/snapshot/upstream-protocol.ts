// What the protocol of a service means: HTTP or bytes, TLS, HTTP/2, gRPC; knows no service.

const http2: readonly string[] = ["h2", "h2c", "grpc", "grpcs"];
const tls: readonly string[] = ["https", "h2", "grpcs", "tls"];

/** HTTP/2 only, to all targets. */
export const isHttp2Protocol = (protocol: string): boolean => http2.includes(protocol);

/** Whether HTTP routes can use the service. */
export const isHttpProtocol = (protocol: string): boolean =>
  protocol === "http" || protocol === "https" || isHttp2Protocol(protocol);

export const isGrpcProtocol = (protocol: string): boolean =>
  protocol === "grpc" || protocol === "grpcs";

export const isTlsProtocol = (protocol: string): boolean => tls.includes(protocol);
