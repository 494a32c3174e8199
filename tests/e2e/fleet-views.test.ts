// One view of all nodes: what was made on each is seen through one, who is missing is named, and tokens of nodes are for nothing else.
import { expect } from "bun:test";
import { NODE_TOKEN_HEADER } from "../../src/control/node-reads.ts";
import { SecretBox } from "../../src/crypto/secret-box.ts";
import { NodeTokens, TOKEN_MS } from "../../src/fleet/node-token.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { openEvents } from "../support/event-client.ts";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { startLastingOrigin } from "../support/lasting-clients.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, afterEach, beforeAll, test } = needs(
  "executable",
  "postgres",
  "network namespaces",
);

const PORT = 8080;

let fleet: TestFleet;
let origin: ReturnType<typeof startLastingOrigin>;
/** Ids of n1, n2, n3. */
let ids: string[];

const nodes = () => fleet.nodes as [Gateway, Gateway, Gateway];

beforeAll(async () => {
  fleet = await TestFleet.start(3, { networks: true });
  origin = startLastingOrigin(fleet.hostname);
  const [first] = nodes();
  const targets = [{ host: fleet.hostname, port: origin.port }];
  await first.ok("POST", "/api/v1/services", { name: "site", targets });
  await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  // The nodes themselves are not among the clients of their management APIs.
  const admin_allowed_cidrs = [`${fleet.hostname}/32`];
  await first.ok("PATCH", "/api/v1/settings", { admin_allowed_cidrs });
  ids = (await first.ok("GET", "/api/v1/nodes")).map(({ id }: { id: string }) => id);
  await isComplete();
});
afterAll(async () => {
  await origin?.stop(true);
  await fleet?.stop();
});

const cleanups = cleanupsOf(afterEach);

/** Waits until each node sees all of them: it looks once a second. */
async function isComplete(): Promise<void> {
  await eventually(async () => {
    const views = await Promise.all(nodes().map((node) => read("stats?node=all", node)));
    return views.every((view) => view.nodes.length === 3);
  });
}

const read = (path: string, node = nodes()[0]) => node.ok("GET", `/api/v1/${path}`);

/** Requests of a path on the nodes with these numbers, in this order. */
async function request(path: string, ...numbers: number[]): Promise<void> {
  for (const number of numbers)
    await (await fetch(`http://${fleet.addresses[number - 1]}:${PORT}${path}`)).text();
}

interface Item {
  readonly node: string;
  readonly path: string;
}
const placesOf = (items: readonly Item[]) => items.map(({ node, path }) => `${node} ${path}`);

test("requests made on each node are seen through any one, newest first, with their node", async () => {
  await request("/seen", 1, 2, 3, 2);
  // A worker records a request after its last byte was sent.
  await eventually(async () => (await read("requests?q=/seen&node=all")).items.length === 4);
  for (const node of nodes()) {
    const view = await read("requests?q=/seen&node=all", node);
    expect(view).toMatchObject({ partial: false, missing: [] });
    expect(placesOf(view.items)).toEqual(["n2 /seen", "n3 /seen", "n2 /seen", "n1 /seen"]);
  }
  expect(placesOf((await read("requests?q=/seen&node=all&limit=2")).items)).toHaveLength(2);
  for (const key of ["n2", ids[1]])
    expect(placesOf((await read(`requests?q=/seen&node=${key}`)).items)).toEqual([
      "n2 /seen",
      "n2 /seen",
    ]);
  expect(placesOf((await read("requests?q=/seen&node=n1")).items)).toEqual(["n1 /seen"]);
  // As without a fleet.
  const own = await read("requests?q=/seen");
  expect(own).toHaveLength(1);
  expect(own[0].node).toBeUndefined();
});

test("an unknown node, two of them, or another value is refused with its name", async () => {
  const refusal = async (query: string) => {
    const response = await nodes()[0].api("GET", `/api/v1/${query}`);
    return `${response.status} ${((await response.json()) as { error: string }).error}`;
  };
  expect(await refusal("requests?node=n9")).toBe('404 node: node "n9" does not exist');
  expect(await refusal("stats?node=n1&node=n2")).toBe("400 node: must be given once");
  expect(await refusal("requests/stream?node=n9")).toBe('404 node: node "n9" does not exist');
  expect(await refusal("services?node=all")).toStartWith("400");
  expect(await refusal("events?node=all&last_event_id=a-1")).toStartWith("400 last_event_id");
});

