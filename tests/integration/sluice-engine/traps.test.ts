// The traps of Bun's sockets: each on a bare socket, and its absence on the one that our engine uses.
import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket as NodeSocket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  PeerSocket,
  type RawSocket,
  type SocketUser,
} from "../../../src/dataplane/server/peer-socket.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";

interface Raw extends RawSocket {
  data: PeerSocket | null;
  end(data?: Uint8Array): void;
}

interface Handlers {
  open?(socket: Raw): void;
  data?(socket: Raw, chunk: Buffer): void;
  end?(socket: Raw): void;
  close?(socket: Raw): void;
  drain?(socket: Raw): void;
  error?(socket: Raw, error: Error): void;
}

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function listen(handlers: Handlers, tls: object | null = null): number {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    ...(tls === null ? {} : { tls }),
    socket: { data() {}, ...handlers },
  } as unknown as Parameters<typeof Bun.listen>[0]) as unknown as {
    readonly port: number;
    stop(force: boolean): void;
  };
  stops.push(() => server.stop(true));
  return server.port;
}

/** A server whose sockets are wrapped; `user` gets their events. */
function wrapped(user: (socket: PeerSocket) => Partial<SocketUser>, tls: object | null = null) {
  const sockets: PeerSocket[] = [];
  const port = listen(
    {
      open(raw) {
        const all: SocketUser = { received() {}, drained() {}, ended() {}, closed() {} };
        const socket: PeerSocket = new PeerSocket(raw, {
          received: (chunk) => all.received(chunk),
          drained: () => all.drained(),
          ended: () => all.ended(),
          closed: (isReset) => all.closed(isReset),
        });
        Object.assign(all, user(socket));
        raw.data = socket;
        sockets.push(socket);
      },
      data: (raw, chunk) => raw.data?.clientSent(chunk),
      end: (raw) => raw.data?.clientEnded(),
      close: (raw) => raw.data?.clientClosed(false),
      drain: (raw) => raw.data?.clientDrained(),
      error: (raw) => raw.data?.clientClosed(true),
    },
    tls,
  );
  return { port, sockets };
}

/** A client that never closes by itself. */
function client(port: number, options: { readonly tls?: boolean } = {}) {
  const to = { host: "127.0.0.1", port, allowHalfOpen: true };
  const socket = (
    options.tls === true ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to)
  ) as NodeSocket;
  const pieces: Buffer[] = [];
  const seen = {
    socket,
    isClosed: false,
    hasEnded: false,
    get bytes() {
      return pieces.reduce((sum, { length }) => sum + length, 0);
    },
    get text() {
      return Buffer.concat(pieces).toString("latin1");
    },
  };
  socket.on("data", (chunk: Buffer) => pieces.push(chunk));
  socket.on("end", () => {
    seen.hasEnded = true;
  });
  socket.on("close", () => {
    seen.isClosed = true;
  });
  socket.on("error", () => {});
  stops.push(() => socket.destroy());
  return seen;
}

const certificate = await selfSigned("localhost");

/** Turns of the event loop. */
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next));
};

describe("end() under TLS", () => {
  test("bare: the socket cannot be ended while the client stays", async () => {
    let raw: Raw | null = null;
    let isClosed = false;
    const port = listen(
      {
        data(socket) {
          raw = socket;
          socket.end();
          socket.terminate();
        },
        close() {
          isClosed = true;
        },
      },
      certificate,
    );
    const peer = client(port, { tls: true });
    peer.socket.on("secureConnect", () => peer.socket.write("x"));
    await eventually(() => raw !== null);
    await Bun.sleep(300);
    // If this fails, Bun has mended it.
    expect([isClosed, peer.isClosed]).toEqual([false, false]);
  });

  test("wrapped: FIN, and the end of a client that stays", async () => {
    let isClosed = false;
    const { port, sockets } = wrapped(
      (socket) => ({
        received() {
          socket.writeText("bye");
          socket.finish(1000);
        },
        closed() {
          isClosed = true;
        },
      }),
      certificate,
    );
    const peer = client(port, { tls: true });
    peer.socket.on("secureConnect", () => peer.socket.write("x"));
    await eventually(() => peer.hasEnded);
    expect(peer.text).toBe("bye");
    sockets[0]?.tick(1000);
    sockets[0]?.tick(2999);
    expect(isClosed).toBe(false);
    sockets[0]?.tick(3000);
    expect(isClosed).toBe(true);
    await eventually(() => peer.isClosed);
  });
});

describe("what the kernel does not take", () => {
  const big = Buffer.alloc(20_000_000, "b");

  test("bare: end(data) drops it", async () => {
    const port = listen({ data: (socket) => socket.end(big) });
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.bytes > 0);
    let before = -1;
    while (peer.bytes !== before) {
      before = peer.bytes;
      await Bun.sleep(200);
    }
    // If this fails, Bun has mended it.
    expect(peer.bytes).toBeLessThan(big.length);
    expect(peer.hasEnded).toBe(false);
  });

  test("wrapped: it is sent before FIN", async () => {
    const { port } = wrapped((socket) => ({
      received() {
        expect(socket.write(big)).toBe(false);
        socket.finish(0);
      },
    }));
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.hasEnded);
    expect(peer.bytes).toBe(big.length);
  });
});

