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

/** What is served is in place a moment before the list of sites says so. */
const says = (name: string, text: string) =>
  eventually(async () => (await problems(name)).includes(text));

const container = (name: string, labels: Record<string, string>) => ({
  name,
  ports: [origin.port ?? 0],
  labels,
});

/** Containers of one project, which may share hosts. */
const composed = (project: string, name: string, labels: Record<string, string>) =>
  container(name, {
    ...labels,
    "com.docker.compose.project": project,
    "com.docker.compose.service": name,
  });

test("Traefik: rules, priorities, and a middleware that another container defines", async () => {
  await follow({ plugins: ["transform"] });
  docker.run(
    composed("t", "api", {
      "traefik.enable": "true",
      "traefik.http.routers.api.rule": "Host(`t.test`) && PathPrefix(`/api`)",
      "traefik.http.routers.api.middlewares": "strip",
    }),
    composed("t", "shared", {
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
  expect(await problems("away")).toContain(
    "its target 10.9.8.7 is not the address of a container of its own",
  );
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

test("Traefik: priorities count over all containers, as does the length of rules", async () => {
  await follow({ plugins: ["transform"] });
  const added = (name: string, value: string) => ({
    [`traefik.http.middlewares.${name}.addprefix.prefix`]: value,
    [`traefik.http.routers.${name}.middlewares`]: name,
    "traefik.enable": "true",
  });
  docker.run(
    composed("p", "deep", {
      ...added("deep", "/deep"),
      "traefik.http.routers.deep.rule": "Host(`p.test`) && PathPrefix(`/api`)",
    }),
    composed("p", "whole", {
      ...added("whole", "/whole"),
      "traefik.http.routers.whole.rule": "Host(`p.test`)",
    }),
  );
  await eventually(async () => (await visit("p.test", "/x")) === "here /whole/x");
  expect(await visit("p.test", "/api")).toBe("here /deep/api");
  docker.change(
    "whole",
    {
      labels: {
        ...docker.containers.find(({ name }) => name === "whole")?.labels,
        "traefik.http.routers.whole.priority": "1000",
      },
    },
    "update",
  );
  await eventually(async () => (await visit("p.test", "/api")) === "here /whole/api");
  // The longer rule first, though the gateway would try the exact path of the shorter one.
  docker.run(
    composed("l", "long", {
      ...added("long", "/long"),
      "traefik.http.routers.long.rule": "Host(`l.test`) && HeaderRegexp(`X-Long`, `^[a-z]{1,20}$`)",
    }),
    composed("l", "short", {
      ...added("short", "/short"),
      "traefik.http.routers.short.rule": "Host(`l.test`) && Path(`/a`)",
    }),
  );
  await eventually(async () => (await visit("l.test", "/a")) === "here /short/a");
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/a`, {
    headers: { host: "l.test", "x-long": "abc" },
  });
  expect(await response.text()).toBe("here /long/a");
  for (const name of ["whole", "long", "short"]) expect(await problems(name)).toBe("");
  const routes: { name: string; priority: number }[] = await gateway.ok("GET", "/api/v1/routes");
  const priorityOf = (wanted: string) => routes.find(({ name }) => name === wanted)?.priority;
  expect(["deep", "whole", "long", "short"].map(priorityOf)).toEqual([0, 1, 1, 0]);
  docker.end("short");
  await eventually(async () => {
    const left: typeof routes = await gateway.ok("GET", "/api/v1/routes");
    return left.find(({ name }) => name === "long")?.priority === 0;
  });
});

test("Traefik: no priority takes the host of an older container, nor silently one with other labels", async () => {
  const traefik = (name: string, rule: string, priority: string) => ({
    "traefik.enable": "true",
    [`traefik.http.routers.${name}.rule`]: rule,
    [`traefik.http.routers.${name}.priority`]: priority,
  });
  await follow({ claim_seconds: 0 });
  docker.run(
    container("ours", { "sluice.enable": "true", "sluice.host": "ours.w.test" }),
    container("theirs", traefik("theirs", "Host(`theirs.w.test`)", "1")),
    composed("w", "thief", traefik("thief", "HostRegexp(`^.+\\.w\\.test$`)", "1000")),
    composed(
      "w",
      "low",
      traefik("low", "HostRegexp(`^.+\\.w\\.test$`) && PathPrefix(`/low`)", "-1"),
    ),
    composed("mix", "sub", {
      "sluice.enable": "true",
      "sluice.host": "mix.test",
      "sluice.path": "/sub",
    }),
    composed("mix", "part", traefik("part", "Host(`mix.test`) && PathPrefix(`/part`)", "1")),
    composed("mix", "mixed", traefik("mixed", "Host(`mix.test`)", "1000")),
  );
  await eventually(async () => (await visit("mix.test", "/x")) === "here /x");
  await eventually(async () =>
    (await problems("thief")).includes("would precede ours.w.test of container ours"),
  );
  expect(await visit("free.w.test")).toBe(404);
  expect(await visit("free.w.test", "/low")).toBe("here /low");
  await says("mixed", "it precedes all of container sub at mix.test");
  expect(await problems("low")).not.toContain("precede");
  // A newer one gives way to a wildcard that was there.
  docker.end("theirs");
  docker.end("ours");
  await eventually(async () => (await visit("free.w.test")) === "here /");
});

test("Traefik: a circuit breaker of labels needs a setting, as all plugins", async () => {
  await follow({ plugins: [] });
  docker.run(
    container("breaker", {
      "traefik.enable": "true",
      "traefik.http.routers.breaker.rule": "Host(`breaker.test`)",
      "traefik.http.routers.breaker.middlewares": "cb",
      "traefik.http.middlewares.cb.circuitbreaker.expression": "NetworkErrorRatio() > 0.30",
      "traefik.http.middlewares.cb.circuitbreaker.responsecode": "429",
    }),
  );
  await eventually(async () =>
    (await problems("breaker")).includes("it needs the plugin circuit-breaker"),
  );
  expect(await visit("breaker.test")).toBe(404);
  await follow({ plugins: ["circuit-breaker"] });
  await eventually(async () => (await visit("breaker.test", "/a")) === "here /a");
  const plugins: { name: string; config: object }[] = await gateway.ok("GET", "/api/v1/plugins");
  expect(plugins.find(({ name }) => name === "circuit-breaker")?.config).toMatchObject({
    error_ratio: 0.3,
    response: { status: 429 },
  });
});
