// Upgrades to other protocols than WebSocket on our own engine: which pass, what carries them, and how they end.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { handshake, Peer } from "../websocket/peer.ts";
import { type Scene, startScene } from "../websocket/scene.ts";

const ENGINE = { listener: { engine: "sluice" } } as const;

let scene: Scene;
beforeAll(async () => {
  scene = await startScene(ENGINE);
});
afterAll(() => scene.stop());

const peers: Peer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.destroy();
  await eventually(() => scene.openCount() === 0);
});

const request = (method: string, lines: string, body = "") =>
  `${method} /attach HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\n${lines}\r\n${body}`;

const switching = (protocol: string) =>
  `HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;

async function open(upgrade = "tcp") {
  const { client, origin } = await scene.knock(request("GET", `Upgrade: ${upgrade}\r\n`));
  peers.push(client, origin);
  origin.write(switching(upgrade));
  return { client, origin, answer: await client.head() };
}

const arrived = (peer: Peer, text: string) =>
  eventually(() => peer.pending.toString("latin1") === text);

describe("the request and the 101", () => {
  test("name the protocol, and the fields of the target pass", async () => {
    const { client, origin, head } = await scene.knock(request("GET", "Upgrade: tcp\r\n"));
    peers.push(client, origin);
    expect(head).toStartWith("GET /attach HTTP/1.1\r\n");
    expect(head).toContain("Connection: Upgrade\r\nUpgrade: tcp\r\n");
    origin.write(switching("tcp"));
    const answer = await client.head();
    expect(answer).toStartWith("HTTP/1.1 101 Switching Protocols\r\n");
    expect(answer).toContain("Upgrade: tcp\r\nConnection: Upgrade\r\n");
    expect(answer).toContain("Content-Type: application/vnd.docker.raw-stream\r\n");
    expect(answer.toLowerCase()).not.toContain("sec-websocket-accept");
  });

  test.each([
    ["a length", "Content-Length: 4\r\n", "body", "body"],
    [
      "chunks",
      "Transfer-Encoding: chunked\r\n",
      "4\r\nbody\r\n0\r\n\r\n",
      "4\r\nbody\r\n0\r\n\r\n",
    ],
    ["no body", "", "", ""],
  ])(
    "a POST with %s is sent whole before the protocol begins",
    async (_, lines, body, expected) => {
      const { client, origin } = await scene.knock(
        request("POST", `Upgrade: tcp\r\n${lines}`, `${body}early`),
      );
      peers.push(client, origin);
      await arrived(origin, expected);
      origin.write(`${switching("tcp")}at once`);
      await client.head();
      await arrived(client, "at once");
      await arrived(origin, `${expected}early`);
      client.write("up");
      await arrived(origin, `${expected}earlyup`);
    },
  );

  test("a target that switches before it has the body gets the body first", async () => {
    const { client, origin } = await scene.knock(
      request("POST", "Upgrade: tcp\r\nContent-Length: 8\r\n", "half"),
    );
    peers.push(client, origin);
    origin.write(`${switching("tcp")}early`);
    client.write("restand more");
    expect(await client.head()).toStartWith("HTTP/1.1 101 ");
    await arrived(client, "early");
    await arrived(origin, "halfrestand more");
  });

  test.each([
    ["a refusal", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "403", "no"],
    ["an ordinary response", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200", "ok"],
  ])(
    "%s reaches the client, and the connection to the target ends",
    async (_, sent, status, body) => {
      const { client, origin } = await scene.knock(request("GET", "Upgrade: tcp\r\n"));
      peers.push(client, origin);
      origin.write(sent);
      expect(await client.head()).toStartWith(`HTTP/1.1 ${status} `);
      await arrived(client, body);
      await Promise.all([origin.ended(), client.ended()]);
    },
  );

  test("one that was not offered becomes 502", async () => {
    const { client, origin } = await scene.knock(request("GET", "Upgrade: tcp\r\n"));
    peers.push(client, origin);
    origin.write(switching("udp"));
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    await origin.ended();
  });
});

describe("which are asked for", () => {
  const POST = "Content-Length: 0\r\n";
  test.each<readonly [why: string, request: string, upgrade: string | null]>([
    ["an unknown protocol", request("GET", "Upgrade: x-unknown/7\r\n"), "x-unknown/7"],
    ["several", request("GET", "Upgrade: a, b/2\r\nUpgrade: c\r\n"), "a, b/2, c"],
    ["h2c", request("GET", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), null],
    ["h2c in capitals", request("POST", `Upgrade: H2C\r\n${POST}`), null],
    ["h2c beside another one", request("GET", "Upgrade: h2c, tcp\r\n"), "tcp"],
    ["another version of HTTP", request("GET", "Upgrade: HTTP/2.0\r\n"), null],
    ["TLS, in which HTTP follows", request("GET", "Upgrade: TLS/1.0, HTTP/1.1\r\n"), null],
    ["a WebSocket by POST", request("POST", `Upgrade: websocket\r\n${POST}`), null],
    ["no token", request("GET", "Upgrade: a b, (x)\r\n"), null],
    ["nothing", request("GET", "Upgrade:\r\n"), null],
    ["another method", request("PUT", `Upgrade: tcp\r\n${POST}`), null],
    ["without the option of Connection", "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: tcp\r\n\r\n", null],
    ["HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n", null],
  ])("%s", async (_, text, upgrade) => {
    const { client, origin, head } = await scene.knock(text);
    peers.push(client, origin);
    const sent = /^upgrade: (.*)\r$/im.exec(head)?.[1] ?? null;
    expect(sent).toBe(upgrade);
    expect(/^http2-settings:/im.test(head)).toBe(false);
    origin.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    expect(await client.head()).toStartWith("HTTP/1.1 200 ");
  });

  test("none on a route without upgrades", async () => {
    const closed = await startScene({ ...ENGINE, route: { websocket: false } });
    const { client, origin, head } = await closed.knock(request("GET", "Upgrade: tcp\r\n"));
    expect(head.toLowerCase()).not.toContain("upgrade:");
    origin.write(switching("tcp"));
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    await closed.stop();
  });

  test("only those of the route's upgrade_protocols, in any case", async () => {
    const docker = await startScene({ ...ENGINE, route: { upgrade_protocols: ["TCP"] } });
    const passed = await docker.knock(request("GET", "Upgrade: foo/2, tcp\r\n"));
    expect(passed.head).toContain("Upgrade: tcp\r\n");
    // The target may not choose another one.
    passed.origin.write(switching("foo/2"));
    expect(await passed.client.head()).toStartWith("HTTP/1.1 502 ");
    for (const barred of [request("GET", "Upgrade: foo\r\n"), handshake()]) {
      const { head, client, origin } = await docker.knock(barred);
      expect(head.toLowerCase()).not.toContain("upgrade:");
      origin.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      await client.head();
    }
    await docker.stop();
  });

  test("none on Bun's engine", async () => {
    const other = await startScene({ listener: { engine: "bun" } });
    const { head, client, origin } = await other.knock(request("GET", "Upgrade: tcp\r\n"));
    expect(head.toLowerCase()).not.toContain("upgrade:");
    origin.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    await client.head();
    await other.stop();
  });

  test("a plugin that denies the request denies the upgrade", async () => {
    const closed = await startScene({ ...ENGINE, plugins: [{ name: "key-auth" }] });
    const client = await Peer.client(closed.gateway.port);
    client.write(request("GET", "Upgrade: tcp\r\n"));
    expect(await client.head()).toStartWith("HTTP/1.1 401 ");
    expect(closed.target.connections).toBe(0);
    client.destroy();
    await closed.stop();
  });
});

describe("bytes", () => {
  test("pass both ways as they are, also those that look like frames or requests", async () => {
    const { client, origin } = await open();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    client.write(bytes);
    client.write("GET / HTTP/1.1\r\n\r\n");
    origin.write(bytes);
    await arrived(origin, `${bytes.toString("latin1")}GET / HTTP/1.1\r\n\r\n`);
    await arrived(client, bytes.toString("latin1"));
  });

  test("wait with their sender while the other end does not read", async () => {
    for (const side of ["client", "origin"] as const) {
      const ends = await open();
      const [from, to] =
        side === "client" ? [ends.client, ends.origin] : [ends.origin, ends.client];
      to.socket.pause();
      const before = to.receivedBytes;
      const piece = Buffer.alloc(1024 * 1024, 7);
      let taken = 0;
      for (let index = 0; index < 100; index++) from.socket.write(piece, () => taken++);
      let [last, since] = [-1, 0];
      await eventually(() => {
        since = taken === last ? since + 1 : 0;
        last = taken;
        return since >= 20;
      });
      expect(taken).toBeLessThan(48);
      to.socket.resume();
      await eventually(() => to.receivedBytes - before === 100 * piece.length);
    }
  });
});

describe("the end", () => {
  test.each(["client", "origin"] as const)(
    "FIN of the %s passes on, and the other direction goes on",
    async (side) => {
      const half = await startScene({ ...ENGINE, allowHalfOpen: true });
      const { client, origin } = await half.knock(request("GET", "Upgrade: tcp\r\n"));
      origin.write(switching("tcp"));
      await client.head();
      const [from, to] = side === "client" ? [client, origin] : [origin, client];
      from.socket.end("last words");
      await arrived(to, "last words");
      await to.ended();
      expect(half.openCount()).toBe(1);
      to.write("an answer");
      await arrived(from, "an answer");
      to.socket.end(" and more");
      await arrived(from, "an answer and more");
      await from.ended();
      await eventually(() => half.openCount() === 0);
      await half.stop();
    },
  );

  test.each(["client", "origin"] as const)("a reset of the %s ends the other end", async (side) => {
    const ends = await open();
    const [from, to] = side === "client" ? [ends.client, ends.origin] : [ends.origin, ends.client];
    from.socket.resetAndDestroy();
    await to.ended();
    await eventually(() => scene.openCount() === 0);
  });

  test("a change that removes the route ends it, after what came before", async () => {
    const own = await startScene({ ...ENGINE, webSocketTimeouts: { closingSeconds: 0.5 } });
    const { client, origin } = await own.knock(request("GET", "Upgrade: tcp\r\n"));
    origin.write(`${switching("tcp")}before`);
    await client.head();
    await arrived(client, "before");
    expect(own.openCount()).toBe(1);
    await own.gateway.apply({ removedRoutes: ["all"] });
    await Promise.all([client.ended(), origin.ended()]);
    await eventually(() => own.openCount() === 0);
    await own.stop();
  });

  test("the shutdown ends it", async () => {
    const own = await startScene(ENGINE);
    const { client, origin } = await own.knock(request("GET", "Upgrade: tcp\r\n"));
    origin.write(switching("tcp"));
    await client.head();
    const drained = own.gateway.drain(10_000);
    await Promise.all([client.ended(), origin.ended()]);
    expect(await drained).toBe(0);
    await own.stop();
  });

  test("a client that does not read is cut off after the write timeout", async () => {
    const own = await startScene({ ...ENGINE, service: { write_timeout: 1000 } });
    const { client, origin } = await own.knock(request("GET", "Upgrade: tcp\r\n"));
    origin.write(switching("tcp"));
    await client.head();
    client.socket.pause();
    for (let index = 0; index < 64; index++) origin.write(Buffer.alloc(1024 * 1024));
    await origin.ended();
    await eventually(() => own.openCount() === 0);
    await own.stop();
  });
});
