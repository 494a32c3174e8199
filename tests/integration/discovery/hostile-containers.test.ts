// Containers that want what another one has: no order of arrival and no restart gives it to them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { DockerApi, type FakeContainer } from "../../support/docker-api.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let docker: DockerApi;
const serve = (name: string) =>
  Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(name) });
const [owner, thief] = [serve("owner"), serve("thief")];

beforeAll(async () => {
  docker = new DockerApi();
  gateway = await startGateway({ workers: 1 });
  await follow({});
});
afterAll(async () => {
  await gateway?.stop();
  await docker?.stop();
  await owner.stop(true);
  await thief.stop(true);
});

const follow = (rules: object) =>
  gateway.ok("PATCH", "/api/v1/settings", {
    discovery: {
      docker: {
        endpoint: docker.endpoint,
        labels: ["sluice", "traefik"],
        plugins: ["basic-auth", "transform"],
        claim_seconds: 0,
        ...rules,
      },
    },
  });

async function visit(host: string, path = "/"): Promise<string> {
  const url = `http://127.0.0.1:${gateway.httpPort}${path}`;
  const response = await fetch(url, { headers: { host }, redirect: "manual" });
  const text = await response.text();
  return response.status === 200 ? text : String(response.status);
}

const problems = async (name: string): Promise<string> => {
  const [{ sites }] = await gateway.ok("GET", "/api/v1/discovery");
  const own = sites.filter(({ from }: { from: string }) => from === `container ${name}`);
  return own.flatMap((site: { problems: string[] }) => site.problems).join(" | ");
};

const says = (name: string, text: string) =>
  eventually(async () => {
    const said = await problems(name);
    if (!said.includes(text)) throw new Error(`${name} says: ${said}`);
    return true;
  });

type Labels = Readonly<Record<string, string>>;

const container = (name: string, labels: Labels, more: Partial<FakeContainer> = {}) => ({
  name,
  labels,
  ports: [owner.port ?? 0],
  ...more,
});
const hostile = (labels: Labels, more: Partial<FakeContainer> = {}) =>
  container("thief", labels, { ports: [thief.port ?? 0], ...more });

const sluice = (host: string, more: Labels = {}): Labels => ({
  "sluice.enable": "true",
  "sluice.host": host,
  ...more,
});
const router = (name: string, rule: string, more: Labels = {}): Labels => ({
  "traefik.enable": "true",
  [`traefik.http.routers.${name}.rule`]: rule,
  ...more,
});
const compose = (project: string, service: string): Labels => ({
  "com.docker.compose.project": project,
  "com.docker.compose.service": service,
});

const HASH = "test:$2y$05$h2mp3yyZ9hOyRJyTTQsuPuqFxQMZzQmSx5pVlNkPHcYSjw4eIRHuG";

interface Attack {
  readonly why: string;
  readonly owner: Labels;
  readonly thief: FakeContainer;
  /** What the thief is told; null: nothing, because its labels do not count. */
  readonly says: string | null;
  readonly paths?: readonly string[];
}

const older = { created: 1 };

const attacks = (host: string): readonly Attack[] => [
  {
    why: "the same host, by an older container",
    owner: sluice(host),
    thief: hostile(sluice(host), older),
    says: `${host} is served already, by container owner`,
  },
  {
    why: "a path of the host",
    owner: sluice(host),
    thief: hostile(sluice(host, { "sluice.path": "/login" }), older),
    says: `${host} is served already, by container owner`,
    paths: ["/", "/login"],
  },
  {
    why: "a path of the host by a router with a priority",
    owner: router("mine", `Host(\`${host}\`)`),
    thief: hostile(
      router("first", `Host(\`${host}\`) && PathPrefix(\`/login\`)`, {
        "traefik.http.routers.first.priority": "9999",
      }),
      older,
    ),
    says: `${host} is served already, by container owner`,
    paths: ["/", "/login"],
  },
  {
    why: "equal labels",
    owner: router("mine", `Host(\`${host}\`)`),
    thief: hostile(router("mine", `Host(\`${host}\`)`), older),
    says: `${host} is served already, by container owner`,
  },
  {
    why: "the same router name for another host",
    owner: router("mine", `Host(\`${host}\`)`),
    thief: hostile(router("mine", "Host(`elsewhere.test`)"), older),
    says: "the name mine is defined already, by container owner",
  },
  {
    why: "the name of the application",
    owner: sluice(host, { "sluice.name": "wiki" }),
    thief: hostile(sluice("elsewhere.test", { "sluice.name": "wiki" }), older),
    says: "the name wiki is defined already, by container owner",
  },
  {
    why: "compose labels of the image",
    owner: { ...sluice(host), ...compose("media", "web") },
    thief: hostile(
      { ...sluice(host), ...compose("media", "web") },
      { image: "sha256:hostile", created: 1 },
    ),
    says: null,
  },
  {
    why: "a host of the image",
    owner: sluice(host),
    thief: hostile(
      { ...sluice("squatted.test"), "sluice.path": "/x" },
      { image: "sha256:host", created: 1 },
    ),
    says: null,
  },
];

