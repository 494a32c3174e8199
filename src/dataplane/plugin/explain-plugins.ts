// Lists the plugins that would run for a request, without running them.
import type { ExplainedPlugin } from "../../snapshot/explanation.ts";
import { asksForConsumer } from "../../pdk/condition.ts";
import type { ClientRequest } from "../request/client-request.ts";
import { chainOf } from "../route-runtime.ts";
import type { Geo } from "./geo.ts";
import { PluginContext } from "./plugin-context.ts";

/** In the order in which they run. */
export function explainPlugins(request: ClientRequest, geo: Geo): ExplainedPlugin[] {
  const { generation, route } = request;
  const { plugins, consumers } = generation;
  const chain = route === null ? plugins.unmatched : chainOf(route, plugins);
  if (chain === null) return [];
  const { cursor } = new PluginContext(request, chain, {
    consumers,
    country: geo.country,
    asn: geo.asn,
    hasService: () => false,
    serviceNamed: () => null,
    refetch: () => Promise.reject(new Error("the request was not made")),
    failed() {},
    decided() {},
    deferLog() {},
  });
  return chain.all.map((runtime) => {
    const { when, id } = runtime.plan;
    const isOpen = when !== null && asksForConsumer(when);
    return {
      id,
      phases: runtime.definition.phases.filter((phase) => phase !== "connect"),
      applies: isOpen ? null : cursor.applies(runtime),
    };
  });
}
