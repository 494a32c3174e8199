// The node that does the work of one: what happens to certificates and alerts when it is stopped or dies in the middle.
// SLUICE_FLEET_KILLS (5) of 100 and more: it dies at each step of an order.
import { expect } from "bun:test";
import type { Sent } from "../../src/observe/alerts/notice.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import type { Gateway } from "../support/gateway.ts";
import { TestFleet } from "../support/fleet.ts";
import { needs } from "../support/needs.ts";
import { Pebble } from "../support/pebble.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { createSource, openSource } from "../support/fleet-source.ts";

const { afterEach, test } = needs("executable", "postgres");

const isFull = Number(process.env["SLUICE_FLEET_KILLS"] ?? 5) >= 100;

const cleanups = cleanupsOf(afterEach);

/** What a node says: the name of the node that leads; null: none does. */
async function leaderOn(node: Gateway): Promise<string | null> {
  const nodes: { name: string; leader: boolean }[] = await node.ok("GET", "/api/v1/nodes");
  const leaders = nodes.filter(({ leader }) => leader);
  expect(leaders.length).toBeLessThan(2);
  return leaders[0]?.name ?? null;
}

const epochIn = async (fleet: TestFleet): Promise<number> => {
  const [row] = await fleet.query((sql) => sql`select epoch::float8 from sluice.lease`);
  return row.epoch;
};

/** A receiver of webhooks. */
function startHook() {
  const received: string[] = [];
  const hook = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { event, status, gateway, object } = (await request.json()) as Sent;
      received.push(`${event} ${status} ${object.name} by ${gateway}`);
      return new Response();
    },
  });
  cleanups.push(() => hook.stop(true));
  return { received, url: `http://127.0.0.1:${hook.port}/` };
}

test("what begins while the leader is stopped is reported once, by the next leader", async () => {
  const hook = startHook();
  const fleet = await TestFleet.start(3);
  cleanups.push(() => fleet.stop());
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  expect(await leaderOn(second)).toBe("n1");
  const target = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  cleanups.push(() => target.stop(true));
  const { port } = target;
  const events = ["target_down", "target_up"];
  const alert = { name: "a", type: "webhook", events, config: { url: hook.url } };
  await first.ok("POST", "/api/v1/alerts", alert);
  await first.ok("POST", "/api/v1/services", {
    name: "s",
    health: { active: { enabled: true, type: "tcp", interval: 1, unhealthy_threshold: 1 } },
    targets: [{ host: "127.0.0.1", port }],
  });
  const stateOn = async (node: Gateway) => {
    const [{ health }] = await node.ok("GET", "/api/v1/targets?service_id=s");
    return health.state as string;
  };
  for (const node of fleet.nodes) await eventually(async () => (await stateOn(node)) === "healthy");
  first.signal("SIGSTOP");
  target.stop(true);
  await eventually(() => hook.received.length === 1);
  const leader = await leaderOn(second);
  expect(["n2", "n3"]).toContain(leader ?? "");
  expect(hook.received).toEqual([`target_down firing 127.0.0.1:${port} by ${leader}`]);
  expect(await epochIn(fleet)).toBe(2);
  // The first one has seen nothing yet, and has no part in it when it has.
  first.signal("SIGCONT");
  await eventually(async () => (await stateOn(first)) === "unhealthy");
  await eventually(async () => (await first.ok("GET", "/api/v1/nodes/n1")).state === "serving");
  const messages = async (node: Gateway) =>
    (await node.ok("GET", "/api/v1/alerts/a/messages")).length as number;
  expect(await messages(first)).toBe(0);
  // The next leader knows that it was sent: the end of the incident is the first that it sends.
  await (leader === "n2" ? second : third).kill9();
  await eventually(async () => (await epochIn(fleet)) === 3);
  const again = Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
  cleanups.push(() => again.stop(true));
  await eventually(() => hook.received.length > 1);
  expect(hook.received[1]).toStartWith(`target_up resolved 127.0.0.1:${port} by `);
  expect(hook.received[1]).not.toEndWith(leader ?? "");
});

