// A gateway and a real CA that validates names on the gateway's ports, with helpers for orders.
import { type Gateway, type GatewayOptions, startGateway } from "./gateway.ts";
import { Pebble, type PebbleOptions } from "./pebble.ts";
import { DEADLINE_MS, eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface AcmeScene {
  readonly gateway: Gateway;
  readonly pebble: Pebble;
  /** Creates a certificate with source acme. */
  // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
  order(name: string, fields: object): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  find(name: string): Promise<any>;
  /** Waits until it has the status. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  becomes(name: string, status: string, deadlineMs?: number): Promise<any>;
  /** Adds an account at this CA, or at another one. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  addAccount(name: string, fields?: object): Promise<any>;
  stop(): Promise<void>;
}

export interface AcmeSceneOptions {
  readonly gateway?: GatewayOptions;
  readonly pebble?: Omit<PebbleOptions, "httpPort" | "tlsPort">;
}

/** With an account `pebble` at the CA, unless the CA requires an external account binding. */
export async function startAcmeScene(options: AcmeSceneOptions = {}): Promise<AcmeScene> {
  const [httpPort, tlsPort] = [quietPort(), quietPort()];
  const pebble = new Pebble({ ...options.pebble, httpPort, tlsPort });
  await pebble.start();
  const { args = [], ...rest } = options.gateway ?? {};
  const ports = ["--http", `127.0.0.1:${httpPort}`, "--https", `127.0.0.1:${tlsPort}`];
  const gateway = await startGateway({
    ...rest,
    args: [...ports, "--dns-servers", pebble.nameServer, ...args],
  });
  const find = (name: string) => gateway.ok("GET", `/api/v1/certificates/${name}`);
  const scene: AcmeScene = {
    gateway,
    pebble,
    find,
    order: (name, fields) =>
      gateway.ok("POST", "/api/v1/certificates", { name, source: "acme", ...fields }),
    becomes: (name, status, deadlineMs = DEADLINE_MS) =>
      eventually(
        async () => {
          const certificate = await find(name);
          if (certificate.status === status) return certificate;
          throw new Error(
            `certificate "${name}" is ${certificate.status}: ${certificate.last_error}`,
          );
        },
        { deadlineMs, intervalMs: 50 },
      ),
    addAccount: (name, fields = {}) =>
      gateway.ok("POST", "/api/v1/acme/accounts", {
        name,
        directory_url: pebble.directoryUrl,
        ca_certificates: pebble.trusted,
        terms_agreed: true,
        ...fields,
      }),
    async stop() {
      await gateway.stop();
      await pebble.stop();
    },
  };
  if (options.pebble?.eab === undefined) await scene.addAccount("pebble");
  return scene;
}

/** A webhook that writes into the name server of the CA, as a DNS provider would. */
export function startDnsHook(pebble: Pebble) {
  const values = new Map<string, Set<string>>();
  /** What the name server has. */
  const served = new Map<string, ReadonlySet<string>>();
  const calls: string[] = [];
  let gate: { readonly promise: Promise<void>; readonly resolve: () => void } | null = null;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { fqdn, value } = (await request.json()) as { fqdn: string; value: string };
      const host = fqdn.replace(/\.$/, "");
      const { pathname } = new URL(request.url);
      calls.push(`${pathname} ${host}`);
      await gate?.promise;
      const held = values.get(host) ?? new Set();
      values.set(host, held);
      if (pathname === "/present") held.add(value);
      else held.delete(value);
      await pebble.clearTxt(host);
      for (const text of held) await pebble.setTxt(host, text);
      served.set(host, new Set(held));
      return new Response("{}");
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    /** Delays all responses until `release`. */
    hold: () => {
      gate = Promise.withResolvers();
    },
    release: () => {
      gate?.resolve();
      gate = null;
    },
    /** Current records. */
    get left() {
      return [...served].flatMap(([host, held]) => [...held].map((value) => `${host} ${value}`));
    },
    stop: () => server.stop(true),
  };
}