describe("a string", () => {
  test("bare: becomes UTF-8", async () => {
    const port = listen({
      data: (socket) =>
        void (socket as unknown as { write(text: string): number }).write("caf\xe9"),
    });
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.text.length >= 5);
    expect(peer.text).toBe("caf\xc3\xa9");
  });

  test("wrapped: is latin1, with what follows it", async () => {
    const { port } = wrapped((socket) => ({
      received: () => void socket.writeText("caf\xe9", [Buffer.from([0xff]), Buffer.from("!")]),
    }));
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.text.length >= 6);
    expect(peer.text).toBe("caf\xe9\xff!");
  });

  test.each([1, 65_535, 65_536, 65_537, 200_000])(
    "wrapped: text of %d bytes and pieces around the size of the buffer arrive in order",
    async (length) => {
      const pieces = [Buffer.alloc(10, "1"), Buffer.alloc(70_000, "2"), Buffer.alloc(3, "3")];
      const { port } = wrapped((socket) => ({
        received: () => void socket.writeText("t".repeat(length), pieces),
      }));
      const peer = client(port);
      peer.socket.write("x");
      await eventually(() => peer.bytes === length + 70_013);
      expect(peer.text).toBe("t".repeat(length) + Buffer.concat(pieces).toString());
    },
  );
});

describe("a client that sends much", () => {
  /** Bytes that one socket got before another turn. */
  async function mostPerTurn(observe: (seen: (bytes: number) => void) => number): Promise<number> {
    let [turn, most, total] = [0, 0, 0];
    const port = observe((bytes) => {
      turn += bytes;
      total += bytes;
      most = Math.max(most, turn);
    });
    const peer = client(port);
    peer.socket.write(Buffer.alloc(60_000_000));
    while (total < 60_000_000) {
      await turns(1);
      turn = 0;
    }
    return most;
  }

  test("bare: has the turn for megabytes; wrapped: for one read", async () => {
    const bare = await mostPerTurn((seen) => listen({ data: (_, chunk) => seen(chunk.length) }));
    const limited = await mostPerTurn(
      (seen) => wrapped(() => ({ received: (chunk) => seen(chunk.length) })).port,
    );
    expect(limited).toBeLessThanOrEqual(1_048_576);
    // How much depends on the sender.
    expect(bare).toBeGreaterThanOrEqual(0);
  });
});

describe("what a handler throws", () => {
  test("bare: leaves the connection open", async () => {
    const errors: Error[] = [];
    const port = listen({
      data() {
        throw new Error("a bug");
      },
      error: (_, error) => void errors.push(error),
    });
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => errors.length > 0);
    await turns(100);
    expect([peer.hasEnded, peer.isClosed]).toEqual([false, false]);
  });

  test.each(["received", "drained", "ended"] as const)("wrapped: %s closes it", async (event) => {
    const fails = () => {
      throw new Error("a bug");
    };
    const { port } = wrapped((socket) => ({
      received() {
        socket.write(Buffer.alloc(8_000_000));
      },
      [event]: fails,
    }));
    const peer = client(port);
    peer.socket.write("x");
    if (event === "ended") peer.socket.end();
    await eventually(() => peer.isClosed);
  });
});

describe("a paused socket", () => {
  test("sees FIN once it reads again, and a response still arrives", async () => {
    let hasEnded = false;
    const { port, sockets } = wrapped((socket) => ({
      received: () => socket.pause(),
      ended() {
        hasEnded = true;
        socket.writeText("late");
        socket.finish(0);
      },
    }));
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => sockets.length === 1);
    peer.socket.end("y");
    await turns(200);
    expect(hasEnded).toBe(false);
    sockets[0]?.resume();
    // The second byte pauses it again.
    await turns(50);
    sockets[0]?.resume();
    await eventually(() => peer.hasEnded);
    expect(peer.text).toBe("late");
  });

  test("sees a reset at once", async () => {
    let isClosed = false;
    const { port } = wrapped((socket) => ({
      received: () => socket.pause(),
      closed() {
        isClosed = true;
      },
    }));
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.socket.bytesWritten > 0);
    peer.socket.resetAndDestroy();
    await eventually(() => isClosed);
  });
});

describe("destroy within a handler", () => {
  test("reports closed before it returns, once, and writes nothing more", async () => {
    const order: string[] = [];
    const { port } = wrapped((socket) => ({
      received() {
        socket.destroy();
        order.push("returned");
        expect(socket.writeText("nothing")).toBe(true);
        socket.finish(0);
        socket.destroy();
      },
      closed: () => void order.push("closed"),
    }));
    const peer = client(port);
    peer.socket.write("x");
    await eventually(() => peer.isClosed);
    expect(order).toEqual(["closed", "returned"]);
    expect(peer.bytes).toBe(0);
  });
});
