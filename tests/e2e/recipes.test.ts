// Runs the commands of docs/recipes.md, and then checks what each application requires of a proxy, with stand-ins.
import { expect } from "bun:test";
import type { Server, ServerWebSocket } from "bun";
import { curl } from "../support/curl.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { followRecipe, type RecipeGateway, startRecipeGateway } from "../support/recipes.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "curl");

/** Where an application listens according to the page, and its section of the page. */
const places = {
  cloud: { section: "Nextcloud", upstream: "http://10.0.0.11:8080" },
  home: { section: "Home Assistant", upstream: "http://10.0.0.12:8123" },
  films: { section: "Jellyfin", upstream: "http://10.0.0.13:8096" },
  photos: { section: "Immich", upstream: "http://10.0.0.14:2283" },
  grafana: { section: "Grafana", upstream: "http://10.0.0.15:3000" },
  git: { section: "Gitea, with SSH", upstream: "http://10.0.0.16:3000" },
} as const;
type Name = keyof typeof places;
const names = Object.keys(places) as Name[];

const UPLOAD_BYTES = 48 * 1024 * 1024;
const FILM_BYTES = 8 * 1024 * 1024;

const origins = new Map<Name, Server<unknown>>();
let scene: RecipeGateway;
let gateway: Gateway;
let ssh: Bun.TCPSocketListener<{ heard: string }>;
let sshHeard = "";
const sshPort = quietPort();

beforeAll(async () => {
  for (const name of names) origins.set(name, startOrigin(name));
  ssh = startSsh();
  scene = await startRecipeGateway();
  ({ gateway } = scene);
});
afterAll(async () => {
  await gateway?.stop();
  for (const origin of origins.values()) await origin.stop(true);
  ssh?.stop(true);
});

/** Addresses of the page, and their replacements here. */
const follow = (name: Name) => {
  const { section, upstream } = places[name];
  const origin = { [upstream]: `http://127.0.0.1:${origins.get(name)?.port}` };
  const streams = {
    '"host": "10.0.0.16", "port": 22 ': `"host": "127.0.0.1", "port": ${ssh.port} `,
    '"listen_port": 2222': `"listen_port": ${sshPort}`,
  };
  return followRecipe(section, scene, name === "git" ? { ...origin, ...streams } : origin);
};

/** An application that rejects requests with wrong proxy headers. */
function startOrigin(name: Name): Server<unknown> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 4 * UPLOAD_BYTES,
    async fetch(request, server) {
      const problem = distrust(request);
      if (problem !== null) return new Response(problem, { status: 400 });
      if (request.headers.get("upgrade") === "websocket")
        return server.upgrade(request, { data: null })
          ? undefined
          : new Response("no", { status: 400 });
      return await answer(request);
    },
    websocket: {
      message: (socket: ServerWebSocket<unknown>, message) => void socket.send(message),
    },
  });

  /** As Home Assistant, the strictest of them, checks it: one header each, without the values that the client sent. */
  function distrust({ headers }: Request): string | null {
    const expected = { "x-forwarded-for": "127.0.0.1", host: `${name}.example.com` };
    for (const [field, value] of Object.entries(expected)) {
      const found = headers.get(field)?.replace(/:\d+$/, "");
      if (found !== value) return `${field} is ${found} and not ${value}`;
    }
    if (headers.get("x-forwarded-proto") !== "https") return "the scheme is not https";
    if (
      headers.get("x-forwarded-host")?.replace(/:\d+$/, "") !==
      headers.get("host")?.replace(/:\d+$/, "")
    )
      return "X-Forwarded-Host is not the Host";
    const origin = headers.get("origin");
    if (origin !== null && new URL(origin).host !== headers.get("host"))
      return "origin not allowed";
    return null;
  }
}

async function answer(request: Request): Promise<Response> {
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  if (range !== null) {
    const [from, to] = [Number(range[1]), Number(range[2])];
    return new Response(new Uint8Array(to - from + 1).fill(7), {
      status: 206,
      headers: { "content-range": `bytes ${from}-${to}/${FILM_BYTES}`, "accept-ranges": "bytes" },
    });
  }
  let bytes = 0;
  if (request.body !== null) for await (const chunk of request.body) bytes += chunk.length;
  return Response.json(
    { method: request.method, bytes, path: new URL(request.url).pathname },
    { status: request.method === "PROPFIND" ? 207 : 200 },
  );
}

/** An SSH server's greeting, after the PROXY header that Gitea is configured to expect. */
function startSsh() {
  return Bun.listen<{ heard: string }>({
    hostname: "127.0.0.1",
    port: 0,
    data: { heard: "" },
    socket: {
      open(socket) {
        socket.data = { heard: "" };
      },
      data(socket, bytes) {
        const before = socket.data.heard;
        socket.data.heard += bytes.toString("latin1");
        sshHeard = socket.data.heard;
        const isNamed = /^PROXY TCP4 [^\r]+\r\n/.test(sshHeard);
        if (isNamed && !/^PROXY [^\r]+\r\n/.test(before)) socket.write("SSH-2.0-Go\r\n");
        if (!sshHeard.startsWith("PROXY".slice(0, sshHeard.length))) socket.end();
      },
    },
  });
}

