// gRPC-Web as browsers speak it, and a target that speaks gRPC; written by hand, beside the gateway's own codec.
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";

export interface GrpcWebBody {
  readonly messages: readonly Buffer[];
  /** Compressed flags of the messages. */
  readonly flags: readonly number[];
  /** Null: the body has none. */
  readonly trailers: Readonly<Record<string, string>> | null;
}

/** A message with its prefix. */
export function framed(message: Uint8Array | string, flag = 0): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Throws when the body is not made of whole frames, or goes on after its trailers. */
export function readGrpcWeb(body: Buffer): GrpcWebBody {
  const messages: Buffer[] = [];
  const flags: number[] = [];
  let trailers: Record<string, string> | null = null;
  for (let at = 0; at < body.length;) {
    const flag = body.readUInt8(at);
    const end = at + 5 + body.readUInt32BE(at + 1);
    if (end > body.length || trailers !== null) throw new Error("the body is malformed");
    const content = body.subarray(at + 5, end);
    if (flag < 0x80) {
      messages.push(content);
      flags.push(flag);
    } else
      trailers = Object.fromEntries(
        content
          .toString("latin1")
          .split("\r\n")
          .filter((line) => line !== "")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
    at = end;
  }
  return { messages, flags, trailers };
}

/** Text of parts that have their own padding. */
export const readGrpcWebText = (text: string): GrpcWebBody =>
  readGrpcWeb(
    Buffer.concat((text.match(/.{1,4}/gs) ?? []).map((part) => Buffer.from(part, "base64"))),
  );

/**
 * A target's handler. The method in the path says what it does: `Echo` returns the messages, `Count` sends as many as the first
 * message says, `Fail` has only a status, `Hang` sends one message and no end, `Html` is no gRPC, `Half` breaks off.
 */
export function grpcHandler(stream: ServerHttp2Stream, fields: IncomingHttpHeaders): void {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    // Bun emits it for streams that were reset, too.
    if (!stream.destroyed) handle(stream, fields, Buffer.concat(pieces));
  });
}

function handle(stream: ServerHttp2Stream, fields: IncomingHttpHeaders, body: Buffer): void {
  const method = fields[":path"]?.split("/").at(-1) ?? "";
  const head = { ":status": 200, "content-type": fields["content-type"], "x-initial": "early" };
  const status = { "grpc-status": "0", "grpc-message": "fine", "x-late": "last" };
  if (method === "Fail") {
    stream.respond({ ...head, "grpc-status": "5", "grpc-message": "no such thing" });
    stream.end();
    return;
  }
  if (method === "Html") {
    stream.respond({ ":status": 503, "content-type": "text/html" });
    stream.end("<p>away</p>");
    return;
  }
  stream.respond(head, { waitForTrailers: true });
  stream.on("wantTrailers", () =>
    stream.sendTrailers(method === "Silent" ? { "x-late": "last" } : status),
  );
  if (method === "Hang") {
    stream.write(framed("first"));
    return;
  }
  if (method === "Half") {
    stream.write(framed("whole"));
    stream.end(framed("broken").subarray(0, 8));
    return;
  }
  if (method === "Count") {
    const count = Number(body.subarray(5).toString());
    for (let at = 0; at < count; at++) stream.write(framed(`message ${at}`));
    stream.end();
  } else stream.end(body);
}
