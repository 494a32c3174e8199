// Starts the management API over real sockets and a real database for tests; the data plane behind it only remembers versions.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createManagementApi,
  type ManagementApi,
  serveManagementApi,
} from "../../../src/api/server.ts";
import { systemClock } from "../../../src/clock.ts";
import type { Rollout } from "../../../src/control/change.ts";
import {
  type ControlPlane,
  compileStored,
  createControlPlane,
} from "../../../src/control/control-plane.ts";
import { fieldChecks } from "../../../src/control/field-checks.ts";
import { createLog } from "../../../src/log.ts";
import { decode } from "../../../src/model/decode.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { listenerInput } from "../../../src/model/listener.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import type { Snapshot } from "../../../src/snapshot/snapshot.ts";
import { Store } from "../../../src/store/store.ts";

/** Holds the last version that was put into service, as workers would. */
export class RememberingRollout implements Rollout {
  active: Snapshot;
  prepared: Snapshot | null = null;
  workers = 2;
  ready = 2;

  constructor(active: Snapshot) {
    this.active = active;
  }

  async prepare(next: Snapshot) {
    await Promise.resolve();
    this.prepared = next;
    return [];
  }

  async activate(revision: number) {
    await Promise.resolve();
    if (this.prepared?.revision !== revision) throw new Error("was not prepared");
    this.active = this.prepared;
    this.prepared = null;
  }

  async discard() {
    this.prepared = null;
  }

  status() {
    return { workers: this.workers, ready: this.ready, revision: this.active.revision };
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly raw?: string | Uint8Array | ReadableStream;
  readonly headers?: Record<string, string>;
}

export interface TestGateway {
  readonly url: string;
  readonly port: number;
  readonly api: ManagementApi;
  readonly control: ControlPlane;
  readonly rollout: RememberingRollout;
  readonly logged: readonly string[];
  /** Sends `METHOD /path` (relative to /api/v1 unless it starts with `!`). */
  call(line: string, options?: CallOptions): Promise<Answer>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startGateway(): Promise<TestGateway> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-api-"));
  const logged: string[] = [];
  const log = createLog({ level: "info", format: "json", sink: (line) => logged.push(line) });
  const store = Store.open({ dataDir: join(directory, "data"), log });
  store.commit({
    revision: 1,
    change: firstChange(),
    entry: { at: new Date().toISOString(), actor: "start", summary: "first start" },
  });
  const stored = store.load();
  const bound: { address: string; port: number }[] = [];
  const context = () => ({
    tls: { cert: "cert", key: "key" },
    managementAddresses: bound,
    checks: fieldChecks,
  });
  const current = compileStored(stored, context());
  const rollout = new RememberingRollout(current.snapshot);
  const control = createControlPlane({
    store,
    rollout,
    clock: systemClock,
    log,
    current,
    context,
  });
  const api = createManagementApi({
    control,
    clock: systemClock,
    log,
    version: "0.0.0-test",
    startedAt: Date.now(),
    boundHost: "127.0.0.1",
  });
  const server = serveManagementApi(api, { hostname: "127.0.0.1", port: 0 });
  bound.push({ address: "127.0.0.1", port: server.port });
  return {
    url: server.url,
    port: server.port,
    api,
    control,
    rollout,
    logged,
    call: (line, options) => send(server.url, line, options),
    async [Symbol.asyncDispose]() {
      await server.stop();
      store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function send(url: string, line: string, options: CallOptions = {}): Promise<Answer> {
  const [method = "GET", path = "/"] = line.split(/ (.*)/s);
  const target = path.startsWith("!") ? `${url}${path.slice(1)}` : `${url}/api/v1${path}`;
  const body =
    options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const response = await fetch(target, {
    method,
    redirect: "manual",
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: body as string }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== "" ? JSON.parse(text) : text,
  };
}

function firstChange() {
  const at = "2026-01-01T00:00:00.000Z";
  const none = { upserts: [], removals: [] };
  const listener = (name: string, port: number, protocol: "http" | "https") => ({
    id: Bun.randomUUIDv7(),
    ...decode(listenerInput, { name, port, protocol }),
    created_at: at,
    updated_at: at,
  });
  return {
    services: none,
    targets: none,
    routes: none,
    listeners: {
      upserts: [listener("http", 18_080, "http"), listener("https", 18_443, "https")],
      removals: [],
    },
    settings: { ...decode(settingsInput, {}), updated_at: at } as GatewayConfig["settings"],
  };
}
