// The targets of a soak and the configuration that leads to them; sends no request itself.
import { createServer, type Server, type Socket } from "node:net";
import type { Gateway } from "../support/gateway.ts";
import { quietPort } from "../support/quiet-port.ts";
import { freeUdpPort, type UdpTarget, udpTarget } from "../support/udp.ts";

export const LARGE_BYTES = 8_000_000;
const TEXT = "All work and no play makes a dull gateway. ".repeat(400);

export interface Scene {
  readonly gateway: Gateway;
  /** Of the listener that the clients of HTTP use. */
  readonly httpPort: number;
  /** Of a listener with the gateway's own engine. */
  readonly ownPort: number;
  readonly tcpPort: number;
  readonly udpPort: number;
  /** Of a consumer. */
  readonly key: string;
  /** Ends one of the two targets that share a service, or starts it again. */
  readonly flap: () => void;
  readonly stop: () => Promise<void>;
  /** Port of a target that is always there. */
  readonly originPort: number;
}

export async function setUp(gateway: Gateway): Promise<Scene> {
  const origin = serve(0);
  const flappingPort = quietPort();
  let flapping: ReturnType<typeof serve> | null = serve(flappingPort);
  const echo = await echoServer();
  const switching = await echoServer(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
  );
  const udp = await udpTarget();
  const [ownPort, tcpPort, udpPort] = [quietPort(), quietPort(), await freeUdpPort()];
  const key = await configure(gateway, {
    ownPort,
    tcpPort,
    udpPort,
    flappingPort,
    originPort: origin.port ?? 0,
    echoPort: echo.port,
    switchingPort: switching.port,
    udpTargetPort: udp.port,
  });
  return {
    gateway,
    httpPort: gateway.httpPort,
    ownPort,
    tcpPort,
    udpPort,
    key,
    originPort: origin.port ?? 0,
    flap: () => {
      if (flapping === null) flapping = serve(flappingPort);
      else {
        void flapping.stop(true);
        flapping = null;
      }
    },
    stop: async () => stopAll([origin, flapping], [echo.server, switching.server], udp),
  };
}

async function stopAll(
  servers: readonly (ReturnType<typeof serve> | null)[],
  echoes: readonly Server[],
  udp: UdpTarget,
): Promise<void> {
  for (const server of servers) await server?.stop(true);
  for (const echo of echoes) echo.close();
  udp.close();
}

/** Answers by path: a text, many bytes, the number of bytes that came, an echo over WebSocket. */
function serve(port: number) {
  return Bun.serve({
    hostname: "127.0.0.1",
    port,
    maxRequestBodySize: LARGE_BYTES * 2,
    async fetch(request, server) {
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/ws")) {
        if (server.upgrade(request, { data: undefined })) return undefined;
        return new Response("no upgrade", { status: 400 });
      }
      if (pathname.startsWith("/large")) return new Response(new Uint8Array(LARGE_BYTES));
      if (pathname.startsWith("/count")) {
        let bytes = 0;
        for await (const chunk of request.body ?? []) bytes += chunk.length;
        return new Response(String(bytes));
      }
      if (pathname.startsWith("/cached"))
        return new Response(TEXT, { headers: { "cache-control": "max-age=2" } });
      if (pathname.startsWith("/packed"))
        return new Response(TEXT, { headers: { "content-type": "text/plain" } });
      return new Response("plain");
    },
    websocket: {
      message: (socket, message) => {
        socket.send(message);
      },
    },
  });
}

/** Echoes bytes; with a head, those behind the request's head. */
async function echoServer(head = ""): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((socket: Socket) => {
    socket.on("error", () => socket.destroy());
    if (head === "") return void socket.pipe(socket);
    let request = "";
    socket.on("data", function answer(bytes: Buffer) {
      request += bytes.toString("latin1");
      const end = request.indexOf("\r\n\r\n");
      if (end < 0) return;
      socket.off("data", answer);
      socket.write(head + request.slice(end + 4), "latin1");
      socket.pipe(socket);
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return { server, port: (server.address() as { port: number }).port };
}

interface Ports {
  readonly originPort: number;
  readonly flappingPort: number;
  readonly echoPort: number;
  readonly switchingPort: number;
  readonly udpTargetPort: number;
  readonly ownPort: number;
  readonly tcpPort: number;
  readonly udpPort: number;
}

/** Returns the key of a consumer. */
async function configure(gateway: Gateway, ports: Ports): Promise<string> {
  const create = (collection: string, body: object) =>
    gateway.ok("POST", `/api/v1/${collection}`, body);
  const service = (name: string, targetPorts: readonly number[], more: object = {}) => {
    const targets = targetPorts.map((port) => ({ host: "127.0.0.1", port }));
    return create("services", { name, targets, ...more });
  };
  await service("main", [ports.originPort]);
  await service("flapping", [ports.originPort, ports.flappingPort]);
  await service("echo", [ports.echoPort], { protocol: "tcp" });
  await service("udp", [ports.udpTargetPort], { protocol: "udp" });
  for (const name of ["plain", "ws", "large", "count", "cached", "packed", "keyed", "limited"])
    await create("routes", { name, service_id: "main", paths: [`/${name}`] });
  await service("switching", [ports.switchingPort]);
  await create("routes", { name: "switching", service_id: "switching", paths: ["/switching"] });
  const own = { name: "own", address: "127.0.0.1", port: ports.ownPort, engine: "sluice" };
  await create("listeners", own);
  await create("routes", { name: "flapping", service_id: "flapping", paths: ["/flapping"] });
  const stream = { listen_address: "127.0.0.1" };
  await create("stream-routes", {
    ...stream,
    name: "tcp",
    listen_port: ports.tcpPort,
    service_id: "echo",
  });
  await create("stream-routes", {
    ...stream,
    name: "udp",
    listen_port: ports.udpPort,
    service_id: "udp",
    protocol: "udp",
    udp_session_timeout: 5,
  });
  const limits = [{ requests: 20, window: 1 }];
  await create("plugins", { name: "rate-limit", route_id: "limited", config: { limits } });
  // Full after two minutes, so that it does not grow in the second half.
  const cache = { max_total: 16_000_000 };
  await create("plugins", { name: "response-cache", route_id: "cached", config: cache });
  await create("plugins", { name: "compress", route_id: "packed", config: {} });
  await create("plugins", { name: "key-auth", route_id: "keyed", config: {} });
  await create("consumers", { username: "soak" });
  const { secret } = await create("consumers/soak/credentials", { type: "key" });
  return secret;
}
