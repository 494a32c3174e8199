// The traps of Bun's sockets, each on a bare socket and on the one that our engine uses; as a program it plays all of them.
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";
import { connectionScenes } from "./trap-connections.ts";
import { descriptorScenes, playCrowdedServer } from "./trap-descriptors.ts";
import { tlsScenes } from "./trap-tls.ts";
import { client, exchanges, knocking, listen, stopAll, turns, wrapped } from "./trap-sockets.ts";

export interface Scene {
  /** As in the design of the engine. */
  readonly trap: number;
  /** `bare: …` fails when Bun has closed the trap. */
  readonly name: string;
  run(): unknown;
  readonly expected: unknown;
}

const certificate = await selfSigned("localhost");
const big = Buffer.alloc(20_000_000, "b");

const ending: readonly Scene[] = [
  {
    trap: 1,
    name: "bare: under TLS end() leaves a socket that cannot be ended while the client stays",
    async run() {
      let isEnded = false;
      let isClosed = false;
      const { port } = listen(
        {
          data(socket) {
            socket.end();
            socket.terminate();
            isEnded = true;
          },
          close() {
            isClosed = true;
          },
        },
        certificate,
      );
      const peer = knocking(port, { tls: true });
      await eventually(() => isEnded);
      await exchanges(100);
      return { isClosed, isGone: peer.isClosed };
    },
    expected: { isClosed: false, isGone: false },
  },
  {
    trap: 1,
    name: "ours: FIN, and the end of a client that stays",
    async run() {
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
      const peer = knocking(port, { tls: true });
      await eventually(() => peer.hasEnded);
      const closed = [1000, 2999, 3000].map((now) => {
        sockets[0]?.tick(now);
        return isClosed;
      });
      // Nothing receives it any more.
      peer.socket.write("y");
      await eventually(() => peer.isClosed);
      return { text: peer.text, closed };
    },
    expected: { text: "bye", closed: [false, false, true] },
  },
  {
    trap: 1,
    name: "bare: end(data) drops what the kernel does not take",
    async run() {
      const { port } = listen({ data: (socket) => socket.end(big) });
      const peer = knocking(port);
      await eventually(() => peer.bytes > 0);
      let before = -1;
      while (peer.bytes !== before) {
        before = peer.bytes;
        await exchanges(50);
      }
      return { isWhole: peer.bytes === big.length, hasEnded: peer.hasEnded };
    },
    expected: { isWhole: false, hasEnded: false },
  },
  {
    trap: 1,
    name: "ours: what the kernel does not take is sent before FIN",
    async run() {
      let isSent: boolean | null = null;
      const { port } = wrapped((socket) => ({
        received() {
          isSent = socket.write(big);
          socket.finish(0);
        },
      }));
      const peer = knocking(port);
      await eventually(() => peer.hasEnded);
      return { isSent, bytes: peer.bytes };
    },
    expected: { isSent: false, bytes: big.length },
  },
];

/** The most bytes that one socket got before another turn. */
async function mostPerTurn(serve: (seen: (bytes: number) => void) => number): Promise<number> {
  let [turn, most, total] = [0, 0, 0];
  const port = serve((bytes) => {
    turn += bytes;
    total += bytes;
    most = Math.max(most, turn);
  });
  client(port).socket.write(Buffer.alloc(60_000_000));
  while (total < 60_000_000) {
    await turns(1);
    turn = 0;
  }
  return most;
}

const reading: readonly Scene[] = [
  {
    trap: 3,
    name: "ours: a client that sends much has the turn for one read",
    async run() {
      const most = await mostPerTurn(
        (seen) => wrapped(() => ({ received: (chunk) => seen(chunk.length) })).port,
      );
      return most <= 1_048_576;
    },
    expected: true,
  },
  {
    trap: 6,
    name: "ours: a paused socket sees FIN once it reads again, and a response still arrives",
    async run() {
      let hasEnded = false;
      const { port, sockets } = wrapped((socket) => ({
        received: () => socket.pause(),
        ended() {
          hasEnded = true;
          socket.writeText("late");
          socket.finish(0);
        },
      }));
      const peer = knocking(port);
      await eventually(() => sockets.length === 1);
      peer.socket.end("y");
      await turns(200);
      const before = hasEnded;
      sockets[0]?.resume();
      // The second byte pauses it again.
      await turns(50);
      sockets[0]?.resume();
      await eventually(() => peer.hasEnded);
      return { before, text: peer.text };
    },
    expected: { before: false, text: "late" },
  },
  {
    trap: 6,
    name: "ours: a paused socket sees a reset at once",
    async run() {
      let isClosed = false;
      const { port, sockets } = wrapped((socket) => ({
        received: () => socket.pause(),
        closed() {
          isClosed = true;
        },
      }));
      const peer = knocking(port);
      await eventually(() => sockets.length === 1);
      peer.socket.resetAndDestroy();
      return eventually(() => isClosed);
    },
    expected: true,
  },
];

