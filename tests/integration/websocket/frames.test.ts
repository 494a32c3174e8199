// The same frames sent to an origin directly and through the gateway, by clients and by targets: what arrives, and which close code.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { selfSigned } from "../../support/certificate.ts";
import { hasTunnels } from "../../support/engines.ts";
import { reading } from "../../support/message-reading.ts";
import { eventually } from "../../support/poll.ts";
import { type FrameRow, frameRows, type FrameSketch, longForms } from "./frame-table.ts";
import { closePayload, frameBytes, handshake, opcodes, Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

/** What one end of a connection saw. */
interface Outcome {
  readonly messages: string[];
  readonly pongs: string[];
  /** Of the Close frame; 1005 for one without a code, 1006 when there was none. */
  code: number;
}

const bytesOf = (frames: readonly FrameSketch[], mask: boolean) =>
  Buffer.concat(frames.map((frame) => frame(mask)));

const nothingYet = (): Outcome => ({ messages: [], pongs: [], code: 1006 });

/** What breaks the protocol ends otherwise in tunnels: integration/sluice-engine/tunnels. */
const rowsOfClients = hasTunnels ? frameRows.filter((row) => !row.isMistake) : frameRows;

const named = (rows: readonly FrameRow[]) => rows.map((row) => [row.name, row] as const);

/** Reads frames until so many answers are there; or, without a number, until the connection ends. */
async function collect(peer: Peer, seen: Outcome, answers = Number.POSITIVE_INFINITY) {
  while (seen.messages.length + seen.pongs.length < answers) {
    const frame = await peer.frameOrEnd();
    if (frame === null) return;
    if (frame.opcode === opcodes.pong) seen.pongs.push(frame.payload.toString());
    else if (frame.opcode !== opcodes.close) seen.messages.push(frame.payload.toString());
    else seen.code = frame.payload.length < 2 ? 1005 : frame.payload.readUInt16BE();
  }
}

describe("a client's frames, to an origin that echoes", () => {
  let origin: ReturnType<typeof echoOrigin>;
  const gateways: RunningDataPlane[] = [];
  const ways = { plain: 0, tls: 0 };
  beforeAll(async () => {
    origin = echoOrigin();
    const start = async (part: Partial<Parameters<typeof startDataPlane>[0]>) => {
      const gateway = await startDataPlane({
        services: [{ name: "echo", targets: [{ port: origin.port }] }],
        routes: [{ name: "all", service_id: "echo" }],
        ...part,
      });
      gateways.push(gateway);
      return gateway.port;
    };
    ways.plain = await start({});
    ways.tls = await start({ tls: await selfSigned() });
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await origin.stop();
  });

  async function open(port: number) {
    const client = port === ways.tls ? await Peer.tlsClient(port) : await Peer.client(port);
    client.write(handshake());
    await client.head();
    return { client, heard: origin.last(), seen: nothingYet() };
  }

  /** Sends what ends the connection when the answers to everything before it have come. */
  async function sendWaiting(port: number, row: FrameRow) {
    const { client, heard, seen } = await open(port);
    client.write(bytesOf(row.good, true));
    await collect(client, seen, row.messages.length + row.pings.length);
    client.write(bytesOf([...row.last, ...(row.bunNeeds ?? [])], true));
    await collect(client, seen);
    await eventually(() => heard.code !== null, { intervalMs: 1 });
    client.destroy();
    return { seen, heard };
  }

  async function sendAtOnce(port: number, row: FrameRow) {
    const { client, heard, seen } = await open(port);
    client.write(bytesOf([...row.good, ...row.last, ...(row.bunNeeds ?? [])], true));
    await collect(client, seen);
    await eventually(() => heard.code !== null, { intervalMs: 1 });
    client.destroy();
    return { seen, heard };
  }

  test.each(named(rowsOfClients))("%s: every response arrives, then the code", async (_, row) => {
    const direct = await sendWaiting(origin.port, row);
    expect(direct.seen).toEqual({
      messages: [...row.messages],
      pongs: [...row.pings],
      code: row.bunCode ?? row.code,
    });
    expect(await sendWaiting(ways.plain, row)).toEqual(direct);
  });

  test.each(named(rowsOfClients))("%s: in one piece, the origin gets as much", async (_, row) => {
    const direct = await sendAtOnce(origin.port, row);
    const through = await sendAtOnce(ways.plain, row);
    expect(direct.heard.messages).toEqual([...row.messages]);
    expect(through.heard).toEqual(direct.heard);
    // The answers of the target may come too late: limits-of-bun.md.
    expect({ ...through.seen, messages: [] }).toEqual({ ...direct.seen, messages: [] });
  });

  const mistakes = named(rowsOfClients.filter((row) => row.isMistake));

  test.each(mistakes)("%s, over TLS: the same", async (_, row) => {
    const { seen, heard } = await sendAtOnce(ways.tls, row);
    expect(heard).toEqual({ messages: [...row.messages], code: 1006 });
    expect({ pongs: seen.pongs, code: seen.code }).toEqual({
      pongs: [...row.pings],
      code: row.bunCode ?? row.code,
    });
  });

  reading.test.each(longForms)(
    "the length %s is not in its shortest form, and Bun accepts it",
    async (_, sketch) => {
      for (const port of [origin.port, ways.plain]) {
        const { client, heard, seen } = await open(port);
        client.write(sketch(true));
        await collect(client, seen, 1);
        expect(seen.messages).toEqual(["a"]);
        expect(heard.messages).toEqual(["a"]);
        client.destroy();
      }
    },
  );

  reading.test("a client that offers compression gets none, and RSV 1 is an error", async () => {
    const client = await Peer.client(ways.plain);
    client.write(handshake("Sec-WebSocket-Extensions: permessage-deflate\r\n"));
    expect((await client.head()).toLowerCase()).not.toContain("sec-websocket-extensions");
    client.write(frameBytes(opcodes.text, "x", { mask: true, reserved: 0x40 }));
    expect((await client.closeFrame())[0]).toBe(1002);
  });
});

describe("a target's frames", () => {
  const { test, beforeAll, afterAll } = reading;
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  /** What Bun's own client makes of them, connected to the target directly. */
  async function direct(row: FrameRow) {
    const socket = new WebSocket(`ws://127.0.0.1:${scene.target.port}`);
    socket.binaryType = "arraybuffer";
    const messages: string[] = [];
    socket.onmessage = ({ data }) =>
      messages.push(typeof data === "string" ? data : Buffer.from(data).toString());
    const origin = await scene.target.connection();
    origin.write(switching(await origin.head()));
    await eventually(() => socket.readyState === WebSocket.OPEN);
    origin.write(bytesOf([...row.good, ...row.last, ...(row.bunNeeds ?? [])], false));
    const seen = nothingYet();
    await collect(origin, seen);
    origin.destroy();
    return { messages, code: seen.code };
  }

  async function through(row: FrameRow) {
    const { client, origin } = await scene.open();
    origin.write(bytesOf([...row.good, ...row.last], false));
    const seen = nothingYet();
    const answer = nothingYet();
    await collect(origin, answer);
    await collect(client, seen);
    await eventually(() => scene.openCount() === 0);
    return { seen, code: answer.code };
  }

  test.each(named(frameRows))("%s", async (_, row) => {
    const near = await direct(row);
    expect(near).toEqual({ messages: [...row.messages], code: row.bunCode ?? row.code });
    const { seen, code } = await through(row);
    expect(code).toBe(row.code);
    expect(seen.messages).toEqual([...row.pings, ...row.messages]);
    expect(seen.code).toBe(row.isMistake ? 1011 : row.code);
  });

  test.each(longForms)("the length %s is not in its shortest form: 1002", async (_, sketch) => {
    const { client, origin } = await scene.open();
    origin.write(Buffer.concat([frameBytes(opcodes.text, "before"), sketch(false)]));
    expect((await client.frame()).payload.toString()).toBe("before");
    expect((await client.closeFrame())[0]).toBe(1011);
    expect((await origin.closeFrame())[0]).toBe(1002);
  });

  test.each([
    ["in the segment of its 101", true],
    ["while the client does not read", false],
  ])("data before an error %s arrives", async (_, isEarly) => {
    const { client, origin, head } = await scene.knock();
    const large = Buffer.alloc(isEarly ? 10 : 20_000_000, 97);
    const bytes = [frameBytes(opcodes.binary, large), frameBytes(3, "x"), frameBytes(1, "after")];
    if (isEarly) origin.write(Buffer.concat([Buffer.from(switching(head)), ...bytes]));
    else {
      origin.write(switching(head));
      await client.head();
      client.socket.pause();
      origin.write(Buffer.concat(bytes));
      await eventually(() => origin.socket.writableLength < large.length);
      client.socket.resume();
    }
    if (isEarly) await client.head();
    expect((await client.frame()).payload.equals(large)).toBe(true);
    expect((await client.closeFrame())[0]).toBe(1011);
  });
});

describe("events of a client's end that Bun hides (limits-of-bun.md)", () => {
  const { test, beforeAll, afterAll } = reading;
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test.each([
    ["a mistake", frameBytes(3, "x", { mask: true }), 1002],
    ["a Close", frameBytes(opcodes.close, closePayload(1000), { mask: true }), 1000],
  ])("%s ends the connection before the target has responded", async (_, last, code) => {
    const { client, origin } = await scene.open();
    client.write(Buffer.concat([frameBytes(opcodes.text, "before", { mask: true }), last]));
    expect((await origin.frame()).payload.toString()).toBe("before");
    origin.send(opcodes.text, "an answer");
    expect((await client.closeFrame())[0]).toBe(code);
    await client.ended();
    expect(client.pending.length).toBe(0);
  });

  test("data that reached the gateway is delivered before the code", async () => {
    const { client, origin } = await scene.open();
    client.socket.pause();
    const answer = Buffer.alloc(20_000_000, 97);
    origin.send(opcodes.binary, answer);
    await eventually(() => origin.socket.writableLength === 0 && hasRead(origin.socket));
    client.send(3);
    await origin.ended();
    client.socket.resume();
    expect((await client.frame()).payload.equals(answer)).toBe(true);
    expect((await client.closeFrame())[0]).toBe(1002);
  });
});

/** Whether the gateway has read all that a target has sent. Where the kernel does not say, only a quiet machine is sure. */
function hasRead({ localPort = 0, remotePort = 0 }: Socket): boolean {
  if (!existsSync("/proc/net/tcp")) return true;
  const ports = [localPort, remotePort].map((port) =>
    port.toString(16).toUpperCase().padStart(4, "0"),
  );
  const rows = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter((row) => ports.every((port) => row.includes(`:${port} `)));
  return rows.every((row) => row.trim().split(/\s+/)[4] === "00000000:00000000");
}

function echoOrigin() {
  const connections: { messages: string[]; code: number | null }[] = [];
  const server = Bun.serve<{ messages: string[]; code: number | null }>({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, self) => {
      const data = { messages: [], code: null };
      connections.push(data);
      return self.upgrade(request, { data }) ? undefined : new Response("no", { status: 400 });
    },
    websocket: {
      data: {} as { messages: string[]; code: number | null },
      // As long as the gateway's.
      maxPayloadLength: 67_108_864,
      message: (socket, message) => {
        socket.data.messages.push(message.toString());
        socket.send(message);
      },
      close: (socket, code) => {
        socket.data.code = code;
      },
    },
  });
  return {
    port: server.port ?? 0,
    /** Of the connection that was opened last. */
    last: () => connections.at(-1) ?? { messages: [], code: null },
    stop: () => server.stop(true),
  };
}
