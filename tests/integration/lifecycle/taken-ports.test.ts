// A port or an address that the stored configuration names and this machine cannot give: the gateway starts, says so, and recovers.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probePort } from "../../../src/supervisor/port-probe.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";

const scratch: string[] = [];
afterAll(() => {
  for (const dir of scratch) rmSync(dir, { recursive: true });
});

function newDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), "sluice-taken-"));
  scratch.push(dir);
  return dir;
}

const holdTcp = (port: number) =>
  Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });

/** A stopped gateway with a route that responds, one for each engine. */
async function stoppedGateway(engine = "sluice", change: (gateway: Gateway) => unknown = () => {}) {
  const gateway = await startGateway({ dataDir: newDirectory() });
  // The first one is the default, so that no revision is made for it.
  if (engine === "bun")
    for (const name of ["http", "https"])
      await gateway.ok("PATCH", `/api/v1/listeners/${name}`, { engine, max_header_bytes: null });
  await change(gateway);
  await gateway.stop();
  return gateway;
}

const statusOf = async (port: number) =>
  (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } })).status;

const readiness = async (gateway: Gateway) => {
  const response = await gateway.api("GET", "/readyz");
  return { status: response.status, text: await response.text() };
};

describe.each(["sluice", "bun"])(
  "the port of a listener of engine %s is taken at a start",
  (engine) => {
    test("the gateway serves the others, says so, and listens as soon as the port is free", async () => {
      const gateway = await stoppedGateway(engine);
      const { httpPort, httpsPort } = gateway;
      const holder = holdTcp(httpsPort);
      try {
        await gateway.start();
        expect(await statusOf(httpPort)).toBe(404);
        expect(await readiness(gateway)).toEqual({
          status: 503,
          text: `{"error":"listener \\"https\\" does not listen on port ${httpsPort}: address already in use"}`,
        });
        const status = await gateway.ok("GET", "/api/v1/admin/status");
        expect(status.unbound_ports).toMatchObject([
          { object: "listener", name: "https", transport: "tcp", port: httpsPort },
        ]);
        expect(status.warnings).toContain(
          `listener "https" does not listen on port ${httpsPort}: address already in use`,
        );
        const failure = gateway.log.find(({ level }) => level === "error");
        expect(failure?.message).toContain(`(pid ${process.pid})`);
        const serving = gateway.log.findLast(({ message }) => message === "serving");
        expect(serving?.["listeners"]).toEqual([`http://127.0.0.1:${httpPort}`]);
        // A change of anything else is made as usual, and a new object on the port is refused.
        await gateway.ok("PATCH", "/api/v1/listeners/https", { description: "waits" });
        const other = {
          name: "other",
          address: "127.0.0.1",
          port: httpsPort,
          protocol: "https",
          hosts: ["a.test"],
        };
        expect((await gateway.api("POST", "/api/v1/listeners", other)).status).toBe(409);
        holder.stop(true);
        await eventually(async () => (await readiness(gateway)).status === 200);
        const response = await fetch(`https://127.0.0.1:${httpsPort}/`, {
          tls: { rejectUnauthorized: false },
        });
        expect(response.status).toBe(404);
        expect((await gateway.ok("GET", "/api/v1/admin/status")).unbound_ports).toEqual([]);
      } finally {
        holder.stop(true);
        await gateway.stop();
      }
    });

    test("a change of the listener acts at once, and one to another taken port is refused", async () => {
      const gateway = await stoppedGateway(engine);
      using first = holdTcp(gateway.httpPort);
      using second = holdTcp(0);
      try {
        await gateway.start();
        const path = "/api/v1/listeners/http";
        const refused = await gateway.api("PATCH", path, { port: second.port });
        expect([refused.status, await refused.text()]).toEqual([
          409,
          expect.stringContaining("address already in use"),
        ]);
        expect((await gateway.ok("GET", path)).port).toBe(first.port);
        const port = quietPort();
        await gateway.ok("PATCH", path, { port });
        expect(await statusOf(port)).toBe(404);
        expect((await readiness(gateway)).status).toBe(200);
      } finally {
        await gateway.stop();
      }
    });

    test("all ports are taken, with one worker", async () => {
      const gateway = await stoppedGateway(engine);
      using first = holdTcp(gateway.httpPort);
      using second = holdTcp(gateway.httpsPort);
      try {
        await gateway.start(["--workers", "1"]);
        const { text } = await readiness(gateway);
        for (const { port } of [first, second]) expect(text).toContain(`on port ${port}:`);
      } finally {
        await gateway.stop();
      }
    });
  },
);

