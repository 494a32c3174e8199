// Listeners change while the gateway runs: a response means that every worker listens, or nothing changed.
import { describe, expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

const statusOf = async (port: number, path = "/"): Promise<number | string> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { connection: "close" },
    });
    await response.arrayBuffer();
    return response.status;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

const loopback = (name: string, fields: object = {}) => ({
  name,
  address: "127.0.0.1",
  port: freePort(),
  ...fields,
});

test("a new listener accepts connections on every worker once the API responds", async () => {
  await api.call("PATCH /settings", { body: { debug_headers: true } });
  for (let round = 0; round < 5; round++) {
    const { id, port } = await api.create("/listeners", loopback(`round ${round}`));
    const workers = new Set<string | null>();
    for (let ask = 0; ask < 40; ask++) {
      const response = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { connection: "close" },
      });
      expect(response.status).toBe(404);
      workers.add(response.headers.get("x-sluice-worker"));
    }
    expect(workers.size).toBe(2);
    expect((await api.call(`DELETE /listeners/${id}`)).body).toEqual({ deleted: true });
    expect(await statusOf(port)).toBe("ECONNREFUSED");
  }
});

test("a port of another program is 409 with its name, and nothing is stored", async () => {
  const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const before = (await api.call("GET /listeners")).body;
  const answer = await api.call("POST /listeners", {
    body: { name: "taken", address: "127.0.0.1", port: other.port },
  });
  expect(answer.status).toBe(409);
  expect(answer.body.error).toContain("address already in use");
  expect(answer.body.error).toContain(`(pid ${process.pid})`);
  expect((await api.call("GET /listeners")).body).toEqual(before);
  other.stop(true);
});

test("a port of the gateway itself is 409 with the owner's name", async () => {
  const { httpPort } = api.gateway;
  const taken = { name: "again", address: "127.0.0.1", port: httpPort };
  expect((await api.call("POST /listeners", { body: taken })).body.error).toContain(
    'belongs to listener "http"',
  );
  const management = { ...taken, port: api.port };
  const answer = await api.call("POST /listeners", { body: management });
  expect(answer.status).toBe(409);
  expect(answer.body.error).toContain("belongs to the management API");
});

test("an address of another machine is 400", async () => {
  const answer = await api.call("POST /listeners", {
    body: { name: "elsewhere", address: "203.0.113.9", port: freePort() },
  });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain("no such address on this machine");
});

test("a listener that changes its port opens it at once and closes the old one", async () => {
  const { id, port } = await api.create("/listeners", loopback("moving"));
  const next = freePort();
  const moved = await api.call(`PATCH /listeners/${id}`, { body: { port: next } });
  expect(moved.status).toBe(200);
  expect(await statusOf(next)).toBe(404);
  expect(await statusOf(port)).toBe("ECONNREFUSED");
});

test("a disabled listener accepts nothing until enabled again", async () => {
  const { id, port } = await api.create("/listeners", loopback("switch"));
  await api.call(`PATCH /listeners/${id}`, { body: { enabled: false } });
  expect(await statusOf(port)).toBe("ECONNREFUSED");
  await api.call(`PATCH /listeners/${id}`, { body: { enabled: true } });
  expect(await statusOf(port)).toBe(404);
});

test("routes can be bound to a listener, which then cannot be deleted without them", async () => {
  const inside = await api.create("/listeners", loopback("inside"));
  const outside = await api.create("/listeners", loopback("outside"));
  const closed = { retry_after: 7, html: "closed" };
  await api.create("/routes", {
    name: "internal",
    paths: ["/internal"],
    listener_ids: ["inside"],
    maintenance: closed,
  });
  expect(await statusOf(inside.port, "/internal")).toBe(503);
  expect(await statusOf(outside.port, "/internal")).toBe(404);
  const refused = await api.call("DELETE /listeners/inside");
  expect(refused.status).toBe(409);
  expect(refused.body.error).toBe('listener "inside" is used by route "internal"');
  const cascade = await api.call("DELETE /listeners/inside?cascade=1");
  expect(cascade.headers.get("x-deleted")).toBe('route "internal"');
  expect((await api.call("GET /routes/internal")).status).toBe(404);
});

