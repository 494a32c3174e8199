// Where plugins hear of the end of requests when they want nothing before; knows no single request and no plugin.
import type { Consumers, NamedObject, Refetched } from "../../pdk/context.ts";
import type { Generation } from "../generation.ts";
import type { RequestContext } from "../request-context.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { WorkerScope } from "../worker-scope.ts";
import type { Chain } from "./chain.ts";
import { declaredLength, HeldBody } from "./held-body.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import type { Decision, VisitScene } from "./visit-scene.ts";

interface Surroundings {
  readonly generation: Generation;
  readonly scope: WorkerScope;
  readonly route: RouteRuntime | null;
}

/** By route, for as long as a version of the configuration is there. */
const scenes = new WeakMap<Generation, Map<RouteRuntime | null, HeardScene>>();

/** One for all requests of the route, as long as nothing changes. */
export function heardScene(chain: Chain, around: Surroundings): HeardScene {
  const { generation, route } = around;
  let ofGeneration = scenes.get(generation);
  if (ofGeneration === undefined) {
    ofGeneration = new Map();
    scenes.set(generation, ofGeneration);
  }
  let scene = ofGeneration.get(route);
  if (scene === undefined) {
    scene = new HeardScene(chain, around);
    ofGeneration.set(route, scene);
  }
  return scene;
}

/** Keeps nothing of a request, and can do nothing for one: it has ended. */
export class HeardScene implements VisitScene {
  readonly chain: Chain;
  readonly route: NamedObject | null;
  readonly service: NamedObject | null;
  readonly #generation: Generation;
  readonly #scope: WorkerScope;

  constructor(chain: Chain, { generation, scope, route }: Surroundings) {
    this.chain = chain;
    this.#generation = generation;
    this.#scope = scope;
    this.route = route === null ? null : { id: route.id, name: route.route.name };
    this.service = this.serviceNamed(route?.route.service_id ?? "");
  }

  get consumers(): Consumers {
    return this.#generation.consumers;
  }

  bodyLengthOf(context: RequestContext): number {
    return declaredLength(context);
  }

  bodyOf(context: RequestContext): HeldBody {
    return new HeldBody({ context, readTimeout: 0, refuse() {} });
  }

  hasService(id: string): boolean {
    return this.#generation.services.get(id)?.isHttp === true;
  }

  serviceNamed(id: string): NamedObject | null {
    const service = this.#generation.services.get(id);
    return service === undefined ? null : { id, name: service.service.name };
  }

  country(address: string): string | null {
    return this.#scope.geo.country(address);
  }

  asn(address: string): number | null {
    return this.#scope.geo.asn(address);
  }

  refetch(): Promise<Refetched> {
    return Promise.reject(new Error("the request has ended"));
  }

  failed(context: RequestContext, runtime: PluginRuntime, error: unknown): void {
    this.#scope.pluginFailed(context, runtime.plan, error);
  }

  decided(plugin: string, decision: Decision): void {
    this.#scope.decided(plugin, decision);
  }

  copyFor(): VisitScene {
    return this;
  }
}
