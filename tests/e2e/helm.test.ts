// The Helm chart, rendered by Go's templates with Helm's functions: its objects fit together, and start what serve knows.
import { afterAll as afterFile, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { environmentName } from "../../src/cli/flags.ts";
import { createServe, type ServeOptions } from "../../src/cli/serve.ts";
import {
  chart,
  type Container,
  createChartRenderer,
  type Rendered,
} from "../support/helm/chart.ts";
import { needs } from "../support/needs.ts";

const { test, beforeAll } = needs("go", "sprig");

const scratch = mkdtempSync(join(tmpdir(), "sluice-helm-"));
afterFile(() => rmSync(scratch, { recursive: true, force: true }));

let render: ReturnType<typeof createChartRenderer>;
beforeAll(() => {
  render = createChartRenderer(scratch);
});

const podOf = (objects: readonly Rendered[]) =>
  objects.find(({ kind }) => kind === "StatefulSet")?.spec.template.spec;

const optionsOf = (env: Record<string, string>) =>
  new Promise<ServeOptions>((resolve, reject) => {
    const serve = createServe((options) => {
      resolve(options);
      return Promise.resolve(0);
    });
    serve.run([], { env, print: () => undefined }).catch(reject);
  });

test("has the version of the program", async () => {
  const { version, appVersion } = Bun.YAML.parse(
    await Bun.file(join(chart, "Chart.yaml")).text(),
  ) as Record<string, string>;
  expect([version, appVersion]).toEqual([manifest.version, manifest.version]);
});

test("services reach ports of the pod, and volumes have their places", () => {
  const objects = render({});
  const pod = podOf(objects);
  const container: Container = pod.containers[0];
  expect(container.image).toBe(`sluice:${manifest.version}`);
  const ports = container.ports.map(({ name }) => name);
  for (const { kind, spec } of objects)
    if (kind === "Service") for (const port of spec.ports) expect(ports).toContain(port.targetPort);
  const [statefulSet] = objects.filter(({ kind }) => kind === "StatefulSet");
  const services = objects
    .filter(({ kind }) => kind === "Service")
    .map(({ metadata }) => metadata.name);
  expect(services).toEqual(["web-sluice", "web-sluice-admin"]);
  expect(services).toContain(statefulSet?.spec.serviceName);
  const claims = statefulSet?.spec.volumeClaimTemplates.map(
    (claim: Rendered) => claim.metadata.name,
  );
  const volumes = [...claims, ...pod.volumes.map(({ name }: { name: string }) => name)];
  expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.sort());
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 });
});

test("variables are those of serve, with the password of a secret and more of the user's", async () => {
  const values = { admin: { passwordSecret: "admin" }, env: { SLUICE_LOG_LEVEL: "debug" } };
  const pod = podOf(render(values, "sluice"));
  const container: Container = pod.containers[0];
  const known = createServe(() => Promise.resolve(0)).flags.map(({ name }) =>
    environmentName(name),
  );
  for (const { name } of container.env) expect(known).toContain(name);
  const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const options = await optionsOf(env);
  expect(options.firstAdmin).toEqual({
    email: "admin@localhost",
    passwordFile: "/run/secrets/sluice/password",
  });
  expect([options.logLevel, options.http?.port]).toEqual(["debug", 8080]);
  expect(options.http?.port).toBe(
    container.ports.find(({ name }) => name === "http")?.containerPort ?? 0,
  );
  expect(pod.volumes).toContainEqual({
    name: "password",
    secret: { secretName: "admin", defaultMode: 0o440 },
  });
});

test("values may hold every optional part", () => {
  const pod = podOf(
    render({
      nodeSelector: { disk: "fast" },
      tolerations: [{ key: "edge", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
      persistence: { storageClass: "local" },
      service: { type: "ClusterIP", annotations: { a: "b" } },
    }),
  );
  expect(pod).toMatchObject({ nodeSelector: { disk: "fast" }, affinity: { nodeAffinity: {} } });
  expect(pod.tolerations).toHaveLength(1);
});
