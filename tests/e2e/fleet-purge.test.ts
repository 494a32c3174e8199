// Purges of caches in a fleet: after the reply no node that it counts serves a purged response, and the others purge when they are back.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { isServing, send, statesOn, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("executable", "postgres", "network namespaces");

const cleanups = cleanupsOf(afterEach);

/** Three nodes with a cache before an origin that tells its version. */
async function scene() {
  const environments: Record<string, string>[] = [];
  const fleet = await TestFleet.start(3, {
    networks: true,
    workers: 2,
    node: () => {
      const env = {};
      environments.push(env);
      return { env };
    },
  });
  cleanups.push(() => fleet.stop());
  const origin = { version: 0, requests: 0 };
  const server = Bun.serve({
    hostname: fleet.hostname,
    port: 0,
    fetch: () => {
      origin.requests++;
      return new Response(String(origin.version), { headers: { "cache-control": "max-age=600" } });
    },
  });
  cleanups.push(() => server.stop(true));
  const [first] = fleet.nodes as [Gateway];
  const targets = [{ host: fleet.hostname, port: server.port }];
  await first.ok("POST", "/api/v1/services", { name: "site", targets });
  await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  await first.ok("POST", "/api/v1/plugins", { name: "response-cache", label: "cache" });
  /** What all workers of a node respond with: each request has a connection of its own. */
  const ask = async (index: number, path = "/page") => {
    const replies = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const url = `http://${fleet.addresses[index]}:8080${path}`;
        return await (await fetch(url, { headers: { connection: "close" } })).text();
      }),
    );
    return [...new Set(replies)].join(" and ");
  };
  const askAll = () => Promise.all([0, 1, 2].map((index) => ask(index)));
  /** All caches hold a version that the origin does not have any more. */
  const fill = async () => {
    const old = String(origin.version);
    expect(await askAll()).toEqual([old, old, old]);
    // A worker may have stored no response yet: of requests at the same time one asks the origin.
    await eventually(async () => {
      const before = origin.requests;
      await askAll();
      return origin.requests === before;
    });
    origin.version++;
    expect(await askAll()).toEqual([old, old, old]);
    return { old, new: String(origin.version) };
  };
  const areServing = () => eventually(async () => (await statesOn(first)).every(isServing));
  return { fleet, nodes: fleet.nodes, environments, ask, askAll, fill, areServing };
}

const purge = (node: Gateway, body: object = {}) =>
  send(node, "POST", ["/api/v1/cache/purge", body]);

test("a purge on one node is one on all of them before its reply", async () => {
  const { nodes, askAll, ask, fill } = await scene();
  for (const [index, body] of [{}, { key: "/page" }, { plugin_id: "cache" }].entries()) {
    const { new: expected } = await fill();
    const reply = await purge(nodes[index]!, body);
    expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "3/3", null]);
    expect(await askAll()).toEqual([expected, expected, expected]);
    // Of the workers of the node that was asked; requests at the same time may have stored more than one each.
    expect(JSON.parse(reply.text).purged).toBeGreaterThan(0);
  }
  const { old } = await fill();
  expect((await purge(nodes[0]!, { key: "/another" })).nodes).toBe("3/3");
  expect(await ask(2)).toBe(old);
  // All nodes know who purged.
  for (const node of nodes)
    await eventually(async () => {
      const entries: { action: string }[] = await node.ok("GET", "/api/v1/audit?action=purge");
      return entries.length === 4;
    });
});

test("a node that is stopped is missing from the reply, and has purged when it serves again", async () => {
  const { nodes, ask, fill, areServing } = await scene();
  const [first, second] = nodes as [Gateway, Gateway];
  const { old, new: expected } = await fill();
  second.signal("SIGSTOP");
  const reply = await purge(first);
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "2/3", "n2;lagging"]);
  expect([await ask(0), await ask(2)]).toEqual([expected, expected]);
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  const demanding = await first.api("POST", "/api/v1/cache/purge", undefined, {
    "sluice-require-nodes": "all",
  });
  expect(demanding.status).toBe(409);
  second.signal("SIGCONT");
  await areServing();
  expect(await ask(1)).toBe(expected);
  expect(old).not.toBe(expected);
});

test("a node that is cut off refuses purges, and has purged what the others did when it is back", async () => {
  const { fleet, nodes, ask, fill, areServing } = await scene();
  const [first, second] = nodes as [Gateway, Gateway];
  const { old, new: expected } = await fill();
  fleet.wires[1]!.hold();
  const refused = await eventually(async () => {
    const reply = await purge(second, { key: "/another" });
    return reply.text.includes("is cut off") ? reply : null;
  });
  expect(refused.status).toBe(503);
  expect(refused.text).toContain("nothing was changed");
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  const reply = await purge(first);
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "2/3", "n2;away"]);
  expect([await ask(0), await ask(1), await ask(2)]).toEqual([expected, old, expected]);
  fleet.wires[1]!.heal();
  await areServing();
  expect(await ask(1)).toBe(expected);
});

test("when the node that was asked dies, all others have purged, or none", async () => {
  const { nodes, environments, askAll, ask, fill, areServing } = await scene();
  const [first] = nodes as [Gateway];
  const arm = async (step: string | null) => {
    const [env = {}] = environments;
    if (step === null) delete env["SLUICE_FAIL_POINT"];
    else env["SLUICE_FAIL_POINT"] = step;
    await first.restart();
  };
  for (const step of ["before_append", "after_append", "after_store"] as const) {
    await arm(step);
    const { old, new: expected } = await fill();
    expect(await purge(first).catch(() => null)).toBeNull();
    await first.exited();
    if (step === "before_append") expect([await ask(1), await ask(2)]).toEqual([old, old]);
    else await eventually(async () => (await ask(1)) === expected && (await ask(2)) === expected);
    await arm(null);
    // Its own cache ended with it.
    expect(await ask(0)).toBe(expected);
    await areServing();
    expect((await purge(first)).nodes).toBe("3/3");
    expect(await askAll()).toEqual([expected, expected, expected]);
  }
});
