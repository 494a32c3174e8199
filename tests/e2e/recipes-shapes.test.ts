// Recipes of applications that neither Debian nor npm has: stand-ins that reject what these reject, and accept what the page sets up.
import { expect } from "bun:test";
import { selfSigned } from "../support/certificate.ts";
import { needs } from "../support/needs.ts";
import { messageOf, visit, webSocket } from "../support/public-names.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "curl");

interface Shape {
  readonly section: string;
  readonly upstream: string;
  readonly host: string;
  /** Of its WebSocket; null: it has none. */
  readonly socket: string | null;
  /** Why it rejects a request, as the application does; null: it accepts it. */
  readonly rejects: (request: Request) => string | null;
}

/** What the middleware of Django, and that of Go's csrf packages, compares. */
const rejectsForeignOrigin = ({ headers }: Request): string | null => {
  const own = `${headers.get("x-forwarded-proto")}://${headers.get("host")}`;
  const origin = headers.get("origin");
  return origin === null || origin === own ? null : `origin ${origin} is not ${own}`;
};

/** What login limits count by. */
const rejectsSpoofedClient = ({ headers }: Request): string | null =>
  headers.get("x-real-ip") === "127.0.0.1" && headers.get("x-forwarded-for") === "127.0.0.1"
    ? null
    : "the client's address is wrong";

const shapes: readonly Shape[] = [
  {
    section: "Vaultwarden",
    upstream: "http://10.0.0.24:8000",
    host: "vault.example.com",
    socket: "/notifications/hub",
    rejects: rejectsSpoofedClient,
  },
  {
    section: "Paperless-ngx",
    upstream: "http://10.0.0.25:8000",
    host: "paperless.example.com",
    socket: "/ws/status/",
    rejects: rejectsForeignOrigin,
  },
  {
    section: "Proxmox VE",
    upstream: "https://10.0.0.26:8006",
    host: "pve.example.com",
    socket: "/api2/json/nodes/pve/qemu/100/vncwebsocket?port=5900",
    rejects: () => null,
  },
  {
    section: "Portainer",
    upstream: "http://10.0.0.27:9000",
    host: "portainer.example.com",
    socket: "/api/websocket/exec?id=1",
    rejects: rejectsForeignOrigin,
  },
  {
    section: "Uptime Kuma",
    upstream: "http://10.0.0.28:3001",
    host: "status.example.com",
    socket: "/socket.io/?EIO=4&transport=websocket",
    rejects: rejectsForeignOrigin,
  },
  {
    section: "Pi-hole",
    upstream: "http://10.0.0.29:80",
    host: "pihole.example.com",
    socket: null,
    rejects: ({ url }) => (new URL(url).pathname === "/" ? "there is nothing here" : null),
  },
  {
    section: "AdGuard Home",
    upstream: "http://10.0.0.30:3000",
    host: "dns.example.com",
    socket: null,
    rejects: rejectsSpoofedClient,
  },
  {
    section: "Plex",
    upstream: "http://10.0.0.31:32400",
    host: "plex.example.com",
    socket: "/:/websockets/notifications",
    rejects: rejectsSpoofedClient,
  },
];

/** As applications set it at the login: nothing of it may change on the way. */
const COOKIES = [
  "session=a.b-c; Path=/login/; HttpOnly; Secure; SameSite=Lax",
  "other=1; Path=/; Domain=10.0.0.1; SameSite=None; Secure; Partitioned",
];

const origins = new Map<string, Bun.Server<undefined>>();
let scene: RecipeGateway;

beforeAll(async () => {
  const tls = await selfSigned("pve.local");
  scene = await startRecipeGateway();
  for (const shape of shapes) {
    const isSecure = shape.upstream.startsWith("https:");
    origins.set(shape.section, startOrigin(shape, isSecure ? tls : null));
    const { port } = origins.get(shape.section) ?? {};
    const here = `http${isSecure ? "s" : ""}://127.0.0.1:${port}`;
    await followRecipe(shape.section, scene, { [shape.upstream]: here });
  }
});
afterAll(async () => {
  await scene?.gateway.stop();
  for (const origin of origins.values()) await origin.stop(true);
});