test("a change of limits does not touch connections", async () => {
  const { id, port } = await api.create("/listeners", loopback("steady"));
  const lines: string[] = [];
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, bytes) => void lines.push(String(bytes).split("\r\n")[0] ?? ""),
      close: () => void lines.push("closed"),
    },
  });
  const ask = async () => {
    const before = lines.length;
    socket.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    await eventually(() => lines.length > before, { intervalMs: 1 });
    return lines.at(-1);
  };
  expect(await ask()).toContain("404");
  await api.call(`PATCH /listeners/${id}`, { body: { max_body_bytes: 1000 } });
  await api.create("/listeners", loopback("neighbour"));
  expect(await ask()).toContain("404");
  socket.terminate();
});

test("an https listener serves TLS with HTTP/1.1 and HTTP/2", async () => {
  const { port } = await api.create("/listeners", loopback("secure", { protocol: "https" }));
  const response = await fetch(`https://127.0.0.1:${port}/`, {
    tls: { rejectUnauthorized: false },
  });
  expect(response.status).toBe(404);
});

describe("the default of max_header_bytes", () => {
  const patch = (id: string, body: object) => api.call(`PATCH /listeners/${id}`, { body });

  test("is that of the engine for a new listener, and a stored one has its own", async () => {
    const own = await api.create("/listeners", loopback("heads-own"));
    const other = await api.create("/listeners", loopback("heads-other", { engine: "bun" }));
    expect([own.max_header_bytes, other.max_header_bytes]).toEqual([32_768, 16_384]);
    const moved = await patch(other.id, { engine: "sluice" });
    expect(moved.body.max_header_bytes).toBe(16_384);
    const restored = await patch(other.id, { max_header_bytes: null });
    expect(restored.body.max_header_bytes).toBe(32_768);
    for (const { id } of [own, other]) await api.call(`DELETE /listeners/${id}`);
  });

  test("a head of more than 16 KB passes on a new listener of the engine sluice only", async () => {
    for (const [engine, outcome] of [
      ["bun", 431],
      ["sluice", 404],
    ] as const) {
      const { id, port } = await api.create("/listeners", loopback(`heads-${engine}`, { engine }));
      const head = `GET / HTTP/1.1\r\nHost: h\r\nX-Long: ${"v".repeat(20_000)}\r\n`;
      const response = await sendRaw(`${head}Connection: close\r\n\r\n`, { port });
      expect([engine, response.split(" ", 2)[1]]).toEqual([engine, String(outcome)]);
      await api.call(`DELETE /listeners/${id}`);
    }
  });

  test("a larger value is refused with another engine, also by a change of the engine alone", async () => {
    const { id } = await api.create("/listeners", loopback("heads-back", { engine: "sluice" }));
    const refused = await patch(id, { engine: "bun" });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toBe(
      'max_header_bytes: must be at most 16384 with engine "bun": lower it (null is its default), or keep "sluice"',
    );
    const back = await patch(id, { engine: "bun", max_header_bytes: null });
    expect([back.status, back.body.max_header_bytes]).toEqual([200, 16_384]);
    await api.call(`DELETE /listeners/${id}`);
  });

  test("holds for a configuration file, and a minimal export has only another value", async () => {
    const file = [
      loopback("heads-file", { engine: "sluice" }),
      loopback("heads-kept", { engine: "sluice", max_header_bytes: 16_384 }),
    ];
    await api.call("POST /import", { body: { format: 1, listeners: file } });
    const stored = async () => {
      const { body } = await api.call("GET /listeners");
      return body
        .filter(({ name }: { name: string }) => /^heads-(?:file|kept)$/.test(name))
        .map(({ max_header_bytes }: { max_header_bytes: number }) => max_header_bytes);
    };
    expect(await stored()).toEqual([32_768, 16_384]);
    const { body: minimal } = await api.call("GET /export?minimal=true");
    const listeners = minimal.listeners.filter(({ name }: { name: string }) =>
      file.some((one) => one.name === name),
    );
    expect(
      listeners.map(({ max_header_bytes }: { max_header_bytes?: number }) => max_header_bytes),
    ).toEqual([undefined, 16_384]);
    await api.call("POST /import", { body: { format: 1, listeners } });
    expect(await stored()).toEqual([32_768, 16_384]);
    for (const { name } of file) await api.call(`DELETE /listeners/${name}`);
  });
});