test("statistics are the sum of the nodes, with percentiles over all of them", async () => {
  const before = await read("stats?node=all");
  await request("/counted", 1, 1, 2, 3, 3, 3);
  await eventually(async () => {
    const { history } = await read("stats?node=all");
    return history.total.requests === before.history.total.requests + 6;
  });
  const { history, now, nodes: each, partial } = await read("stats?node=all&route=site");
  expect(partial).toBe(false);
  const single = await Promise.all(nodes().map((node) => read("stats?route=site", node)));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  expect(history.total.requests).toBe(sum(single.map((one) => one.history.total.requests)));
  expect(history.total.bytes_out).toBe(sum(single.map((one) => one.history.total.bytes_out)));
  const medians = single.map((one) => one.history.total.latency_ms.p50);
  expect(history.total.latency_ms.p50).toBeWithin(
    Math.min(...medians),
    Math.max(...medians) + 0.001,
  );
  expect(history.by_route[0]).toMatchObject({ name: "site" });
  expect(each.map(({ node }: { node: string }) => node)).toEqual(["n1", "n2", "n3"]);
  expect(now.requests).toBe(sum(each.map(({ requests }: { requests: number }) => requests)));
  const third = await read("stats?node=n3&route=site");
  expect(third.history.total.requests).toBe(single[2].history.total.requests);
});

test("health is that of each node", async () => {
  const { items, partial } = await read("services/site/health?node=all");
  expect(partial).toBe(false);
  expect(items.map(({ node }: Item) => node)).toEqual(["n1", "n2", "n3"]);
  for (const { targets } of items) expect(targets).toMatchObject([{ port: origin.port }]);
});

test("live requests of all nodes arrive in one stream, with their node", async () => {
  const { admin } = nodes()[0];
  const stream = await openEvents(`${admin}/api/v1/requests/stream?node=all&q=/live`);
  cleanups.push(() => stream.close());
  await stream.receives(1);
  expect(stream.events[0]).toMatchObject({ kind: "nodes", data: { partial: false, missing: [] } });
  await request("/live", 3, 1, 2);
  const events = await stream.receives(4);
  const seen = events.slice(1).map(({ data }) => `${data.node} ${data.path}`);
  expect(seen.toSorted()).toEqual(["n1 /live", "n2 /live", "n3 /live"]);
  expect(stream.text).not.toMatch(/^id: ./m);
});

test("events of all nodes arrive in one stream; those that every node publishes, once", async () => {
  const { admin } = nodes()[0];
  const stream = await openEvents(`${admin}/api/v1/events?node=all&kinds=config,audit`);
  cleanups.push(() => stream.close());
  await stream.receives(1);
  await nodes()[1].ok("POST", "/api/v1/services", { name: "other" });
  const events = await stream.receives(5);
  const seen = events.map(({ kind, data }) => `${kind} ${data.node ?? ""}`.trim());
  expect(seen.toSorted()).toEqual(["audit n1", "config n1", "config n2", "config n3", "nodes"]);
});

test("a node that is stopped is missing by its name, in lists and in streams, and comes back", async () => {
  const [first, , third] = nodes();
  third.signal("SIGSTOP");
  cleanups.push(() => third.signal("SIGCONT"));
  const why = "it did not respond within 1 s";
  const missing = [{ name: "n3", why }];
  const view = await read("requests?node=all&limit=1");
  expect(view).toMatchObject({ partial: true, missing });
  const stats = await read("stats?node=all");
  expect(stats).toMatchObject({ partial: true, missing: [{ name: "n3" }] });
  // A minute of n3 may have ended, which the history has.
  expect(stats.missing[0].why).toStartWith(why);
  expect(stats.nodes).toHaveLength(2);
  expect(await read("services/site/health?node=n3")).toEqual({ partial: true, missing, items: [] });
  const later = await openEvents(`${first.admin}/api/v1/events?node=all&kinds=config`);
  cleanups.push(() => later.close());
  await later.receives(1);
  expect(later.events[0]?.data).toEqual({ partial: true, missing });
  third.signal("SIGCONT");
  await later.receives(2);
  expect(later.events[1]?.data).toEqual({ partial: false, missing: [] });
  await isComplete();
});

test("a node that is killed is missing at once, and streams follow it again after its start", async () => {
  const [first, second] = nodes();
  const stream = await openEvents(`${first.admin}/api/v1/requests/stream?node=all&q=/again`);
  cleanups.push(() => stream.close());
  await stream.receives(1);
  await second.kill9();
  const { partial, missing } = await read("requests?node=all&limit=1");
  expect([partial, missing]).toEqual([true, [{ name: "n2", why: "it refused the connection" }]]);
  await stream.receives(2);
  expect(stream.events[1]?.data).toMatchObject({ partial: true, missing: [{ name: "n2" }] });
  await second.start();
  await eventually(() => stream.events.at(-1)?.data.partial === false);
  await request("/again", 2);
  await eventually(() => stream.events.some(({ data }) => data.node === "n2"));
  await isComplete();
});

