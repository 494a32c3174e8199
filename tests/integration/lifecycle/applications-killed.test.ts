// A gateway that is killed while applications are made: each exists with all parts or not at all, and none that was confirmed is lost.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

const ROUNDS = 4;
const AT_ONCE = 12;

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("served") });
  gateway = await startGateway({ workers: 2 });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
});

interface Application {
  readonly name: string;
  readonly service: { readonly id: string };
  readonly targets: readonly object[];
  readonly routes: readonly { readonly hosts: readonly string[] }[];
  readonly drift: readonly object[];
}

test("kill -9 in the middle of creating applications", async () => {
  const answered: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const wanted = answered.length + 1 + round * 2;
    const made = Array.from({ length: AT_ONCE }, async (_, at) => {
      const name = `app-${round}-${at}`;
      const response = await gateway.api("POST", "/api/v1/applications", {
        name,
        domains: [`${name}.test`],
        upstream: `http://127.0.0.1:${origin.port}`,
        access: "private",
        https: { hsts: true },
      });
      if (response.status === 200) answered.push(name);
    });
    const ends = Promise.allSettled(made);
    await eventually(() => answered.length >= wanted);
    await gateway.kill9();
    await ends;
    await gateway.start();
    const applications: readonly Application[] = await gateway.ok("GET", "/api/v1/applications");
    const names = applications.map(({ name }) => name);
    for (const name of answered) expect(names).toContain(name);
    for (const application of applications) {
      expect(application.drift).toEqual([]);
      expect(application.targets).toHaveLength(1);
      expect(application.routes.map(({ hosts }) => hosts)).toEqual([[`${application.name}.test`]]);
      const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
        headers: { host: `${application.name}.test` },
      });
      expect([application.name, await response.text()]).toEqual([application.name, "served"]);
    }
    // Nothing is left of those that were not.
    for (const kind of ["services", "routes", "targets"])
      expect(await gateway.ok("GET", `/api/v1/${kind}`)).toHaveLength(names.length);
    expect(await gateway.ok("GET", "/api/v1/plugins")).toHaveLength(names.length * 2);
  }
  expect(answered.length).toBeGreaterThan(ROUNDS);
});
