// No request, label or file holds the management thread: /healthz is answered meanwhile, and no piece of work takes long.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DockerApi } from "../../support/docker-api.ts";
import { type MeasuredGateway, startMeasured } from "../../support/held-thread.ts";
import { eventually } from "../../support/poll.ts";

/** Processor time of one piece of work, so that /healthz responds within 250 ms. */
const MOST_MS = 250;

let measured: MeasuredGateway;
let docker: DockerApi;
const directory = mkdtempSync(join(tmpdir(), "sluice-held-files-"));

beforeAll(async () => {
  docker = new DockerApi();
  measured = await startMeasured({ workers: 1, args: ["--config-dir", directory] });
});
afterAll(async () => {
  await measured?.stop();
  await docker?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Takes half a second to check. */
const slowRegex = (mark: string, at: number) =>
  `^/(?:en|de|fr)/[a-z-]+\\.(?:png|jpe?g|gif)${mark}${at}$`;

const times = <T>(count: number, of: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index));

/** Thousands of operations, each with a schema of its own around one of ten large ones. */
const api = JSON.stringify({
  openapi: "3.1.0",
  components: {
    schemas: Object.fromEntries(
      times(10, (at) => [
        `s${at}`,
        { properties: Object.fromEntries(times(200, (n) => [`p${n}`, { type: "string" }])) },
      ]),
    ),
  },
  paths: Object.fromEntries(
    times(2000, (at) => {
      const schema = { title: `t${at}`, allOf: [{ $ref: `#/components/schemas/s${at % 10}` }] };
      return [
        `/a${at}`,
        { post: { requestBody: { content: { "application/json": { schema } } } } },
      ];
    }),
  ),
});

async function send(path: string, body: unknown, type = "application/json") {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await measured.gateway.api("POST", path, text, { "content-type": type });
  return { status: response.status, text: await response.text() };
}

const site = (count: number, mark: string) =>
  `http { server { listen 80; server_name a.test;\n${times(
    count,
    (at) =>
      `location ~ ^/(en|de|fr)/[a-z-]+${mark}${at}\\.(png|gif)$ { proxy_pass http://10.0.0.1; }`,
  ).join("\n")}\n} }`;

test.each<[string, number, () => ReturnType<typeof send>, number]>([
  [
    "a route with eight slow expressions",
    200,
    () =>
      send("/api/v1/routes", {
        paths: times(8, (at) => ({ type: "regex", value: slowRegex("a", at) })),
      }),
    5,
  ],
  [
    "a plugin instance with slow expressions",
    200,
    () =>
      send("/api/v1/plugins", {
        name: "cors",
        when: { path: [`~${slowRegex("b", 1)}`] },
        config: {},
      }),
    5,
  ],
  [
    "an OpenAPI document with 2,000 schemas around ten of 400 values",
    200,
    () =>
      send("/api/v1/plugins", { name: "request-validation", config: { openapi: { spec: api } } }),
    5,
  ],
  [
    "a small nginx file with expressions",
    200,
    () => send("/api/v1/import?from=nginx&dry_run=1", site(10, "c"), "text/plain"),
    5,
  ],
  [
    "YAML of 500 KB that is no configuration",
    400,
    () =>
      send(
        "/api/v1/import",
        `routes:\n${times(3000, (at) => `- name: n${at}\n  paths: [{type: prefix, value: /${"x".repeat(100)}}]\n`).join("")}`,
        "application/yaml",
      ),
    5,
  ],
  [
    "an import of 10 MB without format",
    400,
    () =>
      send("/api/v1/import", {
        routes: times(60_000, (at) => ({
          name: `n${at}`,
          paths: [{ type: "prefix", value: "/".padEnd(100, "x") }],
        })),
      }),
    5,
  ],
  [
    "90,000 unknown fields",
    400,
    () => send("/api/v1/routes", Object.fromEntries(times(90_000, (at) => [`k${at}`, 1]))),
    0,
  ],
  [
    "a plugin instance with 30,000 networks",
    200,
    () =>
      send("/api/v1/plugins", {
        name: "ip-restriction",
        config: { allow: times(30_000, (at) => `10.${at >> 8}.${at % 256}.1`) },
      }),
    1,
  ],
  ["invalid JSON of 1 MB", 400, () => send("/api/v1/routes", `[${"1,".repeat(500_000)}}`), 0],
])("%s", async (_, status, request, answers) => {
  let response = { status: 0, text: "" };
  const { answered, heldMs } = await measured.during(async () => {
    response = await request();
  });
  expect(response).toMatchObject({ status });
  expect(heldMs).toBeLessThan(MOST_MS);
  expect(answered).toBeGreaterThanOrEqual(answers);
});

describe("of 12,000 routes", () => {
  beforeAll(async () => {
    const routes = times(12_000, (at) => ({ name: `large-${at}`, hosts: [`e${at}.test`] }));
    expect(await send("/api/v1/import", { format: 1, routes })).toMatchObject({ status: 200 });
  });

  test.each(["/export?format=json", "/export?format=yaml", "/export?minimal=1", "/routes"])(
    "%s",
    async (path) => {
      let text = "";
      const { heldMs } = await measured.during(async () => {
        text = await (await measured.gateway.api("GET", `/api/v1${path}`)).text();
      });
      expect(text).toContain("e11999.test");
      expect(heldMs).toBeLessThan(MOST_MS);
    },
  );
});

test("labels with slow expressions", async () => {
  const names = times(6, (at) => `slow-${at}`);
  for (const [at, name] of names.entries())
    docker.run({
      name,
      ports: [80],
      labels: {
        "traefik.enable": "true",
        [`traefik.http.routers.${name}.rule`]: `Host(\`${name}.test\`) && PathRegexp(\`${slowRegex("d", at)}\`)`,
      },
    });
  const { gateway } = measured;
  const { answered, heldMs } = await measured.during(async () => {
    const rules = { endpoint: docker.endpoint, labels: ["traefik"] };
    await gateway.ok("PATCH", "/api/v1/settings", { discovery: { docker: rules } });
    await eventually(
      async () => {
        const [{ sites }] = await gateway.ok("GET", "/api/v1/discovery");
        return sites.length === 6 && sites.every(({ served }: { served: boolean }) => served);
      },
      { deadlineMs: 60_000 },
    );
  });
  expect(heldMs).toBeLessThan(MOST_MS);
  expect(answered).toBeGreaterThanOrEqual(5);
});

test("a large file of the directory", async () => {
  const { gateway } = measured;
  const { heldMs } = await measured.during(async () => {
    const routes = times(4_000, (at) => `- {name: file-${at}, hosts: [f${at}.test]}`);
    writeFileSync(join(directory, "large.yaml"), `routes:\n${routes.join("\n")}\n`);
    await eventually(
      async () => {
        const sources = await gateway.ok("GET", "/api/v1/discovery");
        return sources.some(
          ({ found, sites }: { found: number; sites: { served: boolean }[] }) =>
            found === 1 && sites[0]?.served,
        );
      },
      { deadlineMs: 100_000 },
    );
  });
  expect(heldMs).toBeLessThan(MOST_MS);
});
