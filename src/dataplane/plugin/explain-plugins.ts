// Which plugins are there for a request that nobody has sent; runs none of them.
import { ENDLESS } from "../client-body.ts";
import type { ExplainedPlugin } from "../../snapshot/explanation.ts";
import { asksForConsumer } from "../../pdk/condition.ts";
import type { Generation } from "../generation.ts";
import type { RequestContext } from "../request-context.ts";
import { chainOf, type RouteRuntime } from "../route-runtime.ts";
import type { Chain } from "./chain.ts";
import type { Geo } from "./geo.ts";
import { declaredLength, HeldBody } from "./held-body.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { Visit } from "./visit.ts";
import type { VisitScene } from "./visit-scene.ts";

/** In the order in which they run. */
export function explainPlugins(
  context: RequestContext,
  scene: {
    readonly generation: Generation;
    readonly route: RouteRuntime | null;
    readonly geo: Geo;
  },
): ExplainedPlugin[] {
  const { generation, route, geo } = scene;
  const { plugins, consumers } = generation;
  const chain = route === null ? plugins.elsewhere : chainOf(route, plugins);
  if (chain === null) return [];
  const visit = new Visit(context, sceneOf({ chain, route, consumers, geo }));
  return chain.all.map((runtime) => ({
    id: runtime.plan.id,
    phases: runtime.definition.phases.filter((phase) => phase !== "connect"),
    applies: appliesTo(runtime, visit),
  }));
}

/** For a request that nothing happens to. */
function sceneOf(parts: {
  readonly chain: Chain;
  readonly route: RouteRuntime | null;
  readonly consumers: Generation["consumers"];
  readonly geo: Geo;
}): VisitScene {
  const { chain, route, consumers, geo } = parts;
  return {
    chain,
    route: route === null ? null : { id: route.id, name: route.route.name },
    service: null,
    consumers,
    country: geo.country,
    asn: geo.asn,
    hasService: () => false,
    serviceNamed: () => null,
    refetch: () => Promise.reject(new Error("the request was not made")),
    bodyOf: (context) => new HeldBody({ context, patience: ENDLESS, refuse() {} }),
    bodyLengthOf: declaredLength,
    failed() {},
    decided() {},
    copyFor: () => sceneOf(parts),
  };
}

function appliesTo(runtime: PluginRuntime, visit: Visit): boolean | null {
  const { when } = runtime.plan;
  if (when === null) return true;
  return asksForConsumer(when) ? null : visit.applies(runtime);
}
