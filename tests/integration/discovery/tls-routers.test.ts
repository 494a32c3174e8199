// TCP routers of Traefik's labels: TLS passthrough by server name, at ports that exist already.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { connect, createServer, type Server } from "node:tls";
import { selfSigned } from "../../support/certificate.ts";
import { freePort } from "../../support/data-plane.ts";
import { DockerApi } from "../../support/docker-api.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let docker: DockerApi;
const origins: Server[] = [];

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) server.close();
  await docker?.stop();
});
beforeEach(async () => {
  await docker?.stop();
  docker = new DockerApi();
  await follow({});
});

const follow = (rules: object) =>
  gateway.ok("PATCH", "/api/v1/settings", {
    discovery: {
      docker: {
        endpoint: docker.endpoint,
        labels: ["sluice", "traefik"],
        host_suffixes: [],
        ...rules,
      },
    },
  });

/** A TLS server of a container, which says its name; returns its port. */
async function origin(name: string): Promise<number> {
  const server = createServer(await selfSigned(name), (socket) => {
    socket.on("error", () => {});
    socket.write(name);
    socket.on("data", (bytes: Buffer) => socket.write(bytes));
  });
  origins.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return (server.address() as { port: number }).port;
}

/** What a client gets that asks for this server name; null: no connection. */
const greeting = (servername: string, port = gateway.httpsPort): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
    socket.on("data", (bytes: Buffer) => {
      resolve(String(bytes).trim());
      socket.destroy();
    });
    // An HTTP server waits for a request.
    socket.on("secureConnect", () => socket.write("\n\n"));
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(null));
  });

const container = (name: string, port: number, labels: Record<string, string>) => ({
  name,
  ports: [port],
  labels: { "traefik.enable": "true", ...labels },
});

const router = (name: string, host: string, more: Record<string, string> = {}) => ({
  [`traefik.tcp.routers.${name}.rule`]: `HostSNI(\`${host}\`)`,
  [`traefik.tcp.routers.${name}.entrypoints`]: "websecure",
  [`traefik.tcp.routers.${name}.tls.passthrough`]: "true",
  ...more,
});

const streams = () => gateway.ok("GET", "/api/v1/stream-routes");

async function problems(name: string): Promise<string> {
  const [{ sites }] = await gateway.ok("GET", "/api/v1/discovery");
  const own = sites.filter(({ from }: { from: string }) => from === `container ${name}`);
  return own.flatMap((site: { problems: string[] }) => site.problems).join(" | ");
}

/** What is served is in place a moment before the list of sites says so. */
const says = (name: string, text: string) =>
  eventually(async () => (await problems(name)).includes(text));

test("passthrough at the HTTPS listener, managed, and gone with its container; connections drain", async () => {
  const port = await origin("db.test");
  docker.run(
    container("db", port, {
      ...router("db", "DB.test"),
      "traefik.tcp.services.db.loadbalancer.server.port": String(port),
    }),
  );
  await eventually(async () => (await greeting("db.test")) === "db.test");
  const [stream] = await streams();
  expect(stream).toMatchObject({
    listen_port: gateway.httpsPort,
    tls_mode: "passthrough",
    sni: ["db.test"],
    enabled: true,
    managed_by: "docker",
  });
  expect(await problems("db")).toBe("");
  const changed = await gateway.api("PATCH", `/api/v1/stream-routes/${stream.id}`, { sni: [] });
  expect(changed.status).toBe(409);
  expect(await greeting("other.test")).not.toBe("db.test");

  const lasting = connect({
    port: gateway.httpsPort,
    host: "127.0.0.1",
    servername: "db.test",
    rejectUnauthorized: false,
  });
  const received: string[] = [];
  lasting.on("data", (bytes: Buffer) => received.push(String(bytes)));
  lasting.on("error", () => {});
  await eventually(() => received.join("").includes("db.test"));
  docker.end("db");
  await eventually(async () => (await streams()).length === 0);
  expect(await greeting("db.test")).not.toBe("db.test");
  lasting.write("still here");
  await eventually(() => received.join("").includes("still here"));
  lasting.destroy();
});

test("a port of its own needs an admin: it is never opened, and the container says what to do", async () => {
  const port = await origin("own.test");
  const raw = { [`traefik.tcp.services.s.loadbalancer.server.port`]: String(port) };
  docker.run(
    container("any", port, { ...raw, ...router("any", "*") }),
    container("ended", port, {
      ...raw,
      ...router("ended", "ended.test", { "traefik.tcp.routers.ended.tls.passthrough": "false" }),
    }),
    container("elsewhere", port, {
      ...raw,
      ...router("pg", "own.test", { "traefik.tcp.routers.pg.entrypoints": "postgres" }),
    }),
    container("wild", port, { ...raw, ...router("wild", "*.test") }),
    container("nowhere", port, {
      ...raw,
      ...router("none", "no.test", { "traefik.tcp.routers.none.entrypoints": "" }),
    }),
    container("datagrams", port, {
      "traefik.udp.routers.dns.entrypoints": "dns",
      "traefik.udp.services.dns.loadbalancer.server.port": "53",
    }),
  );
  const own = "needs a port of its own, which labels cannot open";
  await eventually(async () => (await problems("datagrams")).includes("UDP routers need ports"));
  await says("any", own);
  await says("ended", own);
  await says("wild", own);
  await says("nowhere", "add the label entrypoints");
  await says("elsewhere", "add an HTTPS listener with the name postgres");
  expect(await streams()).toEqual([]);

  // The admin makes it.
  const listen = freePort();
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "postgres",
    address: "127.0.0.1",
    port: listen,
    protocol: "https",
  });
  await eventually(async () => (await greeting("own.test", listen)) === "own.test");
  await gateway.ok("DELETE", "/api/v1/listeners/postgres");
  await eventually(async () => (await streams()).length === 0);
});

