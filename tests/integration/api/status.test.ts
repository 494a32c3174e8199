// Health, readiness and status, in normal operation and while workers lag behind.
import { describe, expect, test } from "bun:test";
import { createManagementApi } from "../../../src/api/server.ts";
import { controlPlane } from "../../unit/control/fixture.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

test("/healthz returns ok", async () => {
  const { status, body } = await api.callRoot("GET /healthz");
  expect({ status, body }).toEqual({ status: 200, body: { status: "ok" } });
});

test("/readyz returns the revision that all workers serve", async () => {
  const { status, body } = await api.callRoot("GET /readyz");
  expect({ status, body }).toEqual({
    status: 200,
    body: { status: "ready", revision: 1, workers: 2 },
  });
});

test("/api/v1/admin/status is public without secrets", async () => {
  const { body } = await api.call("GET /admin/status");
  expect(body).toEqual({
    name: "sluice",
    version: expect.any(String),
    authentication: "disabled",
    setup_required: true,
    sso_enabled: false,
    unbound_ports: [],
    uptime_seconds: expect.any(Number),
    revision: 1,
    read_only: false,
    management_access: "local",
    workers: 2,
    workers_ready: 2,
    warnings: [],
    fleet: null,
  });
});

test("the default listeners exist, by id and by name", async () => {
  const { body } = await api.call("GET /listeners");
  // biome-ignore lint/suspicious/noExplicitAny: a response
  expect(body.map((listener: any) => [listener.name, listener.protocol])).toEqual([
    ["http", "http"],
    ["https", "https"],
  ]);
  expect((await api.call("GET /listeners/http")).body).toEqual(body[0]);
  expect((await api.call(`GET /listeners/${body[1].id}`)).body).toEqual(body[1]);
});

describe("seen from inside", () => {
  const start = () => {
    const { control, steps, logged } = controlPlane();
    const inner = createManagementApi({
      control,
      clock: { now: () => 61_500 },
      log: {
        write() {},
        debug() {},
        info() {},
        warn() {},
        error: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`),
      },
      version: "0",
      startedAt: 0,
      boundHost: "::",
    });
    const ask = async (line: string, peer = "127.0.0.1", init: RequestInit = {}) => {
      const [method = "GET", path = "/"] = line.split(" ");
      const request = new Request(`http://localhost${path}`, { method, ...init });
      const response = await inner.handle(request, peer);
      return { status: response.status, headers: response.headers, body: await response.json() };
    };
    return { control, steps, logged, ask };
  };

  test("/readyz is 500 while a worker does not serve the current revision", async () => {
    const { steps, ask } = start();
    steps.status = () => ({ workers: 2, ready: 1, revision: 1 });
    const { status, body } = await ask("GET /readyz");
    expect(status).toBe(500);
    expect(body.error).toBe("1 of 2 workers serve revision 1, which is current");
    expect((await ask("GET /api/v1/admin/status")).body).toMatchObject({
      workers: 2,
      workers_ready: 1,
      uptime_seconds: 61,
    });
  });

  test("an unexpected failure sends the client an id and logs the reason", async () => {
    const { control, logged, ask } = start();
    control.resources.routes.list = () => {
      throw new TypeError("undefined is not a function");
    };
    const { status, body, headers } = await ask("GET /api/v1/routes");
    const id = headers.get("x-request-id");
    expect(status).toBe(500);
    expect(body).toEqual({ error: `internal error, request id ${id}` });
    expect(logged.filter((line) => line.includes(`"${id}"`))).toHaveLength(1);
  });

  test("a full disk is reported, and logged with its cause", async () => {
    const { steps, logged, ask } = start();
    steps.fail.commit = Object.assign(new Error("database or disk is full"), {
      code: "SQLITE_FULL",
    });
    const { status, body } = await ask("POST /api/v1/services", "127.0.0.1", {
      body: '{"name":"a"}',
      headers: { "content-type": "application/json" },
    });
    expect(status).toBe(500);
    expect(body.error).toStartWith("the change could not be stored");
    expect(logged.at(-1)).toContain("a management request failed");
  });

  const peers = [
    { peer: "192.0.2.7", status: 200, why: "inside" },
    { peer: "::ffff:192.0.2.7", status: 200, why: "inside, as a dual-stack socket says it" },
    { peer: "2001:db8::1", status: 200, why: "inside the IPv6 network" },
    { peer: "198.51.100.1", status: 403, why: "outside" },
    { peer: "127.0.0.1", status: 403, why: "loopback is not listed" },
    { peer: "", status: 403, why: "an unknown address is in no network" },
  ];
  test.each(peers)("admin_allowed_cidrs and $peer: $why", async ({ peer, status }) => {
    const { ask } = start();
    const answer = await ask("PATCH /api/v1/settings?force=1", "127.0.0.1", {
      body: '{"admin_allowed_cidrs":["192.0.2.0/24","2001:db8::/32"]}',
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(200);
    expect((await ask("GET /api/v1/services", peer)).status).toBe(status);
    expect((await ask("GET /healthz", peer)).status).toBe(200);
  });
});
