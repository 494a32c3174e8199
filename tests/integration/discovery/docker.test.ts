// Containers that become applications: from labels to traffic, against a scripted Docker API.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { DockerApi } from "../../support/docker-api.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let origin: Bun.Server<undefined>;
let second: Bun.Server<undefined>;
let docker: DockerApi;

beforeAll(async () => {
  const serve = (name: string) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => new Response(`${name} ${new URL(url).pathname}`),
    });
  [origin, second] = [serve("first"), serve("second")];
  gateway = await startGateway({ workers: 2 });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
  await second?.stop(true);
});

beforeEach(async () => {
  docker = new DockerApi();
  await follow({});
});
afterEach(async () => {
  await gateway.ok("PATCH", "/api/v1/settings", { discovery: { docker: null } });
  await eventually(async () => (await names("applications")).length === 0, {
    intervalMs: 250,
  });
  await docker.stop();
});

async function follow(rules: object, endpoint = docker.endpoint) {
  const discovery = { docker: { endpoint, ...rules } };
  await gateway.ok("PATCH", "/api/v1/settings", { discovery });
}

const names = async (collection: string): Promise<string[]> =>
  (await gateway.ok("GET", `/api/v1/${collection}`)).map(({ name }: { name: string }) => name);

async function visit(host: string, path = "/") {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    headers: { host },
  });
  const text = await response.text();
  return response.status === 200 ? text : response.status;
}

interface Source {
  readonly state: string;
  readonly problem: string | null;
  readonly found: number;
  readonly sites: readonly {
    readonly from: string;
    readonly served: boolean;
    readonly problems: readonly string[];
    readonly places: readonly string[];
  }[];
}
const source = async (): Promise<Source> => (await gateway.ok("GET", "/api/v1/discovery"))[0];
const problems = async () => (await source()).sites.flatMap((site) => site.problems);

const container = (name: string, labels: Record<string, string>, at = origin) => ({
  name,
  ports: [at.port ?? 0],
  labels: { "sluice.enable": "true", ...labels },
});

describe("a container with two labels", () => {
  test("is an application that is served, and gone when it ends", async () => {
    docker.run(container("whoami", { "sluice.host": "who.test" }));
    await eventually(async () => (await visit("who.test")) === "first /");
    const [application] = await gateway.ok("GET", "/api/v1/applications");
    expect([application.name, application.managed_by]).toEqual(["whoami", "docker"]);
    expect(application.routes[0].managed_by).toBe("docker");
    expect((await source()).sites).toMatchObject([
      { from: "container whoami", served: true, places: ["who.test"], problems: [] },
    ]);
    docker.end("whoami");
    await eventually(async () => (await visit("who.test")) === 404);
    expect(await names("services")).toEqual([]);
    expect(docker.asked.every((line) => line.startsWith("GET "))).toBeTrue();
  });

  test("is not served without sluice.enable, unless the settings say so", async () => {
    docker.run({
      ...container("quiet", { "sluice.host": "quiet.test" }),
      labels: { "sluice.host": "quiet.test" },
    });
    docker.run(container("loud", { "sluice.host": "loud.test" }));
    await eventually(async () => (await visit("loud.test")) === "first /");
    expect(await visit("quiet.test")).toBe(404);
    await follow({ expose_by_default: true });
    await eventually(async () => (await visit("quiet.test")) === "first /");
  });
});