test("a node that is away is reported by the leader, one that is cut off by itself", async () => {
  const hook = startHook();
  const fleet = await TestFleet.start(3, { wired: true });
  cleanups.push(() => fleet.stop());
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  expect(await leaderOn(second)).toBe("n1");
  const alert = { name: "a", type: "webhook", events: ["node_failing"], config: { url: hook.url } };
  await first.ok("POST", "/api/v1/alerts", { ...alert, quiet_seconds: 0 });
  await third.kill9();
  await eventually(() => hook.received.length === 1);
  expect(hook.received).toEqual(["node_failing firing n3 by n1"]);
  await third.start();
  await eventually(() => hook.received.length === 2);
  expect(hook.received[1]).toBe("node_failing resolved n3 by n1");
  const said = () => hook.received.slice(2).toSorted();
  fleet.wires[1]?.cut();
  await eventually(() => said().length >= 2);
  expect(said()).toEqual(["node_failing firing n2 by n1", "node_failing firing n2 by n2"]);
  fleet.wires[1]?.heal();
  await eventually(() => said().length >= 4);
  expect(said().slice(2)).toEqual([
    "node_failing resolved n2 by n1",
    "node_failing resolved n2 by n2",
  ]);
});

const STEPS = ["before_append", "after_append"].flatMap((step) =>
  [1, 2, 3, 4].map((entry) => `${step}:${entry}`),
);
/** Before the order is in the log, while the CA looks, and before the certificate is installed. */
const CHOSEN = ["before_append:1", "after_append:2", "before_append:4"];

needs("executable", "postgres", "pebble", "network namespaces").test.each(isFull ? STEPS : CHOSEN)(
  "a certificate is issued once when the leader dies at %s of its order",
  async (step) => {
    const fleet = await TestFleet.start(3, {
      networks: true,
      node: (name) => (name === "n1" ? { env: { SLUICE_FAIL_POINT: step } } : {}),
    });
    cleanups.push(() => fleet.stop());
    const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
    const pebble = new Pebble({ hostname: fleet.hostname, httpPort: 8080, tlsPort: 8443 });
    cleanups.push(() => pebble.stop());
    await pebble.start();
    await pebble.setAddress("a.example", [fleet.addresses[2] ?? ""]);
    expect(await leaderOn(second)).toBe("n1");
    await second.ok("POST", "/api/v1/acme/accounts", {
      name: "pebble",
      directory_url: pebble.directoryUrl,
      ca_certificates: pebble.trusted,
      terms_agreed: true,
    });
    const certificate = { name: "c", source: "acme", domains: ["a.example"], challenge: "http-01" };
    await second.ok("POST", "/api/v1/certificates", certificate);
    await first.exited();
    const held = async (node: Gateway) => {
      const { status, last_error, fingerprint } = await node.ok("GET", "/api/v1/certificates/c");
      if (status !== "valid") throw new Error(`${status}: ${last_error}`);
      return fingerprint as string;
    };
    const fingerprint = await eventually(() => held(third));
    expect(await eventually(() => held(second))).toBe(fingerprint);
    expect(pebble.output.match(/Issued certificate serial/g)).toHaveLength(1);
    // An order that the leader asked for and could not write down is the only one that is not resumed.
    const orders = step === "before_append:1" ? 2 : 1;
    expect(pebble.output.match(/Added order/g)).toHaveLength(orders);
  },
  60_000,
);

needs("postgres").test(
  "nobody has the lease while the present node with the lowest id is of a version without leases",
  async () => {
    const { source } = await openSource(cleanups);
    const beat = (id: string, formatMax: number, state = "serving") =>
      source.beat({
        ...{
          id,
          name: id,
          url: "",
          version: "0",
          formatMax,
          stored: 0,
          served: 0,
          state,
          error: "",
        },
        ...{ draining: false, clockOffsetMs: 0, mac: new Uint8Array() },
      });
    const [ours, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const look = async (holder: string) =>
      (await source.lease({ holder, nodeId: "b", ms: 60_000 })).holder;
    for (const [id, format] of [["a", 1] as const, ["b", 2] as const, ["c", 1] as const])
      await beat(id, format);
    expect(await look(ours)).toBe("");
    await beat("a", 1, "draining");
    expect([await look(ours), await look(other)]).toEqual([ours, ours]);
    // It comes back, and has the work again: the holder stops at its next look.
    await beat("a", 1);
    expect([await look(ours), await look(other)]).toEqual(["", ours]);
    await beat("a", 2);
    expect([await look(ours), await look(other)]).toEqual([ours, ours]);
  },
);

needs("postgres").test("a lease that was given outlives a crash of the database", async () => {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  const open = async () => {
    const source = createSource(postgres);
    cleanups.push(() => source.close());
    await source.open();
    return source;
  };
  const [ours, other] = [crypto.randomUUID(), crypto.randomUUID()];
  const first = await open();
  expect((await first.lease({ holder: ours, nodeId: "a", ms: 60_000 })).holder).toBe(ours);
  await postgres.kill();
  await postgres.start();
  const second = await open();
  expect((await second.lease({ holder: other, nodeId: "b", ms: 60_000 })).holder).toBe(ours);
});
