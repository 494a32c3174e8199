// What fleets offer, asked of a gateway without one: it is one node, and shows none.
import { expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();

test("there are no nodes, and none can be drained or forgotten", async () => {
  expect((await api.call("GET /nodes")).body).toEqual([]);
  for (const line of ["GET /nodes/n1", "DELETE /nodes/n1", "POST /nodes/n1/drain"])
    expect((await api.call(line)).status).toBe(404);
});

test("wait is accepted and checked, and the reply names no nodes", async () => {
  const made = await api.call("POST /services?wait=0", { body: { name: "waited" } });
  expect(made.status).toBe(200);
  expect(made.headers.get("sluice-nodes")).toBeNull();
  const refused = await api.call("POST /services?wait=99", { body: { name: "refused" } });
  expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining("wait: ")]);
});

test.each([
  { requires: "all", status: 200 },
  { requires: "majority", status: 200 },
  { requires: "1", status: 200 },
  { requires: "2", status: 409 },
  { requires: "none", status: 400 },
])("Sluice-Require-Nodes: $requires gets $status", async ({ requires, status }) => {
  const headers = { "sluice-require-nodes": requires };
  const name = `requires-${requires}`;
  expect((await api.call("POST /services", { body: { name }, headers })).status).toBe(status);
  expect((await api.call(`GET /services/${name}`)).status).toBe(status === 200 ? 200 : 404);
});

test("metrics have none of a fleet", async () => {
  const text = await (await fetch(`${api.gateway.admin}/metrics`)).text();
  expect(text).toContain("sluice_config_revision");
  expect(text).not.toContain("sluice_fleet");
});
