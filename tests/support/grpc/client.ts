// A gRPC client of @grpc/grpc-js, which runs in Node as a program of its own: reads commands from stdin, a line of JSON each, and answers each with a line.
import { createInterface } from "node:readline";
import {
  type CallOptions,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";
import type {
  CallCommand,
  CallResult,
  ChannelOptions,
  ClientCommand,
  HeldResult,
  LoadResult,
} from "./protocol.ts";

const same = (bytes: Buffer) => bytes;
const clients = new Map<string, Client>();

function clientOf(options: ChannelOptions): Client {
  const key = JSON.stringify(options);
  const known = clients.get(key);
  if (known !== undefined) return known;
  const { port, ca, authority = "localhost", arguments: more = {} } = options;
  const client = new Client(
    `127.0.0.1:${port}`,
    ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca)),
    {
      ...(ca === undefined ? {} : { "grpc.ssl_target_name_override": authority }),
      "grpc.default_authority": authority,
      "grpc.use_local_subchannel_pool": 1,
      ...more,
    },
  );
  clients.set(key, client);
  return client;
}

function metadataOf(command: CallCommand): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(command.metadata ?? {}))
    metadata.add(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  return metadata;
}

const plain = (metadata: Metadata | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(metadata?.getMap() ?? {}).map(([name, value]) => [
      name,
      typeof value === "string" ? value : value.toString("base64"),
    ]),
  );

const messageOf = (text: string, size = 0) => Buffer.from(text.padEnd(size, "."));

type WritableCall = ClientWritableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>;
type AnyCall =
  | ClientUnaryCall
  | ClientReadableStream<Buffer>
  | ClientWritableStream<Buffer>
  | ClientDuplexStream<Buffer, Buffer>;

/** Begins a call; the first message goes with it where the client sends only one. */
function begin(command: CallCommand, reply: (error: unknown, message?: Buffer) => void): AnyCall {
  const { method, kind, messages = [""], size, deadlineMs } = command;
  const client = clientOf(command.channel);
  const metadata = metadataOf(command);
  const options: CallOptions =
    deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const first = messageOf(messages[0] ?? "", size);
  switch (kind) {
    case "unary":
      return client.makeUnaryRequest(method, same, same, first, metadata, options, reply);
    case "client":
      return client.makeClientStreamRequest(method, same, same, metadata, options, reply);
    case "server":
      return client.makeServerStreamRequest(method, same, same, first, metadata, options);
    case "bidi":
      return client.makeBidiStreamRequest(method, same, same, metadata, options);
  }
}

/** One call of any kind; resolves when it has ended, however it did. */
function call(command: CallCommand): Promise<CallResult> {
  const { kind, cancelAfter, cancelAfterMs } = command;
  const started = performance.now();
  const messages: string[] = [];
  let [count, bytes] = [0, 0];
  let initial: Metadata | undefined;
  const take = (message: Buffer) => {
    count += 1;
    bytes += message.length;
    if (messages.length < 20) messages.push(message.subarray(0, 200).toString());
    if (count === cancelAfter) running.cancel();
  };
  const running = begin(command, (error, message) => {
    if (error === null && message !== undefined) take(message);
  });
  running.on("metadata", (value: Metadata) => {
    initial = value;
  });
  if (kind === "server" || kind === "bidi") {
    (running as ClientReadableStream<Buffer>).on("data", take);
    (running as ClientReadableStream<Buffer>).on("error", () => undefined);
  }
  if (kind === "client" || kind === "bidi") void sendAll(running as WritableCall, command);
  if (cancelAfterMs !== undefined) setTimeout(() => running.cancel(), cancelAfterMs);
  return new Promise((resolve) => {
    running.on("status", ({ code, details, metadata }: StatusObject) => {
      const fields = { initial: plain(initial), trailing: plain(metadata) };
      // A unary response is reported after its status.
      setImmediate(() =>
        resolve({
          code,
          details,
          ...fields,
          messages,
          count,
          bytes,
          elapsedMs: performance.now() - started,
        }),
      );
    });
  });
}