const images = {
  "sha256:hostile": { labels: { ...sluice("attack.test"), ...compose("media", "web") } },
  "sha256:host": { labels: { ...sluice("squatted.test"), "sluice.path": "/x" } },
};

/** How the two arrive. */
const arrivals: Readonly<Record<string, (one: FakeContainer, other: FakeContainer) => unknown>> = {
  "one by one": async (one, other) => {
    docker.run(one);
    await eventually(async () => (await visit("attack.test")) === "owner");
    docker.run(other);
  },
  "after a restart": async (one, other) => {
    docker.run(one);
    await eventually(async () => (await visit("attack.test")) === "owner");
    await eventually(async () => (await problems("owner")) === "");
    await gateway.restart();
    docker.run(other);
  },
  "while the owner is recreated": async (one, other) => {
    docker.run(one);
    await eventually(async () => (await visit("attack.test")) === "owner");
    docker.run(other);
    docker.end("owner");
    docker.run({ ...one, id: "f".repeat(64), created: 1_800_000_000 });
  },
};

const table = attacks("attack.test").flatMap(({ why }, at) =>
  Object.keys(arrivals).map((how) => [why, how, at] as const),
);

test.each(table)("%s, %s: stays with its owner", async (_, how, at) => {
  const attack = attacks("attack.test")[at] as Attack;
  docker.images = images;
  await arrivals[how]?.(container("owner", attack.owner), attack.thief);
  if (attack.says !== null) await says("thief", attack.says);
  await eventually(async () => (await visit("attack.test")) === "owner");
  for (const path of attack.paths ?? ["/"])
    for (let round = 0; round < 8; round++) expect(await visit("attack.test", path)).toBe("owner");
  for (const host of ["elsewhere.test", "squatted.test"])
    expect(await visit(host, "/x")).toBe("404");
  docker.end("thief");
  docker.end("owner");
  await eventually(async () => (await visit("attack.test")) === "404");
});

test("both in one list: one of them has the host with all its paths", async () => {
  docker.run(
    container("owner", sluice("both.test")),
    hostile(sluice("both.test", { "sluice.path": "/login" }), { created: 1_900_000_000 }),
  );
  await eventually(async () => (await visit("both.test")) === "owner");
  await says("thief", "both.test is served already, by container owner");
  expect(await visit("both.test", "/login")).toBe("owner");
  docker.end("thief");
  docker.end("owner");
});

const login = (name: string, host: string): Labels =>
  router(name, `Host(\`${host}\`)`, { [`traefik.http.routers.${name}.middlewares`]: "auth" });

test.each([
  ["one by one", false],
  ["together", true],
])("a login that is defined in two ways, %s: no route goes on without it", async (_, together) => {
  const defines = container("defines", {
    ...login("defines", "defines.test"),
    "traefik.http.middlewares.auth.basicauth.users": HASH,
  });
  const uses = container("uses", login("uses", "uses.test"));
  const other = hostile(
    {
      ...login("other", "other.test"),
      "traefik.http.middlewares.auth.headers.customrequestheaders.X-A": "b",
    },
    older,
  );
  const first = together ? [other, defines, uses] : [defines, uses];
  docker.run(...first);
  if (!together) {
    await eventually(async () => (await visit("uses.test")) === "401");
    docker.run(other);
  }
  await says("uses", "http.middlewares.auth is defined by container");
  expect(await problems("uses")).toMatch(/container (?:defines|thief) and by container/);
  await eventually(async () => ["404", "503"].includes(await visit("uses.test")));
  expect(["401", "404"]).toContain(await visit("defines.test"));
  if (!together) {
    expect(await visit("defines.test")).toBe("401");
    await says("thief", "http.middlewares.auth is defined by container defines, too");
    await gateway.restart();
    await says("thief", "http.middlewares.auth is defined by container defines, too");
    expect(await visit("defines.test")).toBe("401");
    expect(["404", "503"]).toContain(await visit("uses.test"));
  }
  const names = ["defines", "uses", "thief"];
  for (const name of names) docker.end(name);
  // Those of the next row have the same names.
  await eventually(async () => {
    const [{ sites }] = await gateway.ok("GET", "/api/v1/discovery");
    return !sites.some(({ from }: { from: string }) => names.some((name) => from.endsWith(name)));
  });
});

