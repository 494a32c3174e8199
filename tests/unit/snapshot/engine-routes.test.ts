// Which routes the full engine serves where listeners have both: the list of one version from that of the one before.
import { describe, expect, test } from "bun:test";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import type { Listener } from "../../../src/model/listener.ts";
import type { Route } from "../../../src/model/route.ts";
import type { Service } from "../../../src/model/service.ts";
import { compile, type Compiled } from "../../../src/snapshot/compile.ts";
import { configOf, context, listener, route, service } from "../control/fixture.ts";

let revision = 0;
function next(config: GatewayConfig, previous: Compiled | null): Compiled {
  const result = compile(config, previous, { ...context, revision: ++revision });
  if ("issues" in result) throw new Error(JSON.stringify(result.issues));
  return result;
}
const routesOf = ({ snapshot }: Compiled) => [...snapshot.engineRoutes.values()];
const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);

const both = listener("both", { port: 8443, protocol: "https", shared_engines: true });
const plain = listener("both", { port: 8443, protocol: "https" });
/** Serves every gRPC route, so that the listener with both engines may come and go. */
const full = listener("full", { port: 8444, protocol: "https", engine: "full" });
const calls = service("calls", { protocol: "grpc" });
const web = service("web");

describe("a route is listed", () => {
  test.each([
    ["with a gRPC service", { service_id: "calls", hosts: ["A.test."] }, ["a.test"]],
    ["with exact responses", { service_id: "web", exact_responses: "on" }, []],
    ["of another service", { service_id: "web" }, null],
    ["that is disabled", { service_id: "calls", enabled: false }, null],
    ["of cleartext listeners", { exact_responses: "on", protocols: ["http"] }, null],
  ] as const)("%s", (_why, fields, hosts) => {
    const config = configOf({
      listeners: [both, full],
      services: [calls, web],
      routes: [route("r", { service_id: "web", ...fields } as object)],
    });
    expect(routesOf(next(config, null)).map((plan) => plan.hosts)).toEqual(
      hosts === null ? [] : [[...hosts]],
    );
  });
});

test("no route is listed without an enabled listener that has both engines", () => {
  const routes = [route("r", { service_id: "calls" })];
  const config = (...listeners: Listener[]) => configOf({ listeners, services: [calls], routes });
  expect(routesOf(next(config(full), null))).toEqual([]);
  const off = { ...both, enabled: false };
  expect(routesOf(next(config(full, off), null))).toEqual([]);
});

test("an unchanged list is the same object, so that no worker gets it again", () => {
  const routes = [route("r", { service_id: "calls" })];
  const services = [calls, web];
  const before = next(configOf({ listeners: [both, full], services, routes }), null);
  const more = [...routes, route("other", { service_id: "web" })];
  const after = next(configOf({ listeners: [both, full], services, routes: more }), before);
  expect(after.snapshot.engineRoutes).toBe(before.snapshot.engineRoutes);
});

test("after any changes the list is that of the whole configuration", () => {
  let seed = 7;
  const random = (most: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % most;
  };
  const routes = new Map<string, Route>();
  const services = new Map<string, Service>([calls, web].map((one) => [one.id, one]));
  let listeners: Listener[] = [full];
  let version: Compiled | null = null;
  for (let step = 0; step < 300; step++) {
    const id = `r${random(12)}`;
    const kind = random(6);
    if (kind === 0) routes.delete(id);
    else if (kind === 1) listeners = [[full], [full, both], [full, plain]][random(3)] ?? [];
    else if (kind === 2) {
      const name = random(2) === 0 ? "calls" : "web";
      services.set(name, service(name, { protocol: random(2) === 0 ? "grpc" : "h2c" }));
    } else
      routes.set(
        id,
        route(id, {
          service_id: random(2) === 0 ? "calls" : "web",
          hosts: [`${id}.test`],
          enabled: random(4) > 0,
          exact_responses: random(3) === 0 ? "on" : "off",
          protocols: random(5) === 0 ? ["http"] : ["http", "https"],
        }),
      );
    const config = configOf({
      listeners: [...listeners, listener("cleartext", { port: 8080, engine: "full" })],
      services: [...services.values()],
      routes: [...routes.values()],
    });
    version = next(config, version);
    expect(routesOf(version).sort(byId)).toEqual(routesOf(next(config, null)).sort(byId));
  }
});