test("an entry point may be a stream route that an admin has made, but not one of labels", async () => {
  const [port, admins] = [await origin("mine.test"), await origin("admin.test")];
  const listen = freePort();
  await gateway.ok("POST", "/api/v1/services", {
    name: "admins",
    protocol: "tcp",
    targets: [{ host: "127.0.0.1", port: admins }],
  });
  await gateway.ok("POST", "/api/v1/stream-routes", {
    name: "mqtts",
    listen_address: "127.0.0.1",
    listen_port: listen,
    tls_mode: "passthrough",
    sni: ["admin.test"],
    service_id: "admins",
  });
  const at = (name: string) => ({ [`traefik.tcp.routers.${name}.entrypoints`]: "mqtts" });
  docker.run(
    container("mine", port, router("mine", "mine.test", at("mine"))),
    container("thief", port, router("thief", "admin.test", at("thief"))),
  );
  await eventually(async () => (await greeting("mine.test", listen)) === "mine.test");
  expect(await greeting("admin.test", listen)).toBe("admin.test");
  await says("thief", 'admin.test is served by stream route "mqtts"');
  await gateway.ok("DELETE", "/api/v1/stream-routes/mqtts");
  // Its object had the port for a moment, and does not keep it open.
  await eventually(async () => (await streams()).length === 0);
  docker.run(
    container(
      "named",
      port,
      router("x", "x.test", { "traefik.tcp.routers.x.entrypoints": "tcp-mine-1" }),
    ),
  );
  await eventually(async () => (await problems("named")).includes("labels open no ports"));
});

test("the server name of a host that is served already is lost, and reported", async () => {
  const port = await origin("thief");
  await gateway.ok("POST", "/api/v1/routes", {
    name: "shop",
    hosts: ["shop.test"],
    maintenance: {},
  });
  docker.run(
    container("web", port, {
      "traefik.http.routers.web.rule": "Host(`web.test`) && PathPrefix(`/app`)",
      "traefik.http.services.web.loadbalancer.server.port": String(port),
    }),
    container("of-person", port, router("p", "shop.test")),
    container("of-container", port, router("c", "web.test")),
    container("first", port, router("f", "twice.test")),
    container("second", port, router("s", "twice.test")),
    container("plain", port, {
      "traefik.http.routers.plain.rule": "Host(`twice.test`) && PathPrefix(`/x`)",
    }),
    container("mixed", port, {
      ...router("mixed", "Mixed.test"),
      "traefik.http.routers.mixed.rule": "Host(`mixed.test`)",
      "traefik.http.routers.mixed.entrypoints": "web",
    }),
  );
  await eventually(async () => (await greeting("mixed.test")) === "thief");
  await says("of-person", 'shop.test is served by route "shop"');
  await says("of-container", "is served already, by container web");
  await says("second", "is served already, by container first");
  await says("plain", "is served already, by container first");
  expect(await greeting("shop.test")).not.toBe("thief");
  expect(await greeting("web.test")).not.toBe("thief");
  // A person takes a name later.
  await gateway.ok("POST", "/api/v1/routes", {
    name: "late",
    hosts: ["mixed.test"],
    maintenance: {},
  });
  await eventually(async () => (await greeting("mixed.test")) !== "thief");
  await eventually(async () => (await problems("mixed")).includes('by route "late"'));
});

test("only allowed hosts, only the container itself, and never without its protection", async () => {
  await follow({ host_suffixes: ["home.test"] });
  const port = await origin("here");
  const allow = "traefik.tcp.middlewares.lan.ipallowlist.sourcerange";
  docker.run(
    container("foreign", port, router("f", "bank.test")),
    container("suffix", port, router("s", "evilhome.test")),
    container("away", port, {
      ...router("a", "away.home.test"),
      "traefik.tcp.services.a.loadbalancer.servers[0].address": "10.9.8.7:22",
    }),
    container("management", port, {
      ...router("m", "m.home.test"),
      "traefik.tcp.services.m.loadbalancer.server.port": new URL(gateway.admin).port,
    }),
    container("list", port, {
      ...router("l", "list.home.test", { "traefik.tcp.routers.l.middlewares": "lan" }),
      [allow]: "10.0.0.0/8",
    }),
    container("unknown", port, {
      ...router("u", "unknown.home.test", { "traefik.tcp.routers.u.middlewares": "nowhere" }),
    }),
    container("good", port, router("g", "good.home.test")),
  );
  await eventually(async () => (await greeting("good.home.test")) === "here");
  await says("foreign", "do not allow labels to use the host bank.test");
  await says("suffix", "do not allow labels to use the host evilhome.test");
  await says("away", "10.9.8.7 is not the address of a container");
  await says("management", "management");
  await says("unknown", "is disabled until you set up another protection");
  for (const name of ["m", "list", "unknown", "away"])
    expect(await greeting(`${name}.home.test`)).not.toBe("here");
  const found: { sni: string[]; allow: string[]; enabled: boolean }[] = await streams();
  expect(found.find(({ sni }) => sni.includes("list.home.test"))?.allow).toEqual(["10.0.0.0/8"]);
});