/** As a client with a spoofed address does. */
const visit = (name: Name, path: string, args: readonly string[] = []) =>
  curl(`https://${name}.example.com:${gateway.httpsPort}${path}`, [
    ...["--resolve", `${name}.example.com:${gateway.httpsPort}:127.0.0.1`],
    ...["-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Forwarded-Proto: http"],
    ...args,
  ]);

/** Sends a message over a WebSocket and returns the reply. */
function echo(name: Name, path: string): Promise<string> {
  const host = `${name}.example.com:${gateway.httpsPort}`;
  const socket = new WebSocket(`wss://127.0.0.1:${gateway.httpsPort}${path}`, {
    headers: { host, origin: `https://${host}` },
    tls: { rejectUnauthorized: false },
  } as never);
  return new Promise((done, failed) => {
    socket.onopen = () => socket.send("are you there?");
    socket.onmessage = ({ data }) => {
      done(String(data));
      socket.close();
    };
    socket.onerror = () => failed(new Error(`no WebSocket at ${path}`));
  });
}

const upload = (name: Name, path: string, args: readonly string[] = []) => {
  const child = `head -c ${UPLOAD_BYTES} /dev/zero | curl -q -sSk --max-time 60 --resolve ${name}.example.com:${gateway.httpsPort}:127.0.0.1 ${args.join(" ")} -T - https://${name}.example.com:${gateway.httpsPort}${path}`;
  return Bun.spawn(["sh", "-c", child], { stdout: "pipe" });
};

const serviceOf = async (name: string) => {
  const response = await gateway.api("GET", `/api/v1/services/${name}`, undefined, {
    authorization: `Bearer ${scene.token}`,
  });
  return (await response.json()) as Record<string, number>;
};

describe("the commands of the page make each application reachable", () => {
  test.each(names)("%s", async (name) => {
    await follow(name);
    const { status, body, header } = await visit(name, "/");
    expect([
      status,
      Buffer.from(body ?? [])
        .toString()
        .slice(0, 60),
    ]).toEqual([200, '{"method":"GET","bytes":0,"path":"/"}']);
    expect(header("strict-transport-security")).toBeNull();
  });
});

test("the timeouts are those of the page", async () => {
  expect(await serviceOf("cloud")).toMatchObject({ response_timeout: 3_600_000 });
  expect(await serviceOf("photos")).toMatchObject({ write_timeout: 600_000 });
  expect(await serviceOf("home")).toMatchObject({ read_timeout: 3_600_000 });
});

test.each([
  ["home", "/api/websocket"],
  ["films", "/socket"],
  ["photos", "/api/socket.io/?EIO=4&transport=websocket"],
  ["grafana", "/api/live/ws"],
] as const)("%s has its WebSocket at %s", async (name, path) => {
  expect(await echo(name, path)).toBe("are you there?");
});

test.each([
  ["cloud", "/remote.php/dav/uploads/you/1/00001"],
  ["photos", "/api/assets"],
  ["git", "/you/project.git/git-receive-pack"],
] as const)("%s accepts a long upload of unknown length at %s", async (name, path) => {
  const child = upload(name, path);
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual({
    method: "PUT",
    bytes: UPLOAD_BYTES,
    path,
  });
});

test.each(["PROPFIND", "MKCOL", "MOVE", "REPORT", "PROPPATCH", "LOCK", "SEARCH"])(
  "the WebDAV method %s reaches Nextcloud",
  async (method) => {
    const { status, text } = await visit("cloud", "/remote.php/dav/files/you", ["-X", method]);
    expect(status).toBe(method === "PROPFIND" ? 207 : 200);
    expect(JSON.parse(text()).method).toBe(method);
  },
);

test.each(["caldav", "carddav"])("Nextcloud's %s is found", async (service) => {
  const { status, header } = await visit("cloud", `/.well-known/${service}`);
  expect([status, header("location")]).toEqual([301, "https://cloud.example.com/remote.php/dav/"]);
});

test("a range of a film is returned as requested", async () => {
  const { status, size, header } = await visit("films", "/Videos/1/stream.mkv", [
    ...["-H", "Range: bytes=1000-4000999"],
  ]);
  expect([status, size, header("content-range")]).toEqual([
    206,
    4_000_000,
    `bytes 1000-4000999/${FILM_BYTES}`,
  ]);
});

test("a page of another site may not open Grafana's WebSocket", async () => {
  const { status } = await visit("grafana", "/api/live/ws", [
    "-H",
    "Origin: https://evil.example.com",
  ]);
  expect(status).toBe(400);
});

test("SSH works, and Gitea gets the client's address", async () => {
  let heard = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: sshPort,
    socket: {
      data: (_socket, bytes) => {
        heard += bytes.toString("latin1");
      },
    },
  });
  socket.write("SSH-2.0-OpenSSH_9.2\r\n");
  await eventually(() => heard === "SSH-2.0-Go\r\n");
  await eventually(() => sshHeard.endsWith("SSH-2.0-OpenSSH_9.2\r\n"));
  expect(sshHeard).toMatch(/^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\nSSH-2\.0-OpenSSH/);
  socket.end();
});
