// The versions of Docker's API and Podman's, and what people read when a daemon refuses or hangs, against a scripted API.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { DockerClient, DockerError } from "../../../src/discovery/docker-client.ts";
import { DockerApi, type Engine } from "../../support/docker-api.ts";
import { startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

const ANSWER_MS = 300;

let docker: DockerApi;
beforeEach(() => {
  docker = new DockerApi();
  docker.run({ name: "wiki", ports: [80] });
});
afterEach(() => docker.stop());

const client = () => new DockerClient({ endpoint: docker.endpoint, cert_path: null }, ANSWER_MS);
const hang = () => new Promise<Response>(() => {});
const json = (text: string, status = 200) =>
  new Response(text, { status, headers: { "content-type": "application/json" } });

const html = (status: number) =>
  new Response(`<h1>${status}</h1>`, { status, headers: { "content-type": "text/html" } });

const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: unknown) => {
      expect(error).toBeInstanceOf(DockerError);
      return (error as Error).message;
    },
  );

const follow = (one: DockerClient, signal = new AbortController().signal) =>
  one.follow(() => {}, { since: 0, signal, onOpen: () => {} });

describe("the version that both know", () => {
  const docker29: Engine = { name: "docker", most: "1.52", least: "1.44" };
  test.each<{ engine: Engine; spoken: string; why: string }>([
    ...[40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52].map((minor) => ({
      engine: { name: "docker", most: `1.${minor}`, least: minor < 44 ? "1.12" : "1.24" } as const,
      spoken: `1.${minor}`,
      why: "the highest of the daemon",
    })),
    { engine: docker29, spoken: "1.52", why: "Docker 29.0 to 29.2" },
    { engine: { ...docker29, most: "1.60" }, spoken: "1.52", why: "the highest of the gateway" },
    { engine: { name: "podman", most: "1.40", least: "1.24" }, spoken: "1.40", why: "Podman 3" },
    { engine: { name: "podman", most: "1.41", least: "1.24" }, spoken: "1.41", why: "Podman 4, 5" },
    { engine: { name: "podman", most: "1.44", least: "1.24" }, spoken: "1.44", why: "later" },
  ])("$engine.name $engine.most: $spoken, $why", async ({ engine, spoken }) => {
    docker.engine = engine;
    const one = client();
    expect((await one.containers()).map(({ Names }) => Names)).toEqual([["/wiki"]]);
    await one.environment("gone");
    const end = new AbortController();
    const followed = reasonOf(follow(one, end.signal));
    await eventually(() => docker.followers === 1);
    end.abort();
    expect(await followed).toBe("ended");
    expect(docker.asked).toEqual([
      "GET /version",
      `GET /v${spoken}/containers/json`,
      `GET /v${spoken}/containers/gone/json`,
      `GET /v${spoken}/events`,
    ]);
  });

  test.each<{ engine: Engine; says: string }>([
    {
      engine: { name: "docker", most: "1.39", least: "1.12" },
      says: "speaks the versions 1.12 to 1.39 of Docker's API, and the gateway 1.40 to 1.52: update Docker",
    },
    {
      engine: { name: "docker", most: "1.70", least: "1.60" },
      says: "speaks the versions 1.60 to 1.70 of Docker's API, and the gateway 1.40 to 1.52: update the gateway",
    },
  ])("is none of $engine.most", async ({ engine, says }) => {
    docker.engine = engine;
    expect(await reasonOf(client().containers())).toBe(`${docker.endpoint} ${says}`);
    expect(docker.asked).toEqual(["GET /version"]);
  });

  test.each([
    { most: "1.41", least: "1.12", spoken: "1.41", why: "an older daemon says what it knows" },
    { most: "1.52", least: "1.44", spoken: "1.44", why: "a newer one knows 1.44" },
    { most: "1.60", least: "1.50", spoken: "1.50", why: "one after it says what it needs" },
  ])("is $spoken behind a proxy that denies /version: $why", async ({ most, least, spoken }) => {
    docker.engine = { name: "docker", most, least };
    docker.scripted.set("/version", () => html(403));
    const one = client();
    expect(await one.containers()).toHaveLength(1);
    expect(docker.asked.at(-1)).toBe(`GET /v${spoken}/containers/json`);
  });

  test("follows an update of the daemon under a running gateway", async () => {
    docker.engine = { name: "docker", most: "1.43", least: "1.24" };
    const one = client();
    await one.containers();
    docker.engine = { name: "docker", most: "1.52", least: "1.44" };
    expect(await one.containers()).toHaveLength(1);
    expect(docker.asked.at(-1)).toBe("GET /v1.44/containers/json");
  });
});

