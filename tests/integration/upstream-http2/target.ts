// Targets that speak HTTP/2, on node:http2 in the test's own process.
import { once } from "node:events";
import http2, {
  type Http2Server,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";

export interface Http2Target {
  readonly port: number;
  /** Header fields of every request. */
  readonly requests: IncomingHttpHeaders[];
  /** All sessions since the start, open or not. */
  readonly sessions: ServerHttp2Session[];
  /** Streams that were reset by the gateway. */
  readonly resets: number[];
  stop(): void;
}

export type StreamHandler = (stream: ServerHttp2Stream, fields: IncomingHttpHeaders) => void;

/** `options` with a key: over TLS. */
export async function startHttp2Target(
  handle: StreamHandler,
  options: SecureServerOptions = {},
  at: { readonly path?: string; readonly host?: string; readonly port?: number } = {},
): Promise<Http2Target> {
  const server = (
    options.key === undefined ? http2.createServer(options) : http2.createSecureServer(options)
  ) as Http2Server;
  const requests: IncomingHttpHeaders[] = [];
  const sessions: ServerHttp2Session[] = [];
  const resets: number[] = [];
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => {});
  });
  server.on("stream", (stream, fields) => {
    requests.push(fields);
    stream.on("error", () => {});
    stream.on("close", () => {
      if (stream.rstCode !== 0) resets.push(stream.rstCode);
    });
    handle(stream, fields);
  });
  server.on("sessionError", () => {});
  server.on("tlsClientError", () => {});
  if (at.path === undefined) server.listen(at.port ?? 0, at.host ?? "127.0.0.1");
  else server.listen(at.path);
  await once(server, "listening");
  const address = server.address() as AddressInfo | string;
  return {
    port: typeof address === "string" ? 0 : address.port,
    requests,
    sessions,
    resets,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}

/** Responds with the request's body, with or without a declared length. */
export const echo: StreamHandler = (stream) => {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    const body = Buffer.concat(pieces);
    stream.respond({ ":status": 200, "content-length": body.length });
    stream.end(body);
  });
};