describe("several containers", () => {
  test("of one service of compose are its targets; unhealthy ones get nothing", async () => {
    const compose = { "com.docker.compose.project": "media", "com.docker.compose.service": "web" };
    docker.run(
      { ...container("media-web-1", { "sluice.host": "web.test", ...compose }) },
      {
        ...container("media-web-2", { "sluice.host": "web.test", ...compose }, second),
        status: "Up 1 second (health: starting)",
      },
    );
    docker.change(
      "media-web-1",
      { labels: { ...docker.containers[0]?.labels, "sluice.port": "" } },
      "update",
    );
    docker.change(
      "media-web-1",
      { labels: { "sluice.enable": "true", "sluice.host": "web.test", ...compose } },
      "update",
    );
    await eventually(async () => (await visit("web.test")) === "first /");
    expect(await names("applications")).toEqual(["media-web"]);
    docker.change("media-web-2", { status: "Up 9 seconds (healthy)" }, "health_status: healthy");
    await eventually(async () => (await visit("web.test")) === "second /");
    docker.change(
      "media-web-1",
      { status: "Up 9 seconds (unhealthy)" },
      "health_status: unhealthy",
    );
    await eventually(async () => {
      const seen = await Promise.all(Array.from({ length: 8 }, () => visit("web.test")));
      return seen.every((text) => text === "second /");
    });
  });

  test("one that is being stopped gets no new requests, while it still runs", async () => {
    const compose = { "com.docker.compose.project": "p", "com.docker.compose.service": "stop" };
    docker.run(
      container("p-stop-1", { "sluice.host": "stop.test", ...compose }),
      container("p-stop-2", { "sluice.host": "stop.test", ...compose }, second),
    );
    const seen = () => Promise.all(Array.from({ length: 8 }, () => visit("stop.test")));
    await eventually(async () => new Set(await seen()).size === 2);
    docker.announce("kill", "p-stop-1");
    await eventually(async () => (await seen()).every((text) => text === "second /"));
    const targets: { weight: number }[] = await gateway.ok("GET", "/api/v1/targets");
    expect(targets.map(({ weight }) => weight).toSorted((a, b) => a - b)).toEqual([0, 100]);
  });

  test("that want the same place: the first one has it, and the other says so", async () => {
    await follow({ claim_seconds: 0 });
    docker.run(container("old", { "sluice.host": "same.test" }));
    docker.run(container("new", { "sluice.host": "same.test", "sluice.name": "new" }, second));
    await eventually(async () => (await problems()).length === 1);
    expect(await problems()).toEqual(["same.test is served already, by container old"]);
    expect(await visit("same.test")).toBe("first /");
    docker.end("old");
    await eventually(async () => (await visit("same.test")) === "second /");
  });
});

test("labels with numbers are several sites; a path can be stripped", async () => {
  docker.run(
    container("app", {
      "sluice.host": "app.test, www.app.test",
      "sluice.2.host": "other.test",
      "sluice.2.path": "/api",
      "sluice.2.strip_path": "true",
    }),
  );
  await eventually(async () => (await visit("other.test", "/api/users")) === "first /users");
  expect(await visit("www.app.test")).toBe("first /");
  expect(await visit("other.test", "/")).toBe(404);
  expect(await names("routes")).toEqual(expect.arrayContaining(["app", "app-2"]));
});

