// Everything that the image and its compose file name exists: flags, variables, files and commands of this program.
import { expect, test } from "bun:test";
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
  const optionsOf = (variables: Record<string, string>) =>
    new Promise<ServeOptions>((resolve) => {
      const serve = createServe((options) => {
        resolve(options);
        return Promise.resolve(0);
      });
      void serve.run([], { env: variables, print: () => undefined });
    });
  const fresh = { isNew: true, users: 0, networks: [] };
  const first = { ...env, SLUICE_ALLOW_UNAUTHENTICATED_REMOTE: "1" };
  expect(placeManagement(await optionsOf(first), fresh).access.heldBack).toBeNull();
  const later = { ...env, SLUICE_ALLOW_UNAUTHENTICATED_REMOTE: "0" };
  const served = { isNew: false, users: 1, networks: [] };
  expect(placeManagement(await optionsOf(later), served).hostname).toBe("0.0.0.0");
});

test("everything that the page on installing names exists", () => {
  const page = read("docs/install.md");
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
