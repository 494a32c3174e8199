// A gRPC server of @grpc/grpc-js, which runs in Node as a program of its own: arguments are a port and, for TLS, files of key and certificate.
import { readFileSync } from "node:fs";
import {
  Metadata,
  Server,
  ServerCredentials,
  type MethodDefinition,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
} from "@grpc/grpc-js";

const [port = "0", keyFile, certificateFile] = process.argv.slice(2);
const MAX_BYTES = 64 * 1024 * 1024;

/** What has happened so far, for `/test.Echo/Seen`. */
const seen = { calls: 0, cancelled: 0 };

function method(path: string, requestStream: boolean, responseStream: boolean) {
  const same = (bytes: Buffer) => bytes;
  const definition: MethodDefinition<Buffer, Buffer> = {
    path,
    requestStream,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  return definition;
}

const echo: ServiceDefinition = {
  Unary: method("/test.Echo/Unary", false, false),
  Collect: method("/test.Echo/Collect", true, false),
  Repeat: method("/test.Echo/Repeat", false, true),
  Chat: method("/test.Echo/Chat", true, true),
  Hold: method("/test.Echo/Hold", true, true),
  Fail: method("/test.Echo/Fail", false, false),
  Wait: method("/test.Echo/Wait", false, false),
  Cancel: method("/test.Echo/Cancel", true, true),
  Seen: method("/test.Echo/Seen", false, false),
};

/** Request metadata named `x-*`, which goes back as initial metadata and, as `t-*`, in trailers. */
function echoed(metadata: Metadata) {
  const [initial, trailing] = [new Metadata(), new Metadata()];
  for (const name of Object.keys(metadata.getMap()).filter((each) => each.startsWith("x-")))
    for (const value of metadata.get(name)) {
      initial.add(name, value);
      trailing.add(`t-${name.slice(2)}`, value);
    }
  return { initial, trailing };
}

type Unary = ServerUnaryCall<Buffer, Buffer>;
type Reply = sendUnaryData<Buffer>;

const server = new Server({
  "grpc.max_receive_message_length": MAX_BYTES,
  "grpc.max_send_message_length": MAX_BYTES,
});

server.addService(echo, {
  Unary(call: Unary, reply: Reply) {
    seen.calls += 1;
    const { initial, trailing } = echoed(call.metadata);
    call.sendMetadata(initial);
    reply(null, call.request, trailing);
  },
  /** Answers with the number of messages and bytes. */
  Collect(call: ServerReadableStream<Buffer, Buffer>, reply: Reply) {
    let [count, bytes] = [0, 0];
    call.on("data", (message: Buffer) => {
      count += 1;
      bytes += message.length;
    });
    call.on("end", () => reply(null, Buffer.from(`${count} ${bytes}`)));
    call.on("error", () => undefined);
  },
  /** The request is a number of messages and their size. */
  async Repeat(call: ServerWritableStream<Buffer, Buffer>) {
    const [count = 0, size = 0] = call.request.toString().split(" ").map(Number);
    for (let at = 0; at < count && !call.cancelled; at++) {
      if (!call.write(Buffer.from(String(at).padEnd(size)))) await drained(call);
    }
    call.end();
  },
  Chat(call: ServerDuplexStream<Buffer, Buffer>) {
    call.on("data", (message: Buffer) => {
      if (!call.write(message)) {
        call.pause();
        call.once("drain", () => call.resume());
      }
    });
    call.on("end", () => call.end());
    call.on("error", () => undefined);
  },
  /** Echoes, and never ends. */
  Hold(call: ServerDuplexStream<Buffer, Buffer>) {
    call.on("data", (message: Buffer) => void call.write(message));
    call.on("cancelled", () => {
      seen.cancelled += 1;
    });
    call.on("error", () => undefined);
  },
  /** The request is a status code and a message. */
  Fail(call: Unary, reply: Reply) {
    const [code, ...words] = call.request.toString().split(" ");
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from([0, 255, 10, 13]));
    metadata.set("x-reason", "asked for");
    reply({ code: Number(code), details: words.join(" "), metadata });
  },
  /** Never answers. */
  Wait(call: Unary) {
    seen.calls += 1;
    call.on("cancelled", () => {
      seen.cancelled += 1;
    });
  },
  /** Ends the call with CANCELLED at the first message. */
  Cancel(call: ServerDuplexStream<Buffer, Buffer>) {
    call.on("data", () =>
      call.emit("error", { code: 1, details: "cancelled by the server", metadata: new Metadata() }),
    );
  },
  Seen: (_call: Unary, reply: Reply) => reply(null, Buffer.from(JSON.stringify(seen))),
});

const drained = (call: ServerWritableStream<Buffer, Buffer>) =>
  new Promise<void>((done) => {
    call.once("drain", done);
    call.once("cancelled", done);
  });

/** `grpc.health.v1.HealthCheckResponse` with status SERVING. */
const SERVING = Buffer.from([0x08, 0x01]);
let healthAnswer = SERVING;

server.addService(
  {
    Check: method("/grpc.health.v1.Health/Check", false, false),
    Watch: method("/grpc.health.v1.Health/Watch", false, true),
  },
  {
    Check: (_call: Unary, reply: Reply) => reply(null, healthAnswer),
    Watch: (call: ServerWritableStream<Buffer, Buffer>) => void call.write(healthAnswer),
  },
);

/** A field of protobuf with a length: number below 16, fewer than 128 bytes. */
const field = (number: number, bytes: Buffer) =>
  Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);

server.addService(
  {
    ServerReflectionInfo: method(
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      true,
      true,
    ),
  },
  {
    /** Answers every request with the list of services: list_services_response is field 6. */
    ServerReflectionInfo(call: ServerDuplexStream<Buffer, Buffer>) {
      const names = ["test.Echo", "grpc.health.v1.Health"];
      const list = names.map((name) => field(1, field(1, Buffer.from(name))));
      call.on("data", () => void call.write(field(6, Buffer.concat(list))));
      call.on("end", () => call.end());
      call.on("error", () => undefined);
    },
  },
);

const credentials =
  keyFile === undefined || certificateFile === undefined
    ? ServerCredentials.createInsecure()
    : ServerCredentials.createSsl(null, [
        { private_key: readFileSync(keyFile), cert_chain: readFileSync(certificateFile) },
      ]);

server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) => {
  if (error !== null) throw error;
  process.stdout.write(`${JSON.stringify({ port: bound })}\n`);
});

process.stdin.on("data", (text) => {
  // NOT_SERVING is 2.
  healthAnswer = String(text).includes("not serving") ? Buffer.from([0x08, 0x02]) : SERVING;
  process.stdout.write(`${JSON.stringify({ health: healthAnswer[1] })}\n`);
});
process.stdin.on("end", () => process.exit());