describe("what people made", () => {
  test("keeps its host and its name, and the container says why it is not served", async () => {
    const port = second.port;
    await gateway.ok("POST", "/api/v1/applications", {
      name: "mine",
      domains: ["mine.test"],
      upstream: `http://127.0.0.1:${port}`,
      https: { mode: "off" },
    });
    docker.run(container("thief", { "sluice.host": "mine.test" }));
    docker.run(container("mine", { "sluice.host": "elsewhere.test" }));
    await eventually(async () => (await problems()).length === 2);
    const said = (await problems()).toSorted();
    expect(said[0]).toContain('application "mine" exists already');
    expect(said[1]).toBe('mine.test is served by route "mine", which this source does not manage');
    expect(await visit("mine.test")).toBe("second /");
    await gateway.ok("DELETE", "/api/v1/applications/mine");
    await eventually(async () => (await visit("mine.test")) === "first /");
    await eventually(async () => (await visit("elsewhere.test")) === "first /");
  });

  test("keeps its host from wildcards of labels, also where its own route has a path only", async () => {
    await gateway.ok("POST", "/api/v1/services", {
      name: "narrow",
      targets: [{ host: "127.0.0.1", port: second.port }],
    });
    const paths = [{ type: "prefix", value: "/api" }];
    const route = { name: "narrow", hosts: ["shop.narrow.test"], paths, service_id: "narrow" };
    await gateway.ok("POST", "/api/v1/routes", route);
    docker.run(
      container("every", { "sluice.host": "*", "sluice.path": "/login" }),
      container("wide", { "sluice.host": "*.narrow.test", "sluice.path": "/login" }),
      container("fine", { "sluice.host": "*.other.test" }),
    );
    await eventually(async () => (await visit("a.other.test")) === "first /");
    await eventually(async () => (await problems()).length === 2);
    expect((await problems()).toSorted()).toEqual([
      "label sluice.host must name hosts: * would take those of others",
      'shop.narrow.test is served by route "narrow", which this source does not manage',
    ]);
    expect(await visit("shop.narrow.test", "/login")).toBe(404);
    await gateway.ok("DELETE", "/api/v1/services/narrow?cascade=1");
  });

  test("cannot change what is discovered: 409 names the source", async () => {
    docker.run(container("fixed", { "sluice.host": "fixed.test" }));
    await eventually(async () => (await visit("fixed.test")) === "first /");
    const tries: readonly [string, string, object?][] = [
      ["PATCH", "/api/v1/applications/fixed", { maintenance: true }],
      ["PATCH", "/api/v1/routes/fixed", { hosts: ["stolen.test"] }],
      ["DELETE", "/api/v1/services/fixed?cascade=1"],
      ["POST", "/api/v1/services/fixed/targets", { host: "127.0.0.1", port: 1 }],
      ["POST", "/api/v1/targets", { service_id: "fixed", host: "127.0.0.1", port: 1 }],
    ];
    for (const [method, path, body] of tries) {
      const response = await gateway.api(method, path, body);
      expect([path, response.status]).toEqual([path, 409]);
      expect((await response.json()).error).toContain("is managed by docker");
    }
    expect(await visit("fixed.test")).toBe("first /");
    // Deleted all the same, it is back with the next look.
    await gateway.ok("DELETE", "/api/v1/applications/fixed?force=1");
    await eventually(async () => (await visit("fixed.test")) === "first /");
  });

  test("that refers to a discovered route keeps it, switched off, while the container is away", async () => {
    docker.run(container("kept", { "sluice.host": "kept.test" }));
    await eventually(async () => (await visit("kept.test")) === "first /");
    const plugin = { name: "respond", route_id: "kept", config: { status: 418, body: "tea" } };
    await gateway.ok("POST", "/api/v1/plugins", plugin);
    expect(await visit("kept.test")).toBe(418);
    docker.end("kept");
    await eventually(async () => (await visit("kept.test")) === 404);
    expect((await gateway.ok("GET", "/api/v1/applications/kept")).enabled).toBeFalse();
    docker.run(container("kept", { "sluice.host": "kept.test" }));
    await eventually(async () => (await visit("kept.test")) === 418);
    const [own] = await gateway.ok("GET", "/api/v1/plugins");
    await gateway.ok("DELETE", `/api/v1/plugins/${own.id}`);
  });

  test("is exported and replaced without what is discovered", async () => {
    docker.run(container("found", { "sluice.host": "found.test" }));
    await eventually(async () => (await visit("found.test")) === "first /");
    const document = await gateway.ok("GET", "/api/v1/export?format=json");
    expect(document.applications).toEqual([]);
    expect(document.services).toEqual([]);
    await gateway.ok("POST", "/api/v1/import?mode=replace", document);
    expect(await visit("found.test")).toBe("first /");
  });

  test("can be restored to an earlier revision without harm to what is discovered", async () => {
    const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
    docker.run(container("later", { "sluice.host": "later.test" }));
    await eventually(async () => (await visit("later.test")) === "first /");
    await gateway.ok("POST", `/api/v1/revisions/${revision}/restore`);
    await eventually(async () => (await visit("later.test")) === "first /");
  });
});

describe("the settings", () => {
  test("decide which hosts, certificates and plugins labels may use", async () => {
    await follow({ host_suffixes: ["home.test"], plugins: ["compress"] });
    docker.run(
      container("inside", {
        "sluice.host": "a.home.test",
        "sluice.plugin.compress.enable": "true",
      }),
      container("outside", { "sluice.host": "bank.test" }),
      container("like", { "sluice.host": "evilhome.test" }),
      container("cors", { "sluice.host": "b.home.test", "sluice.plugin.cors.enable": "true" }),
      container("secure", { "sluice.host": "c.home.test", "sluice.https": "true" }),
      container("script", { "sluice.host": "d.home.test", "sluice.plugin.script.source": "x" }),
    );
    await eventually(async () => (await visit("a.home.test")) === "first /");
    expect((await gateway.ok("GET", "/api/v1/plugins"))[0]).toMatchObject({
      name: "compress",
      managed_by: "docker",
    });
    expect(await visit("c.home.test")).toBe("first /");
    await eventually(async () => (await problems()).length === 5);
    expect((await problems()).toSorted()).toEqual([
      "label sluice.plugin.cors.enable: the settings do not allow labels to use the plugin cors",
      "label sluice.plugin.script.source: labels cannot use the plugin script, which writes files or runs code",
      "no certificate for c.home.test: the settings list no domain for certificates that it is below",
      "the settings do not allow labels to use the host bank.test",
      "the settings do not allow labels to use the host evilhome.test",
    ]);
    for (const host of ["bank.test", "evilhome.test", "b.home.test", "d.home.test"])
      expect(await visit(host)).toBe(404);
  });

  test("refuse an endpoint that is no API of containers", async () => {
    const response = await gateway.api("PATCH", "/api/v1/settings", {
      discovery: { docker: { endpoint: "file:///etc/passwd" } },
    });
    expect([response.status, (await response.json()).error]).toEqual([
      400,
      expect.stringContaining("discovery.docker.endpoint: must be unix:///var/run/docker.sock"),
    ]);
  });
});