describe("other places that cannot be bound", () => {
  test("an address of another machine, as after the restore of a backup", async () => {
    const gateway = await stoppedGateway();
    const set = [
      "listeners",
      "set",
      "http",
      "--address",
      "203.0.113.9",
      "--data-dir",
      gateway.dataDir,
    ];
    expect((await runCommand(set)).stderr).toBe("This is revision 2 now.\n");
    try {
      await gateway.start();
      expect((await readiness(gateway)).text).toContain(
        `listener \\"http\\" does not listen on port ${gateway.httpPort}: no such address on this machine`,
      );
    } finally {
      await gateway.stop();
    }
  });

  test("the UDP port of HTTP/3: the listener serves over TCP, without an offer of HTTP/3", async () => {
    const gateway = await stoppedGateway("sluice", (running) =>
      running.ok("PATCH", "/api/v1/listeners/https", { http3: true }),
    );
    const { httpsPort } = gateway;
    const holder = await Bun.udpSocket({ hostname: "127.0.0.1", port: httpsPort });
    const get = () =>
      fetch(`https://127.0.0.1:${httpsPort}/`, {
        tls: { rejectUnauthorized: false },
        headers: { connection: "close" },
      });
    try {
      await gateway.start();
      expect((await readiness(gateway)).text).toContain(`does not listen on UDP port ${httpsPort}`);
      expect((await get()).headers.get("alt-svc")).toBeNull();
      holder.close();
      await eventually(async () => (await readiness(gateway)).status === 200);
      expect((await get()).headers.get("alt-svc")).toContain("h3");
    } finally {
      holder.close();
      await gateway.stop();
    }
  });

  test.each(["tcp", "udp"] as const)(
    "a %s port of the range of a stream route",
    async (protocol) => {
      const first = quietPort(3);
      const gateway = await stoppedGateway("sluice", async (running) => {
        const service = { name: "back", protocol, targets: [{ host: "127.0.0.1", port: 9 }] };
        await running.ok("POST", "/api/v1/services", service);
        const range = `${first}-${first + 2}`;
        const route = { name: "many", protocol, service_id: "back", listen_address: "127.0.0.1" };
        await running.ok("POST", "/api/v1/stream-routes", { ...route, port_range: range });
      });
      const holder =
        protocol === "udp"
          ? await Bun.udpSocket({ hostname: "127.0.0.1", port: first + 1 })
          : holdTcp(first + 1);
      const release = () => ("close" in holder ? holder.close() : holder.stop(true));
      const isBound = async (port: number) => {
        const place = { address: "127.0.0.1", port, owner: "" };
        return (await probePort({ ...place, transport: protocol })) !== null;
      };
      try {
        await gateway.start();
        const { unbound_ports: ports } = await gateway.ok("GET", "/api/v1/admin/status");
        expect(ports).toMatchObject([
          { object: "stream_route", name: "many", transport: protocol, port: first + 1 },
        ]);
        expect([await isBound(first), await isBound(first + 2)]).toEqual([true, true]);
        release();
        await eventually(async () => (await readiness(gateway)).status === 200);
        expect(await isBound(first + 1)).toBe(true);
      } finally {
        release();
        await gateway.stop();
      }
    },
  );
});

describe("sluice listeners", () => {
  test("lists and changes them while the gateway is stopped, each change a revision", async () => {
    const gateway = await stoppedGateway();
    const { dataDir, httpPort, httpsPort } = gateway;
    const run = (...words: string[]) => runCommand(["listeners", ...words, "--data-dir", dataDir]);
    expect((await run()).stdout).toBe(
      `http  http://127.0.0.1:${httpPort}  the gateway is stopped\n` +
        `https  https://127.0.0.1:${httpsPort}  the gateway is stopped\n`,
    );
    const port = quietPort();
    expect((await run("set", "http", "--port", String(port))).code).toBe(0);
    expect((await run("disable", "https")).stdout).toContain(
      `https://127.0.0.1:${httpsPort}  disabled\n`,
    );
    try {
      await gateway.start();
      expect(await statusOf(port)).toBe(404);
      expect((await run("list")).stdout).toContain(`http  http://127.0.0.1:${port}  listens\n`);
      const revisions = await gateway.ok("GET", "/api/v1/revisions");
      expect(JSON.stringify(revisions)).toContain('update listener \\"http\\"');
      // In the running gateway, at once.
      using holder = holdTcp(0);
      const refused = await run("set", "http", "--port", String(holder.port));
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain("address already in use");
      expect((await run("delete", "https")).stdout).not.toContain("https");
    } finally {
      await gateway.stop();
    }
  });

  test.each([
    { words: ["sett", "http"], says: 'did you mean "set"?' },
    { words: ["set"], says: "name the listener: sluice listeners set NAME" },
    { words: ["set", "http"], says: "set needs --address, --port or both" },
    { words: ["set", "http", "--port", "x"], says: "--port: must be a number" },
    { words: ["list", "http"], says: 'unexpected argument "http"' },
  ])("$words is a usage error", async ({ words, says }) => {
    const result = await runCommand(["listeners", ...words]);
    expect([result.code, result.stderr]).toEqual([2, expect.stringContaining(says)]);
  });

  test.each([
    { words: ["delete", "none"], says: 'listener "none" does not exist' },
    { words: ["set", "http", "--port", "0"], says: "port: " },
    { words: ["set", "http", "--address", "somewhere"], says: "address: " },
  ])("$words is refused, and nothing has changed", async ({ words, says }) => {
    const gateway = await stoppedGateway();
    const run = (...more: string[]) =>
      runCommand(["listeners", ...more, "--data-dir", gateway.dataDir]);
    const before = await run();
    const result = await run(...words);
    expect([result.code, result.stderr]).toEqual([1, expect.stringContaining(says)]);
    expect(await run()).toEqual(before);
  });
});