test("server.url and services reach no other container, and ports nothing of the machine", async () => {
  docker.run(
    container("behind", login("behind", "behind.test"), { address: "127.0.0.2" }),
    container("url", {
      ...router("url", "Host(`url.test`)"),
      "traefik.http.services.url.loadbalancer.server.url": `http://127.0.0.2:${owner.port}`,
    }),
    container(
      "host",
      { ...sluice("host.test"), "sluice.port": new URL(gateway.admin).port },
      { ports: [], address: null, networkMode: "host" },
    ),
    container(
      "silent",
      { ...sluice("silent.test"), "sluice.port": String(owner.port) },
      { ports: [], address: null, networkMode: null },
    ),
    container("good", sluice("good.test")),
  );
  await eventually(async () => (await visit("good.test")) === "owner");
  await says("url", "its target 127.0.0.2 is not the address of a container of its own");
  for (const name of ["host", "silent"]) await says(name, "where labels may use no port");
  for (const name of ["url", "host", "silent"]) expect(await visit(`${name}.test`)).toBe("404");
  await follow({ host_ports: [owner.port] });
  await eventually(async () => (await visit("silent.test")) === "owner");
  expect(await visit("host.test")).toBe("404");
  for (const { name } of docker.containers) docker.end(name);
  await follow({});
});

test("names that a person reserves, and those under a wildcard of another container", async () => {
  await follow({ reserved_hosts: ["login.kept.test"] });
  docker.run(container("wild", sluice("*.wild.test")));
  await eventually(async () => (await visit("a.wild.test")) === "owner");
  docker.run(
    hostile(sluice("a.wild.test")),
    container("reserved", sluice("login.kept.test")),
    container("wide", sluice("*.kept.test")),
    container("fine", sluice("fine.kept.test")),
  );
  await eventually(async () => (await visit("fine.kept.test")) === "owner");
  await says("thief", "a.wild.test is served already, by container wild");
  await says("reserved", "the settings do not allow labels to use the host login.kept.test");
  await says("wide", "the settings do not allow labels to use the host *.kept.test");
  expect(await visit("a.wild.test")).toBe("owner");
  for (const { name } of docker.containers) docker.end(name);
});

test("a proxy that denies images: labels count as before, with one warning", async () => {
  docker.images = null;
  await follow({ network: "bridge" });
  docker.run(container("denied", sluice("denied.test")));
  await eventually(async () => (await visit("denied.test")) === "owner");
  await eventually(async () => {
    const [{ problem, state }] = await gateway.ok("GET", "/api/v1/discovery");
    return state === "connected" && problem?.includes("allow GET /images/ID/json");
  });
  docker.run(container("another", sluice("another.test")));
  await eventually(async () => (await visit("another.test")) === "owner");
  const said = gateway.log.filter(({ message }) => message.includes("GET /images/ID/json"));
  expect(said.length).toBe(1);
  docker.images = {};
  for (const { name } of docker.containers) docker.end(name);
  await follow({});
});

test("a container that is gone for a moment, or stopped, loses nothing; a renamed one keeps its objects", async () => {
  await follow({ claim_seconds: 600 });
  docker.run(container("kept", sluice("kept.test")));
  await eventually(async () => (await visit("kept.test")) === "owner");
  docker.run(hostile(sluice("kept.test"), older));
  docker.end("kept");
  await says("thief", "kept.test stays with container kept, which does not run with it, until");
  expect(await visit("kept.test")).toBe("404");
  docker.run(container("kept", sluice("kept.test"), { id: "e".repeat(64) }));
  await eventually(async () => (await visit("kept.test")) === "owner");
  await follow({ claim_seconds: 0 });
  docker.change("kept", { state: "exited" }, "die");
  await eventually(async () => (await visit("kept.test")) === "404");
  await says("thief", "kept.test is served already, by container kept");
  docker.change("kept", { state: "running" }, "start");
  await eventually(async () => (await visit("kept.test")) === "owner");
  const [before] = await gateway.ok("GET", "/api/v1/applications");
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "transform",
    service_id: before.service.id,
    config: {},
  });
  docker.rename("kept", "renamed");
  await eventually(async () => {
    const [after] = await gateway.ok("GET", "/api/v1/applications");
    return after.name === "renamed" && after.id === before.id;
  });
  expect(await visit("kept.test")).toBe("owner");
  await says("thief", "kept.test is served already, by container renamed");
  // Both at once.
  docker.end("renamed");
  docker.run(container("renamed", sluice("kept.test"), { id: "f".repeat(64) }));
  docker.rename("renamed", "again");
  await says("thief", "kept.test is served already, by container again");
  expect(await visit("kept.test")).toBe("owner");
});

