// A Bun that lacks one of the names by which TLS begins on accepted sockets: what the gateway serves then, and what it refuses.
import { afterEach, describe, expect, test } from "bun:test";
import tls from "node:tls";
import { tlsProblem } from "../../../src/dataplane/server/tls-self-test.ts";
import { Authority } from "../../support/authority.ts";
import { selfSigned } from "../../support/certificate.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";

interface Upgrading {
  upgradeTLS(options: Record<string, unknown>): unknown;
}

/** What Bun calls for accepted sockets: all of them have it from here. */
async function prototypeOfSockets(): Promise<Upgrading> {
  const { promise, resolve } = Promise.withResolvers<Upgrading>();
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: (socket) => resolve(Object.getPrototypeOf(socket) as Upgrading), data() {} },
  });
  const client = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.port,
    socket: { data() {} },
  });
  const found = await promise;
  client.terminate();
  server.stop(true);
  return found;
}

const sockets = await prototypeOfSockets();
const { upgradeTLS } = sockets;
const { createSecureContext } = tls;
let origin: Origin | null = null;

afterEach(() => {
  sockets.upgradeTLS = upgradeTLS;
  tls.createSecureContext = createSecureContext;
  origin?.stop();
});

/** Its sockets ignore this option. */
const ignoring = (name: string) => () => {
  sockets.upgradeTLS = function (this: Upgrading, { [name]: _, ...options }) {
    return upgradeTLS.call(this, options);
  };
};

const others: readonly [what: string, change: () => void][] = [
  ["no upgradeTLS", () => Object.assign(sockets, { upgradeTLS: undefined })],
  ["no option initialData", ignoring("initialData")],
  ["no option secureContext", ignoring("secureContext")],
  ["no context in a SecureContext", () => Object.assign(tls, { createSecureContext: () => ({}) })],
];

describe.each(others)("with %s", (_, change) => {
  const sketch = async (certificate: Awaited<ReturnType<typeof selfSigned>>, listener: object) => {
    origin = startOrigin({ answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" });
    return await startDataPlane({
      tls: certificate,
      listener: { engine: "sluice", ...listener },
      services: [{ name: "origin", targets: [{ port: origin.port }] }],
      routes: [{ name: "all", service_id: "origin" }],
    });
  };

  test("Bun.serve carries the listener, and an error says so", async () => {
    const certificate = await selfSigned();
    change();
    const gateway = await sketch(certificate, {});
    try {
      const problem = { path: "engine", message: expect.stringContaining('engine "bun"') };
      expect(gateway.log).toContainEqual({
        level: "error",
        message: "a listener could not change",
        fields: expect.objectContaining(problem),
      });
      const response = await fetch(gateway.url, { tls: { rejectUnauthorized: false } });
      expect([response.status, await response.text()]).toEqual([200, "ok"]);
    } finally {
      await gateway.stop();
    }
  });

  test("the self-test that fails leaves no timer, which would end the process later", async () => {
    const certificate = await selfSigned();
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    const open = new Set<unknown>();
    globalThis.setTimeout = ((...words: Parameters<typeof set>) => {
      const timer = set(...words);
      if ((words[1] ?? 0) >= 1000) open.add(timer);
      return timer;
    }) as typeof set;
    globalThis.clearTimeout = ((timer: Parameters<typeof clear>[0]) => {
      open.delete(timer);
      clear(timer);
    }) as typeof clear;
    change();
    try {
      expect(await tlsProblem(certificate)).not.toBeNull();
    } finally {
      Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
    }
    expect(open.size).toBe(0);
  });

  test("a listener that requires client certificates is refused", async () => {
    const certificate = await selfSigned();
    const { cert } = await Authority.create("Clients");
    change();
    const started = sketch(certificate, { client_auth: "require", client_ca: cert });
    expect(started).rejects.toThrow(/client_auth.*cannot be served: Bun/);
    await started.catch(() => undefined);
  });
});
