// Containers with labels of Traefik and Caddy, and with variables of nginx-proxy: they move without a change of their compose files.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DockerApi } from "../../support/docker-api.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let origin: Bun.Server<undefined>;
let docker: DockerApi;

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(`here ${new URL(url).pathname}`),
  });
  docker = new DockerApi();
  gateway = await startGateway();
  await follow({});
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
  await docker?.stop();
});

const follow = (rules: object) =>
  gateway.ok("PATCH", "/api/v1/settings", {
    discovery: {
      docker: {
        endpoint: docker.endpoint,
        labels: ["sluice", "traefik", "caddy", "nginx-proxy"],
        ...rules,
      },
    },
  });

async function visit(host: string, path = "/") {
  const headers = { host };
  const url = `http://127.0.0.1:${gateway.httpPort}${path}`;
  const response = await fetch(url, { headers, redirect: "manual" });
  const text = await response.text();
  return response.status === 200 ? text : response.status;
}

const problems = async (name: string): Promise<string> => {
  const [{ sites }] = await gateway.ok("GET", "/api/v1/discovery");
  const own = sites.filter(({ from }: { from: string }) => from === `container ${name}`);
  return own.flatMap((site: { problems: string[] }) => site.problems).join(" | ");
};

const container = (name: string, labels: Record<string, string>) => ({
  name,
  ports: [origin.port ?? 0],
  labels,
});

test("Traefik: rules, priorities, and a middleware that another container defines", async () => {
  await follow({ plugins: ["transform"] });
  docker.run(
    container("api", {
      "traefik.enable": "true",
      "traefik.http.routers.api.rule": "Host(`t.test`) && PathPrefix(`/api`)",
      "traefik.http.routers.api.middlewares": "strip",
    }),
    container("shared", {
      "traefik.enable": "true",
      "traefik.http.routers.web.rule": "Host(`t.test`) || Host(`www.t.test`)",
      "traefik.http.middlewares.strip.stripprefix.prefixes": "/api",
    }),
    container("hidden", { "traefik.http.routers.hidden.rule": "Host(`hidden.test`)" }),
  );
  await eventually(async () => (await visit("t.test", "/api/users")) === "here /users");
  await eventually(async () => (await visit("www.t.test", "/x")) === "here /x");
  expect(await visit("hidden.test")).toBe(404);
  docker.end("api");
  await eventually(async () => (await visit("t.test", "/api/users")) === "here /api/users");
});

test("Traefik: a protection that the rules do not allow keeps the container unserved", async () => {
  docker.run(
    container("locked", {
      "traefik.enable": "true",
      "traefik.http.routers.locked.rule": "Host(`locked.test`)",
      "traefik.http.routers.locked.middlewares": "auth",
      "traefik.http.middlewares.auth.basicauth.users":
        "test:$2y$05$h2mp3yyZ9hOyRJyTTQsuPuqFxQMZzQmSx5pVlNkPHcYSjw4eIRHuG",
    }),
    container("unknown", {
      "traefik.enable": "true",
      "traefik.http.routers.unknown.rule": "Host(`unknown.test`)",
      "traefik.http.routers.unknown.middlewares": "nowhere",
    }),
    container("away", {
      "traefik.enable": "true",
      "traefik.http.routers.away.rule": "Host(`away.test`)",
      "traefik.http.services.away.loadbalancer.server.url": "http://10.9.8.7:81/",
    }),
  );
  await eventually(async () => (await problems("locked")) !== "");
  expect(await problems("locked")).toContain("it needs the plugin basic-auth");
  expect(await visit("locked.test")).toBe(404);
  await eventually(async () => (await problems("away")) !== "");
  expect(await problems("away")).toContain("its target 10.9.8.7 is not the address of a container");
  expect(await visit("away.test")).toBe(404);
  await eventually(async () => (await problems("unknown")) !== "");
  expect(await visit("unknown.test")).not.toBe("here /");
  await follow({ plugins: ["basic-auth"] });
  await eventually(async () => (await visit("locked.test")) === 401);
});

test("caddy-docker-proxy: hosts and the port of reverse_proxy", async () => {
  docker.run(
    container("caddy-site", {
      caddy: "http://c.test",
      "caddy.reverse_proxy": `{{upstreams ${origin.port}}}`,
    }),
  );
  await eventually(async () => (await visit("c.test", "/a")) === "here /a");
});

test("nginx-proxy: VIRTUAL_HOST in the environment", async () => {
  docker.run({
    ...container("nginx-site", {}),
    environment: { VIRTUAL_HOST: "n.test,m.test", VIRTUAL_PORT: String(origin.port) },
  });
  await eventually(async () => (await visit("n.test", "/a")) === "here /a");
  expect(await visit("m.test", "/b")).toBe("here /b");
  expect(docker.asked.some((line) => /containers\/[^/]+\/json$/.test(line))).toBeTrue();
});

test("no labels but those of the settings are read", async () => {
  await follow({ labels: ["sluice"] });
  await eventually(async () => (await visit("n.test")) === 404);
  expect(await visit("c.test")).toBe(404);
});
