// Many certificates at once, and one that is renewed under traffic: every listener of every worker presents it, and no request fails.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { type AcmeScene, startAcmeScene } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterEach, beforeEach, test } = needs("executable", "pebble");

const MANY = 50;
const HANDSHAKES = 40;
const WORKERS = 2;
const MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req";

let scene: AcmeScene;
let origin: ReturnType<typeof Bun.serve>;

beforeEach(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("fine") });
  scene = await startAcmeScene({ gateway: { binary: executable, workers: WORKERS } });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await scene.gateway.ok("POST", "/api/v1/services", { name: "origin", targets });
  await scene.gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
  await scene.gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
});
afterEach(async () => {
  await scene?.stop();
  await origin?.stop(true);
});

test(`${MANY} certificates are issued at once`, async () => {
  const names = Array.from({ length: MANY }, (_, index) => `many-${index}`);
  await Promise.all(
    names.map((name, index) =>
      scene.order(name, {
        domains: [`${name}.test`],
        challenge: index % 5 === 0 ? "tls-alpn-01" : "http-01",
      }),
    ),
  );
  // Without tcp_migrate_req the change of one certificate can reset the CA's handshake for another: the gateway requests that
  // one again after a minute.
  for (const name of names) await scene.becomes(name, "valid");
  const { revision } = await scene.gateway.ok("GET", "/api/v1/admin/status");
  console.log(`${MANY} certificates in ${revision} revisions`);
  const answer = await handshake(scene.gateway.httpsPort, "many-7.test");
  expect(answer.fingerprint).toBe((await scene.find("many-7")).fingerprint);
});

interface Handshake {
  readonly fingerprint: string;
  readonly worker: string;
  readonly status: string;
}

/** One connection with one request. */
function handshake(port: number, servername: string): Promise<Handshake> {
  return new Promise((resolve, reject) => {
    let [text, fingerprint] = ["", ""];
    const socket = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false });
    socket.on("secureConnect", () => {
      fingerprint = socket.getPeerCertificate().fingerprint256.replaceAll(":", "").toLowerCase();
      socket.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
    });
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => {
      const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
      const worker = /^x-sluice-worker: (\d+)/im.exec(text)?.[1];
      if (status === undefined || worker === undefined)
        reject(new Error(`the connection ended with ${JSON.stringify(text)}`));
      else resolve({ fingerprint, worker, status });
    });
  });
}

/** Needs root, and not every container allows it; without it the kernel resets connections that wait at a closed socket. */
function letConnectionsMigrate(): (() => void) | null {
  try {
    const before = readFileSync(MIGRATE, "utf8");
    writeFileSync(MIGRATE, "1");
    return () => writeFileSync(MIGRATE, before);
  } catch {
    return null;
  }
}

test.each(["http-01", "tls-alpn-01"])(
  "a certificate is renewed by %s under load without a failed request",
  async (challenge) => {
    const { gateway } = scene;
    const second = quietPort();
    await gateway.ok("POST", "/api/v1/listeners", {
      name: "second",
      address: "127.0.0.1",
      port: second,
      protocol: "https",
    });
    await scene.order("load", { domains: ["load.test"], challenge });
    const before = await scene.becomes("load", "valid");
    const restore = letConnectionsMigrate();
    const failures: string[] = [];
    let made = 0;
    let isOver = false;
    const ask = async (port: number) => {
      while (!isOver) {
        made++;
        await handshake(port, "load.test").then(
          ({ status }) => status === "200" || failures.push(status),
          (error: Error) => failures.push(error.message),
        );
        await Bun.sleep(5);
      }
    };
    const clients = [gateway.httpsPort, second, gateway.httpsPort, second].map(ask);
    try {
      for (let round = 0; round < 3; round++) {
        await gateway.ok("POST", "/api/v1/certificates/load/renew");
        await scene.becomes("load", "valid");
      }
      const after = await scene.find("load");
      expect(after.fingerprint).not.toBe(before.fingerprint);
      await everyWorkerPresents(after.fingerprint, [gateway.httpsPort, second]);
    } finally {
      isOver = true;
      await Promise.all(clients);
      restore?.();
    }
    console.log(`${made} connections by ${challenge}, ${failures.length} failed`, failures);
    expect(made).toBeGreaterThan(HANDSHAKES * 4);
    // Three swaps by http-01, three more to the front and three back by tls-alpn-01, of two listeners in each worker.
    expect(failures.length).toBeLessThanOrEqual(restore === null ? 9 * 2 * WORKERS : 0);
  },
);

/** Until each worker has done 40 handshakes on each listener. */
async function everyWorkerPresents(fingerprint: string, ports: readonly number[]): Promise<void> {
  const seen = new Map<string, number>();
  const isDone = () =>
    seen.size === ports.length * WORKERS &&
    [...seen.values()].every((count) => count >= HANDSHAKES);
  while (!isDone())
    for (const port of ports) {
      const answer = await handshake(port, "load.test");
      expect(answer.fingerprint).toBe(fingerprint);
      const key = `${port} ${answer.worker}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
    }
}
