// A gateway with the backends of the Gateway API's conformance suite, set up over the management API, and expected results.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { type Client, useGateway } from "../api/client.ts";

export type Backend = "infra-backend-v1" | "infra-backend-v2" | "infra-backend-v3";
export const [v1, v2, v3] = ["infra-backend-v1", "infra-backend-v2", "infra-backend-v3"] as const;

/** What a backend saw of a request. */
export interface Captured {
  readonly backend: Backend;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A rule of an HTTPRoute: the fields of one route, its backends, and the plugins that are its filters. */
export interface Rule {
  readonly route?: object;
  readonly to?: Backend;
  readonly filters?: readonly { readonly name: string; readonly config: object }[];
  /** Names of listeners; default: all of the gateway. */
  readonly listeners?: readonly string[];
}

export interface Setup {
  /** At one port; default: one for every host. */
  readonly listeners?: readonly ({ readonly name: string } & Record<string, unknown>)[];
  readonly rules: readonly Rule[];
}

/** A request and its expected result; omitted fields do not matter. */
export interface Row {
  readonly host?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default 200. */
  readonly status?: number;
  readonly backend?: Backend;
  /** Path and fields as the backend saw them; null: it saw no such field. */
  readonly seenPath?: string;
  readonly seen?: Readonly<Record<string, string | null>>;
  /** Fields of the response; null: none. */
  readonly answer?: Readonly<Record<string, string | null>>;
}

export interface World {
  readonly api: Client;
  /** Everything that backends have seen. */
  readonly captured: readonly Captured[];
  /** Sets it up and returns its port. */
  start(setup: Setup): Promise<number>;
  ask(
    port: number,
    row: Row,
  ): Promise<{ readonly response: Response; readonly seen: Captured | null }>;
}

export function useWorld(): World {
  const api = useGateway();
  const captured: Captured[] = [];
  const servers = [v1, v2, v3].map((backend) => backendServer(backend, captured));
  let count = 0;
  beforeAll(async () => {
    for (const { backend, port } of servers)
      await api.create("/services", { name: backend, targets: [{ host: "127.0.0.1", port }] });
  });
  afterAll(async () => {
    for (const { stop } of servers) await stop();
  });

  const start = async ({ listeners = [{ name: "all" }], rules }: Setup) => {
    const port = freePort();
    const prefix = `${++count}`;
    const ids = new Map<string, string>();
    for (const { name, ...fields } of listeners) {
      const body = { name: `${prefix} ${name}`, address: "127.0.0.1", port, ...fields };
      ids.set(name, (await api.create("/listeners", body)).id as string);
    }
    for (const { route, to = null, filters = [], listeners: own } of rules) {
      const listener_ids = (own ?? [...ids.keys()]).map((name) => ids.get(name) ?? name);
      const created = await api.create("/routes", { ...route, service_id: to, listener_ids });
      for (const { name, config } of filters)
        await api.create("/plugins", { name, config, route_id: created.id });
    }
    return port;
  };

  const ask = async (port: number, row: Row) => {
    const { host = `127.0.0.1:${port}`, path = "/", method = "GET", headers = {} } = row;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      redirect: "manual",
      headers: { Host: host, ...headers },
    });
    const text = await response.text();
    return {
      response,
      seen: text.startsWith('{"backend"') ? (JSON.parse(text) as Captured) : null,
    };
  };
  return { api, captured, start, ask };
}

/** Echoes the request after `x-delay` milliseconds, with the fields that `x-echo-set-header` names. */
function backendServer(backend: Backend, captured: Captured[]) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, own) {
      if (own.upgrade(request)) return undefined;
      const { pathname, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      const seen = { backend, method: request.method, path: pathname + search, headers };
      captured.push(seen);
      await Bun.sleep(Number(headers["x-delay"] ?? 0));
      const more = (headers["x-echo-set-header"] ?? "").split(",").filter((each) => each !== "");
      const fields = more.map((each) => each.split(":").map((part) => part.trim()));
      return Response.json(seen, { headers: fields as [string, string][] });
    },
    websocket: {
      message: (socket, message) => {
        socket.send(`${backend} ${String(message)}`);
      },
    },
  });
  return { backend, port: server.port ?? 0, stop: () => server.stop(true) };
}

/** One conformance test by its original name: its setup, and a test for each request. */
export function conformance(world: World, name: string, setup: Setup, rows: readonly Row[]): void {
  describe(name, () => {
    let port = 0;
    beforeAll(async () => {
      port = await world.start(setup);
    });
    test.each(rows.map((row) => [titleOf(row), row] as const))("%s", async (_, row) => {
      expectRow(await world.ask(port, row), row);
    });
  });
}

export function expectRow(
  { response, seen }: { readonly response: Response; readonly seen: Captured | null },
  row: Row,
): void {
  expect(response.status).toBe(row.status ?? 200);
  if (row.backend !== undefined) expect(seen?.backend).toBe(row.backend);
  if (row.seenPath !== undefined) expect(seen?.path).toBe(row.seenPath);
  for (const [field, value] of Object.entries(row.seen ?? {}))
    expect([field, seen?.headers[field.toLowerCase()] ?? null]).toEqual([field, value]);
  for (const [field, value] of Object.entries(row.answer ?? {}))
    expect([field, response.headers.get(field)]).toEqual([field, value]);
}

function titleOf({ host = "", path = "/", method = "GET", headers, status, backend }: Row): string {
  const fields = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  const result = backend ?? status ?? 200;
  return [`${method} ${host}${path}`, ...fields, `is ${result}`].join(", ");
}