test("while the database is away, the nodes that were seen last are read", async () => {
  const [first] = nodes();
  await fleet.postgres.kill();
  cleanups.push(async () => {
    await fleet.postgres.start();
    await eventually(async () => (await first.api("GET", "/api/v1/nodes")).status === 200);
  });
  await eventually(async () => (await read("admin/status")).fleet.state === "cut_off");
  await request("/away", 2);
  await eventually(async () => (await read("requests?node=all&q=/away")).items.length === 1);
  const { partial, items } = await read("requests?node=all&q=/away");
  expect([partial, ...placesOf(items)]).toEqual([false, "n2 /away"]);
});

/** As another node would, or one that lies. */
function sender(number: number, { key = fleet.secret, offsetMs = 0 } = {}) {
  const box = new SecretBox(Buffer.from(key, "base64"));
  const now = () => Date.now() + offsetMs;
  const tokens = new NodeTokens({
    key: () => box.derive("fleet node tokens"),
    id: ids[0] ?? "",
    now,
  });
  const path = "/api/v1/requests?limit=1";
  const sign = (signed = path) =>
    tokens.sign({ node: ids[number - 1] ?? "", path: signed, role: "viewer" });
  return {
    sign,
    send: async (token: string, { to = number, method = "GET", target = path } = {}) => {
      const headers = { [NODE_TOKEN_HEADER]: token };
      const response = await fetch(`${nodes()[to - 1]?.admin}${target}`, { method, headers });
      return { status: response.status, text: await response.text() };
    },
  };
}

test("a token is good for one read of one node, and all else is a 401 without a reason", async () => {
  const { send, sign } = sender(2);
  const refused = { status: 401, text: '{"error":"authentication is required"}' };
  const token = sign();
  expect((await send(token)).status).toBe(200);
  expect(await send(token)).toEqual(refused);
  expect(await send(sign(), { to: 3 })).toEqual(refused);
  expect(await send(sign(), { target: "/api/v1/requests?limit=2" })).toEqual(refused);
  expect(await send(sign(), { target: "/api/v1/requests?limit=1&node=all" })).toEqual(refused);
  for (const target of ["/api/v1/services", "/api/v1/requests?node=all", "/api/v1/audit"])
    expect(await send(sign(target), { target })).toEqual(refused);
  for (const method of ["PATCH", "POST", "PUT", "DELETE"])
    expect(await send(sign(), { method })).toEqual(refused);
  expect((await send(sign(), { method: "HEAD" })).status).toBe(401);
  expect(await send("")).toEqual(refused);
  const late = sender(2, { offsetMs: -TOKEN_MS - 5000 });
  expect(await late.send(late.sign())).toEqual(refused);
  const early = sender(2, { offsetMs: TOKEN_MS + 5000 });
  expect(await early.send(early.sign())).toEqual(refused);
  const foreign = sender(2, { key: Buffer.alloc(32, 7).toString("base64") });
  expect(await foreign.send(foreign.sign())).toEqual(refused);
});

test("an address outside the allowed networks passes with a token of its node alone", async () => {
  const { sign } = sender(2);
  const curl = async (...words: string[]) => {
    const url = `${nodes()[1].admin}/api/v1/requests?limit=1`;
    const command = [
      ...(fleet.wraps[2] ?? []),
      "curl",
      "-sS",
      "-w",
      " %{http_code}",
      ...words,
      url,
    ];
    return (await new Response(Bun.spawn(command).stdout).text()).slice(-3);
  };
  expect(await curl()).toBe("403");
  expect(await curl("-H", `${NODE_TOKEN_HEADER}: ${sign()}`)).toBe("200");
  expect(await curl("-H", `${NODE_TOKEN_HEADER}: ${sign().slice(0, -1)}`)).toBe("401");
});

test("a row that another has written to the database gets no token", async () => {
  const [first, , third] = nodes();
  const received: string[] = [];
  const thief = Bun.serve({
    hostname: fleet.hostname,
    port: 0,
    fetch(request) {
      received.push(request.url);
      return Response.json([]);
    },
  });
  cleanups.push(() => thief.stop(true));
  third.signal("SIGSTOP");
  cleanups.push(async () => {
    third.signal("SIGCONT");
    await isComplete();
  });
  const url = `http://${fleet.hostname}:${thief.port}`;
  await fleet.query((sql) => sql`update sluice.node set url = ${url} where name = 'n3'`);
  await eventually(async () => {
    const { missing } = await read("requests?node=all&limit=1");
    return missing[0]?.why.startsWith("its row in the database is not signed");
  });
  await first.ok("GET", "/api/v1/stats?node=n3");
  expect(received).toEqual([]);
});

test("a target that one node cannot reach is unhealthy on that node", async () => {
  await fleet.createSplitService("split");
  const states = async () => {
    const { items } = await read("services/split/health?node=all");
    return items.map(({ node, state }: { node: string; state: string }) => `${node} ${state}`);
  };
  await eventually(async () =>
    Bun.deepEquals(await states(), ["n1 healthy", "n2 unhealthy", "n3 healthy"]),
  );
});
