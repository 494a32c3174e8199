// Containers of Docker Compose, imported: requests reach their published ports on this host.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ask, startOpenOrigin } from "../../e2e/import/judge.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const origins = [startOpenOrigin("one"), startOpenOrigin("two"), startOpenOrigin("three")];
const [one = 0, two = 0, three = 0] = origins.map(({ port }) => port ?? 0);

const compose = `
services:
  proxy: { image: "traefik:v3" }
  web:
    image: web
    ports: ["127.0.0.1:${one}:8080"]
    labels:
      - traefik.http.routers.web.rule=Host(\`web.\${DOMAIN:-test}\`) && PathPrefix(\`/app\`)
      - traefik.http.routers.web.middlewares=strip
      - traefik.http.middlewares.strip.stripprefix.prefixes=/app
      - traefik.http.services.web.loadbalancer.server.port=8080
  guarded:
    image: web
    ports: ["127.0.0.1:${one}:8080"]
    labels:
      traefik.http.routers.guarded.rule: Host(\`guarded.test\`)
      traefik.http.routers.guarded.middlewares: auth@file
  blog:
    image: blog
    ports: ["${two}:2368"]
    environment: [VIRTUAL_HOST=blog.test, VIRTUAL_PORT=2368]
  shop:
    image: shop
    ports: ["${three}:80"]
    labels:
      caddy: http://shop.test
      caddy.reverse_proxy: "{{upstreams 80}}"
  closed:
    image: shop
    ports: ["${three}:80"]
    labels:
      caddy: http://closed.test
      caddy.reverse_proxy: "{{upstreams 80}}"
      caddy.forward_auth: auth:9091
`;

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const answer = await fetch(`${gateway.admin}/api/v1/import?from=compose`, {
    method: "POST",
    body: compose,
  });
  expect([answer.status, answer.ok ? "" : await answer.text()]).toEqual([200, ""]);
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) await server.stop(true);
});

test.each([
  { host: "web.test", path: "/app/x", open: "one" },
  { host: "web.test", path: "/", open: null },
  { host: "guarded.test", path: "/", open: null },
  { host: "blog.test", path: "/", open: "two" },
  { host: "shop.test", path: "/", open: "three" },
  { host: "closed.test", path: "/", open: null },
  { host: "other.test", path: "/", open: null },
])("$host$path: $open", async ({ host, path, open }) => {
  expect((await ask({ host, path }, gateway.httpPort)).open).toBe(open);
});
