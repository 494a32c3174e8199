// Fills a gateway with objects of every kind, with names of all lengths, and some traffic.
import { resolve } from "node:path";
import type { Gateway } from "./gateway.ts";
import { quietPort } from "./quiet-port.ts";

const LONG =
  "a-service-with-a-name-that-is-as-long-as-names-of-machines-in-large-firms-are.internal";

/** To be called before the first user exists. `originPort` serves HTTP on 127.0.0.1. */
export async function fillGateway(gateway: Gateway, originPort: number): Promise<void> {
  const post = (path: string, body: unknown) => gateway.ok("POST", `/api/v1${path}`, body);
  const kong = await Bun.file(resolve(import.meta.dir, "../fixtures/import/kong.yaml")).text();
  await gateway.api("POST", "/api/v1/import?from=kong", kong);
  await post("/services", {
    name: "web",
    description: "The shop",
    tags: ["shop", "team-a"],
    targets: [{ host: "127.0.0.1", port: originPort }],
  });
  await post("/services", {
    name: LONG,
    tags: ["a-tag-that-is-rather-long", "b", "c", "d", "e"],
    targets: [{ host: LONG, port: 65_535 }],
  });
  await post("/services", { name: "db", protocol: "tcp" });
  for (let index = 0; index < 12; index++)
    await post("/routes", {
      name: index === 0 ? `${LONG}-route` : `shop-${index}`,
      service_id: "web",
      hosts: [index === 1 ? "shop.test" : `shop-${index}.test`],
      tags: ["shop"],
    });
  await post("/stream-routes", {
    name: "db",
    listen_address: "127.0.0.1",
    listen_port: quietPort(),
    service_id: "db",
  });
  await post("/plugins", {
    name: "ip-restriction",
    label: "offices",
    route_id: "shop-2",
    config: { allow: ["127.0.0.0/8"] },
  });
  await post("/consumers", { username: "ada@a-rather-long-domain.example", groups: ["staff"] });
  await fillSecurity(post);
  for (let index = 0; index < 20; index++)
    await fetch(`http://127.0.0.1:${gateway.httpPort}/page/${index}`, {
      headers: { host: index % 4 === 0 ? "nobody.test" : "shop.test" },
    }).then((answer) => answer.text());
}

type Post = (path: string, body: unknown) => Promise<unknown>;

async function fillSecurity(post: Post): Promise<void> {
  await post("/certificates", { name: "own", source: "self_signed", domains: ["shop.test"] });
  await post("/certificates", {
    name: "many",
    source: "self_signed",
    domains: Array.from({ length: 8 }, (_, index) => `${index}.${LONG.slice(0, 40)}.test`),
  });
  await post("/acme/accounts", {
    name: "authority",
    directory_url: "https://127.0.0.1:9/dir",
    terms_agreed: true,
    enabled: false,
  });
  await post("/dns-providers", {
    name: "zone",
    type: "cloudflare",
    enabled: false,
    config: { api_token: "secret" },
  });
  await post("/secrets", { name: "kept", value: "a value" });
  await post("/alerts", {
    name: "ops",
    type: "webhook",
    events: ["target_down"],
    enabled: false,
    config: { url: "http://127.0.0.1:9/" },
  });
  await post("/applications", {
    name: "wiki",
    domains: ["wiki.test", `${LONG.slice(0, 60)}.test`],
    upstream: "http://127.0.0.1:9",
    https: { mode: "off" },
  });
}
