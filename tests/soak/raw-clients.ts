// Clients of a soak that write their own bytes: they leave early, read slowly, send heads of which nothing more comes, or upgrade.
import { connect } from "node:net";
import { connectRaw, type RawConnection } from "../support/raw-http.ts";
import { type Client, must } from "./clients.ts";
import { LARGE_BYTES, type Scene } from "./scene.ts";

const GET_LARGE = "GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n";
const POST = "POST /count HTTP/1.1\r\nHost: a.test\r\n";
const SLOW_PAUSE_MS = 10;

/** A connection for one round, closed after it. */
async function connected(
  { httpPort }: Scene,
  talk: (connection: RawConnection) => Promise<unknown>,
): Promise<void> {
  const connection = await connectRaw({ port: httpPort });
  try {
    await talk(connection);
  } finally {
    connection.close();
  }
}

/** What a client has sent when it leaves, and what it has received. */
const leaving: readonly (readonly [sent: string, received: string])[] = [
  ["GET /pla", ""],
  [GET_LARGE, "\r\n\r\n"],
  [`${POST}Content-Length: ${LARGE_BYTES}\r\n\r\n${"a".repeat(100_000)}`, ""],
  [`${POST}Transfer-Encoding: chunked\r\n\r\n5\r\nabc`, ""],
  [GET_LARGE, ""],
];

/** Each of them once with a FIN and once with a reset. */
export const aborted: Client = (scene, round) =>
  connected(scene, async (connection) => {
    const [sent, received] = leaving[round % leaving.length] ?? ["", ""];
    connection.write(sent);
    await connection.until(received);
    if (round % 2 === 0) connection.reset();
  });

/** In HTTP/1.0, whose responses end with the connection and have no chunks: every byte of the body counts. */
export const slowReader: Client = async ({ httpPort }) => {
  const socket = connect(httpPort, "127.0.0.1");
  socket.write("GET /large HTTP/1.0\r\nHost: a.test\r\n\r\n");
  let [head, bytes] = ["", 0];
  for await (const piece of socket as AsyncIterable<Buffer>) {
    if (head.includes("\r\n\r\n")) bytes += piece.length;
    else {
      head += piece.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end >= 0) bytes = head.length - end - 4;
    }
    await Bun.sleep(SLOW_PAUSE_MS);
  }
  const isRight = head.startsWith("HTTP/1.1 200 ") && bytes === LARGE_BYTES;
  must(isRight, () => `${bytes} bytes after ${head.slice(0, 40)}`);
};

export const pipelined: Client = (scene) =>
  connected(scene, async (connection) => {
    const plain = "GET /plain HTTP/1.1\r\nHost: a.test\r\n\r\n";
    const counted = `${POST}Transfer-Encoding: chunked\r\n\r\n7\r\nletters\r\n0\r\n\r\n`;
    const last = "GET /plain HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    connection.write(plain + counted + last);
    const text = await connection.untilClosed();
    const bodies = [...text.matchAll(/\b(?:plain|7)(?=\r\n|HTTP|$)/g)].map(([body]) => body);
    must(bodies.join() === "plain,7,plain", () => text);
  });

/** The target says nothing before it has the body: the gateway lets the client go on. */
export const expecting: Client = (scene) =>
  connected(scene, async (connection) => {
    connection.write(`${POST}Content-Length: 7\r\nExpect: 100-continue\r\n\r\n`);
    await connection.until("HTTP/1.1 100 ");
    connection.write("letters");
    await connection.until(/HTTP\/1\.1 200 [\s\S]*\r\n\r\n(?:1\r\n)?7/);
  });

/** Half a head gets 408. */
export const silent: Client = (scene) =>
  connected(scene, async (connection) => {
    connection.write("GET /plain HTTP/1.1\r\nHost: a.te");
    const text = await connection.untilClosed();
    must(text.startsWith("HTTP/1.1 408 "), () => text);
  });

export const otherUpgrade: Client = (scene, round) =>
  connected(scene, async (connection) => {
    connection.write(
      "GET /switching HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
    );
    const head = await connection.until("\r\n\r\n");
    must(head.startsWith("HTTP/1.1 101 "), () => head);
    const sent = "m".repeat(20_000);
    for (let at = 1; at <= 5; at++) {
      connection.write(sent);
      await connection.until((received) => received.length >= head.length + at * sent.length);
    }
    if (round % 2 === 0) connection.reset();
  });
