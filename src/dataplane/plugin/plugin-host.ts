// What plugins can use beyond their request, for one version of the configuration; knows no plugin and no single request.
import type { Consumers, NamedObject, Refetched, RefetchOptions } from "../../pdk/context.ts";
import type { ClientRequest, ServeContext } from "../request/client-request.ts";
import type { PluginDecision } from "./chain-cursor.ts";
import type { DeferredLog, DeferredLogQueue } from "./deferred-log-queue.ts";
import { PluginContext, type PluginServices } from "./plugin-context.ts";
import type { Chain, PluginRuntime } from "./plugin-set.ts";
import { refetch } from "./refetch.ts";

export interface PluginHostOptions extends ServeContext {
  readonly deferredLogs: DeferredLogQueue;
  /** Sends a copy of a request upstream when no plugin responds. */
  readonly forward: (request: ClientRequest) => void;
}

export class PluginHost implements PluginServices {
  readonly consumers: Consumers;
  readonly #options: PluginHostOptions;

  constructor(options: PluginHostOptions) {
    this.#options = options;
    this.consumers = options.generation.consumers;
  }

  contextOf(request: ClientRequest, chain: Chain): PluginContext {
    return new PluginContext(request, chain, this);
  }

  hasService(id: string): boolean {
    return this.#options.generation.services.get(id)?.isHttp === true;
  }

  serviceNamed(id: string): NamedObject | null {
    const service = this.#options.generation.services.get(id);
    return service === undefined ? null : { id, name: service.service.name };
  }

  country(address: string): string | null {
    return this.#options.worker.geo.country(address);
  }

  asn(address: string): number | null {
    return this.#options.worker.geo.asn(address);
  }

  refetch(from: PluginContext, options: RefetchOptions): Promise<Refetched> {
    return refetch(from, options, this.#options.forward);
  }

  failed(requestId: string, { plan }: PluginRuntime, error: unknown): void {
    this.#options.worker.log("warn", "a plugin failed", {
      request_id: requestId,
      plugin: plan.name,
      instance: plan.label ?? plan.id,
      error: error instanceof Error ? error.message : String(error),
    });
  }

  decided(plugin: string, decision: PluginDecision): void {
    this.#options.worker.recorder.decided(plugin, decision);
  }

  deferLog(log: DeferredLog): void {
    this.#options.deferredLogs.add(log);
  }
}