function startOrigin(shape: Shape, tls: { cert: string; key: string } | null) {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls === null ? {} : { tls }),
    async fetch(request, server) {
      const problem = shape.rejects(request);
      if (problem !== null) return new Response(problem, { status: 403 });
      const { pathname, search } = new URL(request.url);
      if (request.headers.has("upgrade"))
        return pathname + search === shape.socket && server.upgrade(request)
          ? undefined
          : new Response("no", { status: 400 });
      if (pathname === "/login") {
        const headers = new Headers({
          location: `${server.url.protocol}//127.0.0.1:${server.port}/in`,
        });
        for (const cookie of COOKIES) headers.append("set-cookie", cookie);
        return new Response(null, { status: 303, headers });
      }
      const body = await request.text();
      return Response.json({
        path: pathname,
        host: request.headers.get("host"),
        bytes: body.length,
      });
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  });
}

/** As a client does that names another address of its own. */
const ask = (url: string, args: readonly string[] = []) =>
  visit(scene.gateway, url, [
    ...["-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Real-IP: 203.0.113.9"],
    ...args,
  ]);

describe.each(shapes.map((shape) => [shape.section, shape] as const))(
  "%s",
  (_section, { host }) => {
    test("accepts a form of its own pages", async () => {
      const { status, text } = await ask(`https://${host}/form`, [
        ...["-H", `Origin: https://${host}`, "--data", "x".repeat(1000)],
      ]);
      expect([status, JSON.parse(text())]).toEqual([200, { path: "/form", host, bytes: 1000 }]);
    });

    test("keeps its login cookies, and redirects to its public name", async () => {
      const { status, headers, header } = await ask(`https://${host}/login`, ["--data", "a=b"]);
      expect([status, header("location")]).toEqual([303, `https://${host}/in`]);
      const cookies = headers.filter(([name]) => name === "set-cookie");
      expect(cookies.map(([, value]) => value)).toEqual(COOKIES);
    });
  },
);

test.each(
  shapes.flatMap(({ section, host, socket }) =>
    socket === null ? [] : [[section, host + socket]],
  ),
)("%s has its WebSocket at %s", async (_section, address) => {
  const open = await webSocket(scene.gateway, `wss://${address}`);
  const echoed = messageOf(open);
  open.send("are you there?");
  expect(await echoed).toBe("are you there?");
  open.close();
});

test.each(["Paperless-ngx", "Portainer", "Uptime Kuma"])(
  "%s still rejects pages of other sites",
  async (section) => {
    const host = shapes.find((shape) => shape.section === section)?.host;
    const { status } = await ask(`https://${host}/form`, [
      "-H",
      "Origin: https://evil.example.com",
    ]);
    expect(status).toBe(403);
  },
);

test("Proxmox VE is out of reach without the second command", async () => {
  const { gateway, token } = scene;
  const patch = async (verify: boolean) =>
    await gateway.api(
      "PATCH",
      "/api/v1/services/pve",
      { tls: { verify } },
      {
        authorization: `Bearer ${token}`,
      },
    );
  await patch(true);
  const { status, header } = await ask("https://pve.example.com/");
  expect([status, header("proxy-status")]).toEqual([
    502,
    expect.stringContaining("tls_certificate_error"),
  ]);
  await patch(false);
});

test("Pi-hole begins at /admin/", async () => {
  const { status, header } = await ask("https://pihole.example.com/");
  expect([status, header("location")]).toEqual([302, "/admin/"]);
  expect((await ask("https://pihole.example.com/admin/")).status).toBe(200);
});

test("AdGuard Home gets queries by DNS over HTTPS as they are", async () => {
  expect(blocksOf("AdGuard Home", "yaml")).toContain("trusted_proxies");
  const { status, text } = await ask("https://dns.example.com/dns-query", [
    ...["-H", "Content-Type: application/dns-message", "--data-binary", "0123456789ab"],
  ]);
  expect([status, JSON.parse(text()).bytes]).toEqual([200, 12]);
});

test("cookies stay as they are where the route strips a prefix", async () => {
  const { gateway, token } = scene;
  const made = await gateway.api(
    "POST",
    "/api/v1/routes",
    { hosts: ["sub.example.com"], paths: ["/vault"], strip_path: true, service_id: "vault" },
    { authorization: `Bearer ${token}` },
  );
  expect(made.status).toBe(200);
  const { status, headers, header } = await visit(
    scene.gateway,
    "http://sub.example.com/vault/login",
  );
  expect([status, header("location")]).toEqual([303, "http://sub.example.com/vault/in"]);
  const cookies = headers.filter(([name]) => name === "set-cookie");
  expect(cookies.map(([, value]) => value)).toEqual(COOKIES);
});