describe("a refusal", () => {
  test.each([
    { name: "docker", body: '{"message":"the store is locked"}', why: "Docker's form" },
    {
      name: "podman",
      body: '{"cause":"locked","message":"the store is locked","response":500}',
      why: "Podman's",
    },
  ])("has the daemon's own words: $why", async ({ body }) => {
    for (const path of ["/version", "/containers/json"])
      docker.scripted.set(path, () => json(body, 500));
    const words = "with status 500 (the store is locked)";
    expect(await reasonOf(client().containers())).toBe(
      `${docker.endpoint} responded to GET /version ${words}`,
    );
    docker.scripted.delete("/version");
    expect(await reasonOf(client().containers())).toContain(`GET /containers/json ${words}`);
  });

  test("is one line of at most 200 characters, and never HTML", async () => {
    docker.scripted.set("/containers/json", () =>
      json(JSON.stringify({ message: `a\n\u001b[31m${"x".repeat(70_000 / 2)}` }), 500),
    );
    const said = await reasonOf(client().containers());
    expect(said).toContain("(a??[31mxxx");
    expect(said.length).toBeLessThan(400);
    docker.scripted.set("/containers/json", () => html(403));
    expect(await reasonOf(client().containers())).toBe(
      `${docker.endpoint} responded to GET /containers/json with status 403: the proxy in front of the socket must allow /containers, /events and /version`,
    );
  });
});

describe("within the time limit", () => {
  test.each(["/version", "/containers/json", "/containers/x/json", "/events"])(
    "%s that never answers is a sentence",
    async (path) => {
      docker.scripted.set(path, hang);
      const one = client();
      const work =
        path === "/events"
          ? follow(one)
          : path.includes("x")
            ? one.environment("x")
            : one.containers();
      expect(await reasonOf(work)).toBe(
        `${docker.endpoint}: GET ${path} did not respond within 0.3 s`,
      );
    },
  );

  test.each(["/version", "/containers/json"])("%s that stops in the middle", async (path) => {
    docker.scripted.set(
      path,
      () =>
        new Response(
          new ReadableStream({ start: (own) => own.enqueue(new TextEncoder().encode('[{"Id')) }),
        ),
    );
    expect(await reasonOf(client().containers())).toBe(
      `${docker.endpoint}: GET ${path} did not respond within 0.3 s`,
    );
  });
});

describe("what is not Docker's API", () => {
  test.each([
    ["/version", "null", "tells no version: this is not Docker's API"],
    ["/version", '{"ApiVersion": 1.4}', "tells no version: this is not Docker's API"],
    ["/version", '{"Api', "the answer to GET /version is no JSON: this is not Docker's API"],
    ["/containers/json", "[{", "is no JSON: this is not Docker's API"],
    ["/containers/json", '{"message": "x"}', "is no list of containers"],
    ["/containers/json", "[null]", "has a container without an id"],
    ["/containers/json", '[{"Names": ["/x"]}]', "has a container without an id"],
  ])("%s: %s", async (path, body, says) => {
    docker.scripted.set(path, () => json(body));
    expect(await reasonOf(client().containers())).toContain(says);
  });

  test("lists that are null are empty, as Podman sends them", async () => {
    docker.scripted.set("/containers/json", () =>
      json('[{"Id": "a", "Names": null, "Ports": null, "Labels": null, "State": "running"}]'),
    );
    expect(await client().containers()).toMatchObject([{ Names: [], Ports: [], Labels: {} }]);
  });

  test("a pipe instead of a certificate is not waited for", () => {
    const directory = docker.path.replace("/docker.sock", "");
    Bun.spawnSync(["mkfifo", `${directory}/ca.pem`]);
    for (const name of ["cert.pem", "key.pem"]) writeFileSync(`${directory}/${name}`, "x");
    expect(
      () => new DockerClient({ endpoint: "https://127.0.0.1:1", cert_path: directory }),
    ).toThrow("ca.pem: is not a file");
  });
});

test("without an answer to /events, containers are looked for every 5 s, and the reason is shown", async () => {
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("here") });
  const gateway = await startGateway();
  try {
    docker.scripted.set("/events", hang);
    await gateway.ok("PATCH", "/api/v1/settings", {
      discovery: { docker: { endpoint: docker.endpoint } },
    });
    const visit = async (host: string) =>
      (await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { headers: { host } })).status;
    const source = async () => (await gateway.ok("GET", "/api/v1/discovery"))[0];
    const run = (name: string) =>
      docker.run({
        name,
        labels: { "sluice.enable": "true", "sluice.host": `${name}.test` },
        ports: [origin.port ?? 0],
      });
    run("first");
    await eventually(
      async () => (await source()).problem?.includes("GET /events did not respond within 10 s"),
      { deadlineMs: 30_000 },
    );
    expect(await visit("first.test")).toBe(200);
    run("second");
    const began = performance.now();
    await eventually(async () => (await visit("second.test")) === 200, { deadlineMs: 20_000 });
    expect(performance.now() - began).toBeLessThan(15_000);
    expect((await source()).state).toBe("failed");
    docker.scripted.delete("/events");
    await eventually(async () => (await source()).state === "connected", { deadlineMs: 60_000 });
    docker.scripted.set("/containers/json", () => json("[nonsense", 200));
    docker.announce("start", "first");
    await eventually(async () => (await source()).problem?.includes("is no JSON"));
    expect([await visit("first.test"), await visit("second.test")]).toEqual([200, 200]);
    docker.scripted.delete("/containers/json");
    // No event says so.
    await eventually(async () => (await source()).state === "connected", { deadlineMs: 20_000 });
    expect(JSON.stringify(gateway.log)).not.toContain("TypeError");
  } finally {
    await gateway.stop();
    await origin.stop(true);
  }
}, 120_000);