async function sendAll(
  running: WritableCall,
  { messages = [""], times = 1, size, isLeftOpen = false }: CallCommand,
): Promise<void> {
  running.on("error", () => undefined);
  for (let at = 0; at < times; at++)
    for (const message of messages) {
      if (running.destroyed) return;
      if (!running.write(messageOf(message, size)))
        await new Promise<void>((done) => {
          running.once("drain", done);
          running.once("close", done);
        });
    }
  if (!isLeftOpen) running.end();
}

interface Held {
  sent: number;
  received: number;
  /** What broke it, null while it is as it should be. */
  broken: string | null;
  isEnded: boolean;
  stream: ClientDuplexStream<Buffer, Buffer>;
}

let held: Held[] = [];
let isHolding = false;

/** Bidirectional streams, each of which sends the next number when the last one is back. */
function hold({ channel, streams, channels = 1 }: Extract<ClientCommand, { op: "hold" }>): void {
  isHolding = true;
  held = Array.from({ length: streams }, (_, at) => {
    const client = clientOf({ ...channel, arguments: { "test.channel": at % channels } });
    const stream = client.makeBidiStreamRequest("/test.Echo/Chat", same, same, new Metadata());
    const one: Held = { sent: 0, received: 0, broken: null, isEnded: false, stream };
    stream.on("data", (message: Buffer) => {
      if (Number(message.toString()) !== one.received)
        one.broken ??= `message ${message.toString()} in the place of ${one.received}`;
      one.received += 1;
      if (isHolding) setTimeout(send, 5, one);
      else stream.end();
    });
    stream.on("error", (error: ServiceError) => {
      one.broken ??= `${error.code} ${error.details}`;
    });
    stream.on("status", ({ code }: StatusObject) => {
      if (isHolding) one.broken ??= `ended with ${code}`;
      one.isEnded = true;
    });
    send(one);
    return one;
  });
}

function send(one: Held): void {
  if (!one.isEnded) one.stream.write(Buffer.from(String(one.sent)));
  one.sent += 1;
}

const heldNow = (): HeldResult => ({
  streams: held.length,
  exchanged: held.reduce((sum, one) => sum + one.received, 0),
  fewest: Math.min(...held.map((one) => one.received)),
  ended: held.filter((one) => one.isEnded).length,
  broken: held.flatMap((one) => one.broken ?? []),
  lost: held.filter((one) => one.sent !== one.received).length,
});

let load: Promise<LoadResult> | null = null;
let isLoading = false;

/** Calls without a pause, some at a time. */
async function runLoad(command: Extract<ClientCommand, { op: "load" }>): Promise<LoadResult> {
  const codes: Record<string, number> = {};
  let slowestMs = 0;
  const lane = async () => {
    while (isLoading) {
      const { code, elapsedMs } = await call(command.call);
      codes[code] = (codes[code] ?? 0) + 1;
      slowestMs = Math.max(slowestMs, elapsedMs);
    }
  };
  await Promise.all(Array.from({ length: command.lanes }, lane));
  return { codes, slowestMs };
}

async function run(command: ClientCommand): Promise<unknown> {
  switch (command.op) {
    case "call":
      return await call(command);
    case "calls":
      return await Promise.all(Array.from({ length: command.times }, () => call(command.call)));
    case "hold":
      return hold(command) ?? {};
    case "held":
      return heldNow();
    case "release":
      isHolding = false;
      return {};
    case "load":
      isLoading = true;
      load = runLoad(command);
      return {};
    case "unload":
      isLoading = false;
      return await load;
    case "close":
      for (const client of clients.values()) client.close();
      clients.clear();
      return {};
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, command } = JSON.parse(line) as { id: number; command: ClientCommand };
  void run(command).then(
    (result) => process.stdout.write(`${JSON.stringify({ id, result })}\n`),
    (error) => process.stdout.write(`${JSON.stringify({ id, error: String(error) })}\n`),
  );
}
process.exit();
