// Thousands of routes imported at once while clients send requests: none of them fails, and all of it is one revision.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const ROUTES = Number(process.env["SLUICE_TEST_ROUTES"] ?? 3000);
const CLIENTS = 8;

let gateway: Gateway | null = null;
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("right") });
beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
});
afterAll(async () => {
  await gateway?.stop();
  await origin.stop(true);
});

const routes = Array.from({ length: ROUTES }, (_, index) => ({
  name: `route-${index}`,
  service_id: "web",
  hosts: [`site-${index}.test`],
}));
const services = [{ name: "web" }];
const targets = [{ service_id: "web", host: "127.0.0.1", port: origin.port }];

test("an import of many routes is one change that affects no request", async () => {
  if (gateway === null) throw new Error("not started");
  const { httpPort } = gateway;
  const post = (mode: string, document: object) =>
    gateway?.ok("POST", `/api/v1/import?mode=${mode}`, { format: 1, ...document });
  await post("merge", { services, targets, routes: routes.slice(0, 1) });
  const answers = new Map<string, number>();
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      const response = await fetch(`http://127.0.0.1:${httpPort}/`, {
        headers: { host: "site-0.test" },
      }).catch((error: Error) => new Response(error.message, { status: 500 }));
      const answer = `${response.status} ${await response.text()}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  const revisions = async () => {
    const all: unknown[] = (await gateway?.ok("GET", "/api/v1/revisions")) ?? [];
    return all.length;
  };
  const before = await revisions();
  const times: string[] = [];
  const timed = async (what: string, work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    times.push(`${what} ${Math.round(performance.now() - start)} ms`);
  };
  await timed("import", () => post("merge", { routes }) ?? Promise.resolve());
  await timed("export", async () =>
    (await gateway?.api("GET", "/api/v1/export?format=yaml"))?.text(),
  );
  await timed(
    "removal",
    () => post("replace", { routes: routes.slice(0, 1) }) ?? Promise.resolve(),
  );
  isOver = true;
  await Promise.all(clients);
  expect([...answers.keys()], times.join(", ")).toEqual(["200 right"]);
  expect(await revisions()).toBe(before + 2);
  if (process.env["SLUICE_TEST_ROUTES"]) console.log(times.join(", "), [...answers]);
});
