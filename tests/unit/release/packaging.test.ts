// Everything that the image and its compose file name exists: flags, variables, files and commands of this program.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { healthcheckCommand } from "../../../src/cli/healthcheck.ts";
import { environmentName } from "../../../src/cli/flags.ts";
import { placeManagement } from "../../../src/cli/management-access.ts";
import { createServe, type ServeOptions } from "../../../src/cli/serve.ts";
import { imageConfig } from "../../../scripts/release/image-config.ts";

const root = resolve(import.meta.dir, "../../..");
const read = (path: string) => readFileSync(resolve(root, path), "utf8");
const { config: image } = imageConfig({
  version: "1.2.3",
  bunVersion: "1.0.0",
  commit: null,
  committedAt: "2026-01-01T00:00:00Z",
});
const imageVariables = Object.fromEntries(
  image.Env.map((text) => text.split("=") as [string, string]),
);
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
  const files = [
    image.Env.join("\n"),
    read("scripts/packaging/compose.yaml"),
    read("scripts/install.sh"),
  ];
  const found = files.flatMap((text) => text.match(/\bSLUICE_[A-Z_]+\b(?=[=:])/g) ?? []);
  expect(new Set(found).size).toBeGreaterThan(4);
  for (const name of found)
    // The first is of the installer, the second of the compose file itself.
    if (name !== "SLUICE_URL" && name !== "SLUICE_IMAGE")
      expect([name, variables.has(name)]).toEqual([name, true]);
});

test("the image runs serve, and its health check, as an unprivileged user", () => {
  expect(image.User).toBe("65532:65532");
  expect(image.Healthcheck.Test).toEqual(["CMD", ...image.Entrypoint, healthcheckCommand.name]);
  expect(image.Cmd).toEqual(["serve"]);
});

test("the data of the compose file survives the container", () => {
  const { sluice = {} } = compose.services;
  expect(sluice["volumes"]).toEqual(["sluice-data:/var/lib/sluice"]);
  expect(Object.keys(compose.volumes)).toEqual(["sluice-data"]);
  expect(Object.keys(image.Volumes)).toEqual(["/var/lib/sluice"]);
  expect(sluice["ports"]).toContain("127.0.0.1:9080:9080");
});

/** A variable without a value of the user's has its default. */
const withDefaults = (env: Record<string, string>) =>
  Object.fromEntries(
    Object.entries({ ...imageVariables, ...env }).map(([name, value]) => [
      name,
      value.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1").replaceAll(/\$\{[^}]*\}/g, "password"),
    ]),
  );

test("`docker compose up` starts with an admin, and serves the management API at once", async () => {
  const { sluice = {} } = compose.services;
  const options = await optionsOf(withDefaults(sluice["environment"] as Record<string, string>));
  expect(options.firstAdmin).toEqual({ email: "admin@localhost", passwordFile: null });
  const fresh = { isNew: true, users: 1, networks: [] };
  const { hostname, access } = placeManagement(options, fresh);
  expect([hostname, access.heldBack]).toEqual(["0.0.0.0", null]);
  expect(options.allowUnauthenticatedRemote).toBe(false);
});

test("the comments of the compose file give a password file as serve reads it", async () => {
  const text = read("scripts/packaging/compose.yaml").replaceAll(
    /^( *)# (?=( *)(secrets|SLUICE|- admin_p|admin_p|file:))/gm,
    "$1",
  );
  const { services, secrets } = Bun.YAML.parse(text) as {
    services: { sluice: { environment: Record<string, string>; secrets: string[] } };
    secrets: Record<string, { file: string }>;
  };
  const { environment, secrets: used } = services.sluice;
  expect(used).toEqual(Object.keys(secrets));
  const options = await optionsOf(withDefaults(environment));
  expect(options.firstAdmin?.passwordFile).toBe(`/run/secrets/${used[0]}`);
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
      const options = await optionsOf(withDefaults(environment));
      expect(options.fleet?.database.urls).toEqual(["postgres://sluice:password@db/sluice"]);
      const fresh = { isNew: true, users: 1, networks: [] };
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