describe("bad input", () => {
  test("is a sentence each, and everything else goes on", async () => {
    docker.run(
      container("typo", { "sluice.hots": "typo.test" }),
      container("port", { "sluice.host": "port.test", "sluice.port": "99999" }),
      container("host", { "sluice.host": "not a host" }),
      { ...container("many", { "sluice.host": "many.test" }), ports: [80, 81] },
      { ...container("none", { "sluice.host": "none.test" }), address: null },
      container("good", { "sluice.host": "good.test" }),
    );
    await eventually(async () => (await visit("good.test")) === "first /");
    await eventually(async () => (await source()).sites.length === 6);
    const { sites } = await source();
    const said = (name: string) =>
      sites.find(({ from }) => from === `container ${name}`)?.problems.join(" | ") ?? "";
    expect(said("typo")).toContain("label sluice.hots is not known");
    expect(said("port")).toBe("label sluice.port must be a port, 1 to 65535");
    expect(said("host")).toContain("must be a host name");
    expect(said("many")).toContain(
      "it exposes the ports 80, 81: choose one by the label sluice.port",
    );
    expect(said("none")).toContain("shares no network with it, and no port is published");
    expect(said("good")).toBe("");
  });

  test("a published port is used where no network is shared", async () => {
    const port = origin.port ?? 0;
    docker.run({
      ...container("published", { "sluice.host": "published.test" }),
      ports: [8080],
      address: null,
      published: { 8080: port },
    });
    await eventually(async () => (await visit("published.test")) === "first /");
  });
});

describe("the API", () => {
  test("that breaks off is followed again, and what is served stays", async () => {
    docker.run(container("stays", { "sluice.host": "stays.test" }));
    await eventually(async () => (await visit("stays.test")) === "first /");
    docker.failure = 500;
    docker.breakOff();
    await eventually(async () => (await source()).problem?.includes("status 500") ?? false);
    expect(await visit("stays.test")).toBe("first /");
    docker.failure = null;
    docker.run(container("missed", { "sluice.host": "missed.test" }));
    await eventually(async () => (await visit("missed.test")) === "first /");
    await eventually(async () => (await source()).state === "connected");
  });

  test("that is not there, or refuses, is a sentence", async () => {
    await follow({}, "unix:///nowhere/docker.sock");
    await eventually(async () => (await source()).state === "failed");
    expect((await source()).problem).toContain("there is no socket /nowhere/docker.sock");
    docker.failure = 403;
    await follow({});
    await eventually(
      async () =>
        (await source()).problem?.includes("the proxy in front of the socket must allow") ?? false,
    );
  });

  test("with 1,000 containers at the start is one change", async () => {
    await follow({ endpoint: null });
    const before = (await gateway.ok("GET", "/api/v1/admin/status")).revision;
    docker.run(
      ...Array.from({ length: 1000 }, (_, index) =>
        container(`c${index}`, { "sluice.host": `c${index}.test` }),
      ),
    );
    const began = performance.now();
    await follow({});
    await eventually(async () => (await visit("c999.test")) === "first /");
    console.log(`1,000 containers: ${Math.round(performance.now() - began)} ms`);
    expect((await gateway.ok("GET", "/api/v1/admin/status")).revision).toBe(before + 2);
    expect(await visit("c0.test")).toBe("first /");
    const second = performance.now();
    docker.run(container("late", { "sluice.host": "late.test" }));
    await eventually(async () => (await visit("late.test")) === "first /");
    console.log(`one more: ${Math.round(performance.now() - second)} ms`);
  });
});

test("a container that restarts again and again is one revision, and does not push out those of people", async () => {
  await gateway.ok("POST", "/api/v1/services", { name: "person" });
  for (let round = 0; round < 6; round++) {
    docker.run(container("flapping", { "sluice.host": "flapping.test" }));
    await eventually(async () => (await visit("flapping.test")) === "first /");
    docker.end("flapping");
    await eventually(async () => (await visit("flapping.test")) === 404);
  }
  const revisions: { number: number; actor: string; summary: string }[] = await gateway.ok(
    "GET",
    "/api/v1/revisions",
  );
  const last = revisions.toSorted((a, b) => b.number - a.number);
  expect(last[0]?.actor).toBe("discovery:docker");
  expect(last[1]?.summary).toBe('create service "person"');
  await gateway.ok("DELETE", "/api/v1/services/person");
});
