// Everything that the image and its compose file name exists: flags, variables, files and commands of this program.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { healthcheckCommand } from "../../../src/cli/healthcheck.ts";
import { environmentName } from "../../../src/cli/flags.ts";
import { placeManagement } from "../../../src/cli/management-access.ts";
import { createServe, type ServeOptions } from "../../../src/cli/serve.ts";
import { targets } from "../../../scripts/release/targets.ts";

const root = resolve(import.meta.dir, "../../..");
const read = (path: string) => readFileSync(resolve(root, path), "utf8");
const dockerfile = read("scripts/packaging/Dockerfile");
const compose = Bun.YAML.parse(read("scripts/packaging/compose.yaml")) as {
  services: Record<string, Record<string, unknown>>;
  volumes: object;
};
const variables = new Set(
  createServe(() => Promise.resolve(0)).flags.map(({ name }) => environmentName(name)),
);

const optionsOf = (variables: Record<string, string>) =>
  new Promise<ServeOptions>((resolve) => {
    const serve = createServe((options) => {
      resolve(options);
      return Promise.resolve(0);
    });
    void serve.run([], { env: variables, print: () => undefined });
  });

test("every variable belongs to a flag of serve", () => {
  const files = [dockerfile, read("scripts/packaging/compose.yaml"), read("scripts/install.sh")];
  const found = files.flatMap((text) => text.match(/\bSLUICE_[A-Z_]+\b(?=[=:])/g) ?? []);
  expect(new Set(found).size).toBeGreaterThan(4);
  for (const name of found)
    if (name !== "SLUICE_URL") expect([name, variables.has(name)]).toEqual([name, true]);
});

test("the image contains executables of a release, and runs as an unprivileged user", () => {
  const names = targets.map(({ name }) => `sluice-${name}`);
  const wanted = dockerfile.match(/name=(sluice-[\w-]+)/g) ?? [];
  expect(wanted.length).toBe(2);
  for (const word of wanted) expect(names).toContain(word.replace("name=", ""));
  expect(dockerfile).toMatch(/^USER 65532:65532$/m);
  expect(dockerfile).toContain(`CMD ["/usr/local/bin/sluice", "${healthcheckCommand.name}"]`);
  expect(dockerfile).toContain('CMD ["serve"]');
});

test("the data of the compose file survives the container", () => {
  const { sluice = {} } = compose.services;
  expect(sluice["volumes"]).toEqual(["sluice-data:/var/lib/sluice"]);
  expect(Object.keys(compose.volumes)).toEqual(["sluice-data"]);
  expect(dockerfile).toMatch(/^VOLUME \/var\/lib\/sluice$/m);
  expect(sluice["ports"]).toContain("127.0.0.1:9080:9080");
});

test("the management API of the compose file is restricted, as its address requires", async () => {
  const { sluice = {} } = compose.services;
  const env = sluice["environment"] as Record<string, string>;
  const fresh = { isNew: true, users: 0, networks: [] };
  const first = { ...env, SLUICE_ALLOW_UNAUTHENTICATED_REMOTE: "1" };
  expect(placeManagement(await optionsOf(first), fresh).access.heldBack).toBeNull();
  const later = { ...env, SLUICE_ALLOW_UNAUTHENTICATED_REMOTE: "0" };
  const served = { isNew: false, users: 1, networks: [] };
  expect(placeManagement(await optionsOf(later), served).hostname).toBe("0.0.0.0");
});

describe("the examples of a fleet", () => {
  const folder = "scripts/packaging/fleet";
  const { services, volumes } = Bun.YAML.parse(read(`${folder}/compose.yaml`)) as {
    services: Record<string, { environment: Record<string, string>; volumes: string[] }>;
    volumes: object;
  };
  const { n1, n2 } = services;
  const nodes = [n1!, n2!];

  test("give each node a name and a data directory of its own, and all one database and one key", () => {
    const of = (name: string) => new Set(nodes.map(({ environment }) => environment[name]));
    expect(of("SLUICE_NODE_NAME")).toEqual(new Set(["n1", "n2"]));
    for (const name of ["SLUICE_STORE", "SLUICE_SECRET_KEY"]) expect(of(name).size).toBe(1);
    const places = nodes.flatMap(({ volumes }) => volumes);
    expect(new Set(places).size).toBe(2);
    for (const place of places) expect(place).toEndWith("-data:/var/lib/sluice");
    for (const { environment } of nodes)
      for (const name of Object.keys(environment))
        expect([name, variables.has(name) || name === "SLUICE_SECRET_KEY"]).toEqual([name, true]);
    expect(Object.keys(volumes)).toEqual(["n1-data", "n2-data", "db-data"]);
  });

  test("start as serve decodes them", async () => {
    for (const { environment } of nodes) {
      const first = {
        ...environment,
        SLUICE_STORE: environment["SLUICE_STORE"]!.replace(/\$\{[^}]*\}/, "password"),
        SLUICE_ALLOW_UNAUTHENTICATED_REMOTE: "1",
      };
      const options = await optionsOf(first);
      expect(options.fleet?.database.urls).toEqual(["postgres://sluice:password@db/sluice"]);
      const fresh = { isNew: true, users: 0, networks: [] };
      expect(placeManagement(options, fresh).access.heldBack).toBeNull();
    }
  });

  test("name the nodes of the compose file in the load balancer", () => {
    const named = read(`${folder}/haproxy.cfg`).matchAll(/^ {2}server (\w+) (\w+):(\d+)$/gm);
    expect([...named].map(([, name, host, port]) => [name, host, port])).toEqual([
      ["n1", "n1", "80"],
      ["n2", "n2", "80"],
      ["n1", "n1", "443"],
      ["n2", "n2", "443"],
    ]);
  });
});

test.each(["docs/install.md", "docs/fleet.md"])("all that %s names exists", (name) => {
  const page = read(name);
  for (const [path] of page.matchAll(/scripts\/[\w./-]+\w/g))
    expect([path, existsSync(resolve(root, path))]).toEqual([path, true]);
  const help = Bun.spawnSync([
    "sh",
    resolve(root, "scripts/install.sh"),
    "--help",
  ]).stdout.toString();
  for (const [flag] of `${page}${read("docs/upgrade.md")}`.matchAll(
    /--(?:upgrade|rollback|uninstall|purge|print-unit|service|sha256)\b/g,
  ))
    expect(help).toContain(flag);
});
