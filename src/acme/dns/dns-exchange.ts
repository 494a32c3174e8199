// Sends one DNS message to a name server and receives the response, over TCP or UDP; knows no content.
import type { DnsClientParts } from "./provider.ts";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { reasonOf } from "../../control/outgoing-request.ts";
import { DnsError } from "./failure.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
}

const TIMEOUT_MS = 10_000;
/** Time after which a lost datagram is sent again. */
const RESEND_MS = 2000;

/** Throws a DnsError when there is no response in time. */
export async function exchange(
  message: Buffer,
  named: ServerAddress,
  { dialer, signal }: DnsClientParts,
): Promise<Buffer> {
  const server = { ...named, host: await addressOf(named, dialer) };
  return await new Promise<Buffer>((resolve, reject) => {
    const where = `the name server ${named.host}, port ${named.port} (${server.protocol}),`;
    const settle = (end: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      stop();
      end();
    };
    const fail = (reason: string) => settle(() => reject(new DnsError(`${where} ${reason}`)));
    const timer = setTimeout(
      () => fail(`did not respond within ${TIMEOUT_MS / 1000} s`),
      TIMEOUT_MS,
    );
    const abort = () => settle(() => reject(signal?.reason));
    const start = server.protocol === "tcp" ? overTcp : overUdp;
    const stop = start(message, server, {
      respond: (bytes) => settle(() => resolve(bytes)),
      fail: (error) => fail(`cannot be reached (${error?.code ?? "the connection was closed"})`),
    });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/** The first one that may be connected to. */
async function addressOf(server: ServerAddress, dialer: DnsClientParts["dialer"]): Promise<string> {
  try {
    return (await dialer.addressesOf(server))[0] ?? server.host;
  } catch (error) {
    throw new DnsError(
      `the name server ${server.host} ${reasonOf(error, { timeoutMs: TIMEOUT_MS })}`,
    );
  }
}

interface Outcome {
  readonly respond: (bytes: Buffer) => void;
  readonly fail: (error: NodeJS.ErrnoException | null) => void;
}

/** RFC 1035 section 4.2.2: two bytes of length before each message. */
function overTcp(message: Buffer, { host, port }: ServerAddress, { respond, fail }: Outcome) {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  const socket = connect({ host, port }, () => void socket.write(Buffer.concat([length, message])));
  let received = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    if (received.length < 2) return;
    const end = 2 + received.readUInt16BE(0);
    if (received.length >= end) respond(received.subarray(2, end));
  });
  socket.on("error", fail);
  socket.on("close", () => fail(null));
  return () => {
    socket.removeAllListeners("close");
    socket.destroy();
  };
}

function overUdp(message: Buffer, { host, port }: ServerAddress, { respond, fail }: Outcome) {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.on("error", fail);
  socket.on("message", (bytes) => {
    // Any host can send datagrams: one with another id is not the response.
    if (bytes.length >= 12 && bytes.readUInt16BE(0) === message.readUInt16BE(0)) respond(bytes);
  });
  let resend: ReturnType<typeof setInterval> | undefined;
  // Connected, so that the kernel drops datagrams from other addresses.
  socket.connect(port, host, () => {
    socket.send(message);
    resend = setInterval(() => socket.send(message), RESEND_MS);
  });
  return () => {
    clearInterval(resend);
    socket.close();
  };
}