const writing: readonly Scene[] = [
  {
    trap: 4,
    name: "bare: a string becomes UTF-8",
    async run() {
      const { port } = listen({
        data: (socket) =>
          void (socket as unknown as { write(text: string): number }).write("caf\xe9"),
      });
      const peer = knocking(port);
      await eventually(() => peer.text.length >= 5);
      return peer.text;
    },
    expected: "caf\xc3\xa9",
  },
  {
    trap: 4,
    name: "ours: a string is latin1, with what follows it",
    async run() {
      const { port } = wrapped((socket) => ({
        received: () => void socket.writeText("caf\xe9", [Buffer.from([0xff]), Buffer.from("!")]),
      }));
      const peer = knocking(port);
      await eventually(() => peer.text.length >= 6);
      return peer.text;
    },
    expected: "caf\xe9\xff!",
  },
  ...[1, 65_535, 65_536, 65_537, 200_000].map((length) => ({
    trap: 4,
    name: `ours: text of ${length} bytes and pieces around the size of the buffer arrive in order`,
    async run() {
      const pieces = [Buffer.alloc(10, "1"), Buffer.alloc(70_000, "2"), Buffer.alloc(3, "3")];
      const { port } = wrapped((socket) => ({
        received: () => void socket.writeText("t".repeat(length), pieces),
      }));
      const peer = knocking(port);
      await eventually(() => peer.bytes === length + 70_013);
      return peer.text === "t".repeat(length) + Buffer.concat(pieces).toString();
    },
    expected: true,
  })),
];

const throwing: readonly Scene[] = [
  {
    trap: 5,
    name: "bare: what a handler throws leaves the connection open",
    async run() {
      const errors: Error[] = [];
      const { port } = listen({
        data() {
          throw new Error("a bug");
        },
        error: (_, error) => void errors.push(error),
      });
      const peer = knocking(port);
      await eventually(() => errors.length > 0);
      await exchanges(20);
      return [peer.hasEnded, peer.isClosed];
    },
    expected: [false, false],
  },
  ...(["received", "drained", "ended"] as const).map((event) => ({
    trap: 5,
    name: `ours: what ${event} throws closes it`,
    async run() {
      const { port } = wrapped((socket) => ({
        received() {
          socket.write(Buffer.alloc(8_000_000));
        },
        [event]() {
          throw new Error("a bug");
        },
      }));
      const peer = knocking(port);
      if (event === "ended") peer.socket.end();
      return eventually(() => peer.isClosed);
    },
    expected: true,
  })),
  {
    trap: 5,
    name: "ours: destroy within a handler reports closed before it returns, once, and writes nothing more",
    async run() {
      const order: unknown[] = [];
      const { port } = wrapped((socket) => ({
        received() {
          socket.destroy();
          order.push("returned", socket.writeText("nothing"));
          socket.finish(0);
          socket.destroy();
        },
        closed: () => void order.push("closed"),
      }));
      const peer = knocking(port);
      await eventually(() => peer.isClosed);
      return { order, bytes: peer.bytes };
    },
    expected: { order: ["closed", "returned", true], bytes: 0 },
  },
];

export const scenes: readonly Scene[] = [
  ...ending,
  ...descriptorScenes,
  ...reading,
  ...writing,
  ...throwing,
  ...connectionScenes,
  ...tlsScenes,
];

/** What each scene returned or threw, one line of JSON each. */
async function playAll(): Promise<void> {
  for (const { name, run } of scenes) {
    let line: object;
    try {
      line = { name, result: await run() };
    } catch (error) {
      line = { name, error: String(error) };
    }
    stopAll();
    console.log(JSON.stringify(line));
  }
  process.exit();
}

if (import.meta.main) {
  const [, , limit] = process.argv;
  if (limit === undefined) await playAll();
  else playCrowdedServer(Number(limit));
}
