// The compose example: three containers with two labels each get HTTPS from a CA; and a socket that the gateway may not open.
import { expect } from "bun:test";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:tls";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type AcmeScene, startAcmeScene } from "../support/acme-scene.ts";
import { DockerApi } from "../support/docker-api.ts";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("pebble", "executable", "mount");

let scene: AcmeScene;
let origin: Bun.Server<undefined>;
let docker: DockerApi;

beforeAll(async () => {
  docker = new DockerApi();
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("served") });
  scene = await startAcmeScene({ gateway: { workers: 2 } });
});
afterAll(async () => {
  await scene?.stop();
  await docker?.stop();
  await origin?.stop(true);
});

interface ComposeFile {
  readonly services: Readonly<Record<string, { readonly labels?: Record<string, string> }>>;
}

/** The containers of the example that have labels. */
async function exampleContainers() {
  const path = join(import.meta.dir, "../../examples/compose/discovery.yaml");
  const { services } = Bun.YAML.parse(await Bun.file(path).text()) as ComposeFile;
  return Object.entries(services).flatMap(([name, { labels }]) =>
    labels === undefined ? [] : [{ name, labels, ports: [origin.port ?? 0] }],
  );
}

function issuerOf(servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: scene.gateway.httpsPort, servername };
    const socket = connect({ ...options, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().issuer.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

test("three containers get certificates by two labels each", async () => {
  const containers = await exampleContainers();
  expect(containers.length).toBe(3);
  for (const { labels } of containers)
    expect(Object.keys(labels)).toEqual(["sluice.enable", "sluice.host"]);
  const { gateway } = scene;
  const rules = {
    endpoint: docker.endpoint,
    host_suffixes: ["home.example.com"],
    certificate_suffixes: ["home.example.com"],
  };
  await gateway.ok("PATCH", "/api/v1/settings", { discovery: { docker: rules } });
  docker.run(...containers);
  const hosts = containers.map(({ labels }) => labels["sluice.host"] ?? "");
  // All of them first: a changed certificate may reset a connection in its handshake (net.ipv4.tcp_migrate_req).
  for (const host of hosts) await eventually(async () => (await issuerOf(host)).includes("Pebble"));
  for (const host of hosts) {
    await eventually(async () => {
      const url = `http://127.0.0.1:${gateway.httpPort}/`;
      return (await fetch(url, { headers: { host }, redirect: "manual" })).status === 308;
    });
    const response = await fetch(`https://127.0.0.1:${gateway.httpsPort}/`, {
      headers: { host },
      tls: { rejectUnauthorized: false },
    });
    expect(await response.text()).toBe("served");
  }
  docker.end("wiki");
  await eventually(
    async () => (await gateway.ok("GET", "/api/v1/certificates")).length === containers.length - 1,
  );
});

test("a socket without rights is a sentence that says what to do", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-rights-"));
  const nobody = 65_534;
  chownSync(dataDir, nobody, nobody);
  chmodSync(dirname(docker.path), 0o755);
  chmodSync(docker.path, 0o600);
  const wrap = ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"];
  const gateway = await startGateway({ dataDir, wrap, binary: executable });
  try {
    const rules = { endpoint: docker.endpoint };
    await gateway.ok("PATCH", "/api/v1/settings", { discovery: { docker: rules } });
    await eventually(async () => {
      const [{ problem }] = await gateway.ok("GET", "/api/v1/discovery");
      return problem?.includes("add it to the group of the socket, or use a socket proxy");
    });
  } finally {
    await gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
