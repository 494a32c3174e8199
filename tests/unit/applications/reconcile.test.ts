// The parts of an application in a draft: what a change writes, which edits of users it keeps, and what keeps its id.
import { describe, expect, test } from "bun:test";
import { reconcile, type ReconcileOptions } from "../../../src/applications/reconcile.ts";
import type { Planned } from "../../../src/applications/planned-part.ts";
import { Draft } from "../../../src/control/draft.ts";
import { applicationInput, type ApplicationPart } from "../../../src/model/application.ts";
import { decode } from "../../../src/model/decode.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";

const AT = "2026-06-01T00:00:00.000Z";
const off = { ordered: [], local: [], self_signed: [], secured: false };

const planned = (fields: object = {}): Planned => ({
  ...decode(applicationInput, {
    name: "shop",
    domains: ["shop.test"],
    upstream: "http://10.0.0.5:3000",
    https: { mode: "off" },
    ...fields,
  }),
  https_state: off,
});

function run(
  base: GatewayConfig,
  application: Planned,
  options: Partial<ReconcileOptions> = {},
): { readonly draft: Draft; readonly parts: ApplicationPart[]; readonly config: GatewayConfig } {
  const draft = new Draft(base, () => AT);
  const parts = reconcile({
    draft,
    application,
    parts: [],
    adopt: false,
    accept: false,
    force: false,
    automatic: false,
    sign: (certificate) => certificate,
    ...options,
  });
  return { draft, parts, config: draft.config };
}

const only = <T>(objects: ReadonlyMap<string, T>): T => {
  const [first, ...others] = objects.values();
  if (first === undefined || others.length > 0) throw new Error(`${objects.size} objects`);
  return first;
};

/** The configuration after a user has edited the only route. */
function withRoute(config: GatewayConfig, fields: object): GatewayConfig {
  const route = { ...only(config.routes), ...fields };
  return { ...config, routes: new Map([[route.id, route]]) };
}

describe("parts", () => {
  const first = run(emptyConfiguration(AT), planned());

  test("are created and named by their roles", () => {
    expect(first.parts.map(({ role }) => role)).toEqual([
      "service",
      "target 10.0.0.5 3000",
      "route",
    ]);
    const service = only(first.config.services);
    expect(only(first.config.routes)).toMatchObject({
      hosts: ["shop.test"],
      service_id: service.id,
    });
    expect(only(first.config.targets)).toMatchObject({ host: "10.0.0.5", port: 3000 });
  });

  test("that match the plan are not written", () => {
    const again = run(first.config, planned(), { parts: first.parts });
    expect(again.draft.isUnchanged()).toBe(true);
    expect(again.parts).toEqual(first.parts);
  });

  test("are written one by one: a new name touches the route alone", () => {
    const next = run(first.config, planned({ domains: ["new.test"] }), { parts: first.parts });
    const change = next.draft.change();
    expect(change.routes.upserts).toMatchObject([{ hosts: ["new.test"] }]);
    for (const name of ["services", "targets"] as const)
      expect(change[name]).toEqual({ upserts: [], removals: [] });
  });

  test("a target keeps its id as long as host and port stay", () => {
    const id = only(first.config.targets).id;
    const targets = [
      { host: "10.0.0.5", port: 3000, weight: 3 },
      { host: "10.0.0.6", port: 80 },
    ];
    const next = run(first.config, planned({ upstream: null, targets }), { parts: first.parts });
    expect(next.config.targets.get(id)).toMatchObject({ weight: 3 });
    const moved = run(next.config, planned({ upstream: "http://10.0.0.6" }), { parts: next.parts });
    expect(moved.config.targets.has(id)).toBe(false);
    expect(only(moved.config.targets)).toMatchObject({ host: "10.0.0.6" });
  });

  test("public and private names have a route each while a certificate is managed", () => {
    const domains = ["shop.example.com", "shop.lan"];
    const state = {
      ordered: ["shop.example.com"],
      local: [],
      self_signed: ["shop.lan"],
      secured: true,
    };
    const { config } = run(emptyConfiguration(AT), {
      ...planned({ domains, https: { mode: "auto", hsts: true } }),
      https_state: state,
    });
    expect([...config.routes.values()]).toMatchObject([
      { hosts: ["shop.example.com"], https_redirect: 308 },
      { hosts: ["shop.lan"], https_redirect: false },
    ]);
    expect(only(config.plugins)).toMatchObject({ name: "security-headers", enabled: true });
  });
});

describe("a field that a user changed", () => {
  const first = run(emptyConfiguration(AT), planned());
  const edited = withRoute(first.config, { maintenance: { retry_after: 1 }, priority: 7 });
  const { parts } = first;

  test("stays when the application changes another", () => {
    const { config } = run(edited, planned({ domains: ["new.test"] }), { parts });
    expect(only(config.routes)).toMatchObject({
      hosts: ["new.test"],
      maintenance: { retry_after: 1 },
      priority: 7,
    });
  });

  test("is written when the application changes it", () => {
    const { config } = run(edited, planned({ maintenance: true }), { parts });
    expect(only(config.routes).maintenance).toMatchObject({ retry_after: 300 });
  });

  test("stays in an automatic run, and the planned value is recorded", () => {
    const application = planned({ maintenance: true });
    const { config, parts: made } = run(edited, application, { parts, automatic: true });
    expect(only(config.routes).maintenance).toMatchObject({ retry_after: 1 });
    const route = made.find(({ role }) => role === "route");
    expect(route?.fields["maintenance"]).toMatchObject({ retry_after: 300 });
  });

  test("is overwritten by force", () => {
    const { config } = run(edited, planned(), { parts, force: true });
    expect(only(config.routes)).toMatchObject({ maintenance: null, priority: 0 });
  });

  test("becomes the planned value when it is accepted and the application does not set it", () => {
    const { parts: made } = run(edited, planned(), { parts, accept: true });
    const route = made.find(({ role }) => role === "route");
    expect(route?.fields).toMatchObject({ priority: 7, maintenance: null });
  });
});

describe("a part that a user deleted", () => {
  const first = run(emptyConfiguration(AT), planned());
  const without = { ...first.config, routes: new Map() };

  test("stays deleted until a user restores it, and returns with its id", () => {
    const patched = run(without, planned({ maintenance: true }), { parts: first.parts });
    expect(patched.config.routes.size).toBe(0);
    const forced = run(without, planned(), { parts: patched.parts, force: true });
    expect(only(forced.config.routes).id).toBe(only(first.config.routes).id);
  });
});