test("a name that a renamed container no longer has is free at once", async () => {
  await follow({ claim_seconds: 600 });
  docker.run(container("web", sluice("old.test")), container("web-next", sluice("next.test")));
  await eventually(async () => (await visit("next.test")) === "owner");
  docker.rename("web", "web-old");
  docker.rename("web-next", "web");
  const isNamed = async (name: string, host: string) => {
    const all = await gateway.ok("GET", "/api/v1/routes");
    const found = all.find((route: { hosts: string[] }) => route.hosts.includes(host));
    return found?.name === name;
  };
  await eventually(() => isNamed("web", "next.test"));
  await eventually(() => isNamed("web-old", "old.test"));
  expect(await visit("old.test")).toBe("owner");
  expect(await visit("next.test")).toBe("owner");
  await follow({ claim_seconds: 0 });
});

test("two containers that exchange their names at once keep their hosts, and no request fails", async () => {
  docker.run(
    container("left", sluice("left.test")),
    container("right", router("own", "Host(`right.test`)"), { ports: [thief.port ?? 0] }),
  );
  await eventually(async () => (await visit("right.test")) === "thief");
  const nameOf = async (host: string) => {
    const all: { name: string; hosts: string[]; service_id: string }[] = await gateway.ok(
      "GET",
      "/api/v1/routes",
    );
    const id = all.find(({ hosts }) => hosts.includes(host))?.service_id;
    const services: { id: string; name: string }[] = await gateway.ok("GET", "/api/v1/services");
    return services.find((each) => each.id === id)?.name;
  };
  expect([await nameOf("left.test"), await nameOf("right.test")]).toEqual(["left", "right"]);
  docker.rename("left", "between");
  docker.rename("right", "left");
  docker.rename("between", "right");
  let isNamed = false;
  while (!isNamed) {
    expect([await visit("left.test"), await visit("right.test")]).toEqual(["owner", "thief"]);
    isNamed = (await nameOf("left.test")) === "right";
  }
  expect(await nameOf("right.test")).toBe("left");
});

test("the first start after an upgrade: who is served keeps its host and its objects", async () => {
  for (const { name } of docker.containers) docker.end(name);
  docker.run(
    container("served", router("served", "Host(`served.test`)")),
    container("plain", sluice("plain.test")),
  );
  await eventually(async () => (await visit("served.test")) === "owner");
  await eventually(async () => (await visit("plain.test")) === "owner");
  const idsOf = async () =>
    (await gateway.ok("GET", "/api/v1/routes")).map(({ id }: { id: string }) => id).toSorted();
  const before = await idsOf();
  await gateway.kill9();
  // As the migration leaves it.
  const database = new Database(join(gateway.dataDir, "sluice.db"));
  database.run("DELETE FROM discovery_claims");
  database.close();
  docker.run(
    hostile(router("served", "Host(`served.test`)"), older),
    container("thief-2", sluice("plain.test"), { ports: [thief.port ?? 0], created: 1 }),
  );
  await gateway.start();
  await eventually(async () => (await visit("served.test")) === "owner");
  let isKnown = false;
  while (!isKnown) {
    for (const host of ["served.test", "plain.test"]) expect(await visit(host)).toBe("owner");
    isKnown = (await problems("thief")).includes("served.test is served already");
  }
  await says("thief-2", "plain.test is served already, by container plain");
  expect(await idsOf()).toEqual(before);
});

test("what a person's object refers to stays, switched off, and blocks no other container", async () => {
  docker.run(container("gone", sluice("gone.test")));
  await eventually(async () => (await visit("gone.test")) === "owner");
  const applications: { name: string; service: { id: string } }[] = await gateway.ok(
    "GET",
    "/api/v1/applications",
  );
  const service_id = applications.find(({ name }) => name === "gone")?.service.id;
  const config = {};
  await gateway.ok("POST", "/api/v1/plugins", { name: "transform", service_id, config });
  docker.end("gone");
  await eventually(async () => (await visit("gone.test")) === "404");
  docker.run(container("next", sluice("gone.test")));
  await eventually(async () => (await visit("gone.test")) === "owner");
});
