// How clients see the fleet: draining, forgetting, waiting for nodes, requiring them, events, metrics, readiness, status.
import { describe, expect } from "bun:test";
import { openEvents } from "../support/event-client.ts";
import { clockOff, fakeTime } from "../support/faketime.ts";
import { type NodeOptions, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { readMetrics } from "../support/metrics-text.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "postgres");

const create = async (node: Gateway, options: { query?: string; require?: string } = {}) => {
  const { query = "", require } = options;
  const began = performance.now();
  const response = await node.api(
    "POST",
    `/api/v1/services${query}`,
    { name: `s-${Bun.randomUUIDv7()}` },
    require === undefined ? {} : { "sluice-require-nodes": require },
  );
  const { status, headers } = response;
  return {
    status,
    nodes: headers.get("sluice-nodes"),
    missing: headers.get("sluice-nodes-missing"),
    text: await response.text(),
    ms: performance.now() - began,
  };
};

const servicesOf = async (node: Gateway): Promise<number> =>
  (await node.ok("GET", "/api/v1/services")).length;

const stateOf = async (node: Gateway, name: string): Promise<string> =>
  (await node.ok("GET", `/api/v1/nodes/${name}`)).state;

const readiness = async (node: Gateway) => {
  const response = await node.api("GET", "/readyz");
  return { status: response.status, text: await response.text() };
};

needs("executable", "postgres", fakeTime).test(
  "a node whose clock is off says by how much, in its log, its metrics and to all nodes",
  async () => {
    const env = clockOff(300);
    const node = (name: string): NodeOptions => (name === "n2" ? { env } : {});
    const fleet = await TestFleet.start(2, { node });
    try {
      const [first, second] = fleet.nodes as [Gateway, Gateway];
      const offset = async () => (await first.ok("GET", "/api/v1/nodes/n2")).clock_offset_ms;
      await eventually(async () => Math.abs((await offset()) - 300_000) < 5000);
      const own = (await first.ok("GET", "/api/v1/nodes/n1")).clock_offset_ms;
      expect(Math.abs(own)).toBeLessThan(1000);
      const text = await (await second.api("GET", "/metrics")).text();
      const seconds = readMetrics(text, "prometheus").sum("sluice_fleet_clock_offset_seconds");
      expect(Math.abs(seconds - 300)).toBeLessThan(5);
      const warnings = second.log.filter(({ message }) => message.includes("check NTP"));
      expect(warnings.length).toBe(1);
      expect(first.stderr).not.toContain("check NTP");
      expect((await create(first, { require: "all" })).nodes).toBe("2/2");
    } finally {
      await fleet.stop();
    }
  },
  60_000,
);

describe("two nodes", () => {
  let fleet: TestFleet;
  const [at0, at1] = [() => fleet.nodes[0] as Gateway, () => fleet.nodes[1] as Gateway];
  beforeAll(async () => {
    fleet = await TestFleet.start(2);
  });
  afterAll(() => fleet?.stop());

  test("a drained node is not ready, serves and follows, and stays drained after a restart", async () => {
    const [first, second] = [at0(), at1()];
    const drained = await first.ok("POST", "/api/v1/nodes/n2/drain");
    expect([drained.name, drained.state, drained.draining]).toEqual(["n2", "draining", true]);
    expect((await readiness(second)).status).toBe(503);
    expect((await readiness(second)).text).toContain("draining");
    expect((await readiness(first)).status).toBe(200);
    expect((await create(first)).nodes).toBe("2/2");
    expect(await servicesOf(second)).toBe(await servicesOf(first));
    await second.restart();
    expect((await readiness(second)).status).toBe(503);
    await eventually(async () => (await stateOf(first, "n2")) === "draining");
    expect((await second.ok("GET", "/api/v1/admin/status")).fleet.state).toBe("draining");
    const port = new URL(second.admin).port;
    const check = await runCommand(["healthcheck", "--admin", `127.0.0.1:${port}`], {
      binary: executable,
    });
    expect(check.code).toBe(0);
    const audit = await first.ok("GET", "/api/v1/audit?kind=node");
    expect(audit.at(-1)).toMatchObject({ action: "drain", object_name: "n2", result: "ok" });
    const undone = await second.ok("DELETE", "/api/v1/nodes/n2/drain");
    expect([undone.state, undone.draining]).toEqual(["serving", false]);
    expect((await readiness(second)).status).toBe(200);
  });

  test("a node that is present is not forgotten, and a node that does not exist is not found", async () => {
    for (const [node, name] of [
      [at0(), "n1"],
      [at0(), "n2"],
    ] as const) {
      const refused = await node.api("DELETE", `/api/v1/nodes/${name}`);
      expect(refused.status).toBe(409);
      expect(((await refused.json()) as { error: string }).error).toContain("stop it");
    }
    expect((await at0().api("DELETE", "/api/v1/nodes/n9")).status).toBe(404);
    expect((await at0().api("POST", "/api/v1/nodes/n9/drain")).status).toBe(404);
  });

  test("wait and Sluice-Require-Nodes with other values are refused, and nothing is changed", async () => {
    const before = await servicesOf(at0());
    for (const wait of ["31", "-1", "", "soon", "1h"]) {
      const refused = await create(at0(), { query: `?wait=${wait}` });
      expect([wait, refused.status]).toEqual([wait, 400]);
      expect(refused.text).toContain("wait: must be");
    }
    for (const require of ["0", "51", "most", "1.5"]) {
      const refused = await create(at0(), { require });
      expect([require, refused.status]).toEqual([require, 400]);
      expect(refused.text).toContain("Sluice-Require-Nodes: must be");
    }
    expect(await servicesOf(at0())).toBe(before);
    const read = await at0().api("GET", "/api/v1/services?wait=1");
    expect(read.status).toBe(400);
  });

  test("the reply of a request that changes nothing names no nodes", async () => {
    const [node] = [at0()];
    const made = await node.ok("POST", "/api/v1/services", { name: "same" });
    const others = Promise.all(Array.from({ length: 10 }, () => create(at1())));
    let isOver = false;
    void others.finally(() => (isOver = true));
    // Changes of the other node come meanwhile: they are not those of this request.
    while (!isOver) {
      const again = await node.api("PATCH", `/api/v1/services/${made.id}`, { name: "same" });
      expect([again.status, again.headers.get("sluice-nodes")]).toEqual([200, null]);
    }
    expect((await others).map(({ nodes }) => nodes)).toEqual(Array(10).fill("2/2"));
    const dry = await node.api("POST", "/api/v1/services?dry_run=1", { name: "dry" });
    expect(dry.headers.get("sluice-nodes")).toBeNull();
  });

  test("the status names this node, its state and how many nodes are live", async () => {
    const { fleet: status } = await at0().ok("GET", "/api/v1/admin/status");
    expect(status).toMatchObject({ node: "n1", state: "serving", live: 2, nodes: 2 });
    expect(status.served).toBe(status.head);
    expect(Date.parse(status.since)).toBeLessThanOrEqual(Date.now());
    expect(JSON.stringify(status)).not.toContain("127.0.0.1");
  });

  test("metrics show nodes, positions, the database and how long changes take", async () => {
    await create(at0());
    // A node that serves the change says so with its next heartbeat.
    const metrics = await eventually(async () => {
      const text = await (await at0().api("GET", "/metrics")).text();
      const read = readMetrics(text, "prometheus");
      return read.sum("sluice_fleet_nodes", { state: "serving" }) === 2 ? read : null;
    });
    expect(metrics.sum("sluice_node_info", { node: "n1" })).toBe(1);
    expect(metrics.sum("sluice_fleet_nodes", { state: "away" })).toBe(0);
    const head = metrics.sum("sluice_fleet_head_position");
    expect(head).toBeGreaterThan(3);
    expect(metrics.sum("sluice_fleet_served_position")).toBe(head);
    expect(metrics.sum("sluice_fleet_stored_position")).toBe(head);
    expect(metrics.sum("sluice_fleet_lag_seconds")).toBe(0);
    expect(metrics.sum("sluice_fleet_append_seconds_count")).toBeGreaterThan(0);
    expect(metrics.sum("sluice_fleet_ack_seconds_count")).toBeGreaterThan(0);
    expect(metrics.sum("sluice_fleet_database_up")).toBe(1);
    expect(metrics.families.has("sluice_fleet_conflicts_total")).toBe(true);
    expect(metrics.sum("sluice_fleet_doubts_total")).toBe(0);
    expect(Math.abs(metrics.sum("sluice_fleet_clock_offset_seconds"))).toBeLessThan(1);
  });
});

test("the fault of a node is counted, named, an event and a metric, and the node can be forgotten", async () => {
  const fleet = await TestFleet.start(3);
  try {
    const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
    await eventually(async () => (await first.ok("GET", "/api/v1/admin/status")).fleet.nodes === 3);
    const stream = await openEvents(`${first.admin}/api/v1/events?kinds=node`);
    const events = () => stream.events.map(({ data }) => `${data.name} ${data.event}`);
    const expected: string[] = [];
    /** One event for each transition, and no other. */
    const happens = async (line: string) => {
      expected.push(line);
      await eventually(() => events().length >= expected.length);
      expect(events()).toEqual(expected);
    };
    second.signal("SIGSTOP");
    const brief = await create(first, { query: "?wait=0" });
    expect([brief.status, brief.nodes, brief.ms < 1500]).toEqual([200, expect.any(String), true]);
    expect(brief.missing).toContain("n2;lagging");
    // The third node may need longer on a busy machine.
    const usual = await eventually(async () => {
      const made = await create(first, { query: "?wait=300ms" });
      return made.nodes === "2/3" && made.missing === "n2;lagging" ? made : null;
    });
    expect(usual.ms).toBeGreaterThan(300);
    expect(usual.ms).toBeLessThan(1900);

    await happens("n2 away");
    const before = await servicesOf(first);
    const all = await create(first, { require: "all" });
    expect([all.status, await servicesOf(first)]).toEqual([409, before]);
    expect(all.text).toContain("n2 (away)");
    expect(all.text).toContain("nothing was changed");
    expect((await create(first, { require: "3" })).status).toBe(409);
    expect((await create(first, { require: "majority" })).status).toBe(200);
    expect((await create(first, { require: "2" })).status).toBe(200);
    const { warnings } = await first.ok("GET", "/api/v1/admin/status");
    expect(warnings.join()).not.toContain("cannot be stored");
    const text = await (await first.api("GET", "/metrics")).text();
    expect(readMetrics(text, "prometheus").sum("sluice_fleet_nodes", { state: "away" })).toBe(1);

    second.signal("SIGCONT");
    await happens("n2 back");
    expect((await create(first, { require: "all" })).nodes).toBe("3/3");

    await third.kill9();
    await happens("n3 away");
    const forgotten = await first.ok("DELETE", "/api/v1/nodes/n3");
    expect(forgotten.name).toBe("n3");
    await happens("n3 left");
    expect((await create(first)).nodes).toBe("2/2");
    await third.start();
    await happens("n3 joined");
    expect((await create(third, { require: "all" })).nodes).toBe("3/3");
    await third.stop();
    await happens("n3 left");
    stream.close();
  } finally {
    await fleet.stop();
  }
});

test("a node that is cut off says so in events, status and metrics, and stays ready", async () => {
  const fleet = await TestFleet.start(2);
  try {
    const [first] = fleet.nodes as [Gateway];
    const stream = await openEvents(`${first.admin}/api/v1/events?kinds=node`);
    const events = () => stream.events.map(({ data }) => `${data.name} ${data.event}`);
    const ofStatus = async () => (await first.ok("GET", "/api/v1/admin/status")).fleet;
    await eventually(async () => (await ofStatus()).nodes === 2);
    await fleet.postgres.kill();
    await eventually(() => events().includes("n1 cut_off"));
    const status = await ofStatus();
    expect([status.state, status.live, status.nodes]).toEqual(["cut_off", null, 2]);
    const text = await (await first.api("GET", "/metrics")).text();
    expect(readMetrics(text, "prometheus").sum("sluice_fleet_database_up")).toBe(0);
    expect((await readiness(first)).status).toBe(200);
    expect((await create(first, { require: "1" })).status).toBe(503);
    expect((await first.api("GET", "/api/v1/nodes")).status).toBe(503);
    await first.restart();
    expect((await readiness(first)).status).toBe(200);
    await fleet.postgres.start();
    await eventually(async () => (await stateOf(first, "n1")) === "serving");
    stream.close();
  } finally {
    await fleet.stop();
  }
});

test("a node that cannot serve a change is refused, with the reason for admins only", async () => {
  const fleet = await TestFleet.start(2);
  try {
    const [first] = fleet.nodes as [Gateway];
    const token = async (role: string) => {
      const { token } = await first.ok("POST", "/api/v1/tokens", { name: role, role });
      return { authorization: `Bearer ${token}` };
    };
    const [admin, viewer] = [await token("admin"), await token("viewer")];
    const password = "correct horse battery";
    const user = { email: "a@a.example", name: "a", role: "admin", password };
    await first.ok("POST", "/api/v1/users", user);
    const streams = await Promise.all(
      [admin, viewer].map((headers) =>
        openEvents(`${first.admin}/api/v1/events?kinds=node`, headers),
      ),
    );
    // Both nodes are on one machine: the second one finds the port taken.
    const listener = { name: "site", address: "127.0.0.1", port: quietPort(), protocol: "http" };
    const made = await first.api("POST", "/api/v1/listeners", listener, admin);
    expect(made.headers.get("sluice-nodes")).toBe("1/2");
    await eventually(() => streams.every(({ events }) => events.length > 0));
    const [full, reduced] = streams.map(({ events }) => events[0]?.data);
    expect(full).toMatchObject({ event: "refused", name: "n2" });
    expect(full.why).toContain(String(listener.port));
    expect(reduced).toEqual({ ...full, why: null });
    const errorFor = async (headers: Record<string, string>) => {
      const response = await first.api("GET", "/api/v1/nodes/n2", undefined, headers);
      const { state, error } = (await response.json()) as { state: string; error: string };
      expect(state).toBe("refused");
      return error;
    };
    expect(await errorFor(admin)).toBe(full.why);
    expect(await errorFor(viewer)).toBe("");
    expect((await first.api("POST", "/api/v1/nodes/n2/drain", undefined, viewer)).status).toBe(403);
    for (const stream of streams) stream.close();
  } finally {
    await fleet.stop();
  }
});
