// What plugins may ask of the configuration that their request is served with; knows no single request and no plugin.
import type { Consumers, NamedObject } from "../../pdk/context.ts";
import type { Generation } from "../generation.ts";
import type { RequestContext } from "../request-context.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { WorkerScope } from "../worker-scope.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import type { Decision } from "./visit-scene.ts";

export interface Surroundings {
  readonly generation: Generation;
  readonly scope: WorkerScope;
  readonly route: RouteRuntime | null;
}

/** The part of a VisitScene that is the same before a request has ended and afterwards. */
export abstract class ServedScene<Around extends Surroundings> {
  protected readonly around: Around;

  constructor(around: Around) {
    this.around = around;
  }

  get consumers(): Consumers {
    return this.around.generation.consumers;
  }

  hasService(id: string): boolean {
    return this.around.generation.services.get(id)?.isHttp === true;
  }

  serviceNamed(id: string): NamedObject | null {
    const service = this.around.generation.services.get(id);
    return service === undefined ? null : { id, name: service.service.name };
  }

  country(address: string): string | null {
    return this.around.scope.geo.country(address);
  }

  asn(address: string): number | null {
    return this.around.scope.geo.asn(address);
  }

  failed(context: RequestContext, runtime: PluginRuntime, error: unknown): void {
    this.around.scope.pluginFailed(context, runtime.plan, error);
  }

  decided(plugin: string, decision: Decision): void {
    this.around.scope.decided(plugin, decision);
  }

  /** The route and its service, as plugins name them. */
  protected get ownRoute(): NamedObject | null {
    const { route } = this.around;
    return route === null ? null : { id: route.id, name: route.route.name };
  }

  protected get ownService(): NamedObject | null {
    return this.serviceNamed(this.around.route?.route.service_id ?? "");
  }
}
