// Random routers of Traefik, imported: no request reaches a service that Traefik denies, and plain requests reach the same one.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ask, startOpenOrigin } from "../../e2e/import/judge.ts";
import {
  type RandomRouter,
  randomRequest,
  randomRouters,
  routed,
} from "../../e2e/import/traefik-router.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { Random, seedOfRun } from "../../support/random.ts";

const HOSTS = 15;
const REQUESTS = 40;

const origins = [startOpenOrigin("one"), startOpenOrigin("two")];
const [one = 0, two = 0] = origins.map(({ port }) => port ?? 0);

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) await server.stop(true);
});

const serviceAt = (port: number) => ({
  loadBalancer: { servers: [{ url: `http://127.0.0.1:${port}` }] },
});

const configurationOf = (routers: readonly RandomRouter[]) => ({
  http: {
    routers: Object.fromEntries(
      routers.map(({ name, rule, priority, service, isGuarded }) => [
        name,
        { rule: rule.text, priority, service, ...(isGuarded ? { middlewares: ["auth"] } : {}) },
      ]),
    ),
    services: { one: serviceAt(one), two: serviceAt(two) },
    middlewares: {
      auth: {
        basicAuth: { users: [`a:${Bun.password.hashSync("b", { algorithm: "bcrypt", cost: 4 })}`] },
      },
    },
  },
});

const SEED = seedOfRun();

test(`routers made at random with the seed ${SEED}`, async () => {
  const random = new Random(SEED);
  const hosts = Array.from({ length: HOSTS }, (_, at) => {
    const host = `h${at}.test`;
    return { host, routers: randomRouters(host, random) };
  });
  const configuration = configurationOf(hosts.flatMap(({ routers }) => routers));
  const answer = await gateway.api("POST", "/api/v1/import?from=traefik", configuration);
  expect(answer.status).toBe(200);
  const wrong: string[] = [];
  let [same, plain] = [0, 0];
  for (const { host, routers } of hosts)
    for (let count = 0; count < REQUESTS; count++) {
      const request = randomRequest(host, random);
      const router = routed(routers, request);
      const expected = router === null || router.isGuarded ? null : router.service;
      const { open } = await ask(request, gateway.httpPort);
      const hasGuards = routers.some(({ isGuarded }) => isGuarded);
      if (request.isPlain && expected !== null) {
        plain += 1;
        if (open === expected) same += 1;
      }
      // Where all routers of a host have the same protections, prefixes match whole segments.
      const isOpen = open !== null && open !== expected && hasGuards;
      if (isOpen)
        wrong.push(
          JSON.stringify({
            request,
            open,
            expected,
            routers: routers.map(({ rule, ...rest }) => [rule.text, rest]),
          }),
        );
    }
  expect(wrong).toEqual([]);
  expect(same / plain).toBeGreaterThan(0.7);
});
