// The context that plugins see of one stream connection, and the calling of their handlers; knows no socket.
import type { NamedObject, StreamContext, StreamRefusal, StreamResult } from "../../pdk/context.ts";
import type { LogLine } from "../data-plane.ts";
import type { PluginDecision } from "./chain-cursor.ts";
import type { Geo } from "./geo.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { RequestMemory } from "./request-memory.ts";

/** What contexts need beside the connection. */
export interface StreamPluginServices {
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  /** A handler failed. */
  readonly failed: (runtime: PluginRuntime, connectionId: string, error: unknown) => void;
  /** For the counters. */
  readonly decided: (plugin: string, decision: PluginDecision) => void;
}

/** Shared by all connections of a worker. */
export const streamPluginServices = (
  geo: Geo,
  decided: StreamPluginServices["decided"],
  log: LogLine,
): StreamPluginServices => ({
  country: geo.country,
  asn: geo.asn,
  decided,
  failed: ({ plan }, connectionId, error) =>
    log("warn", "a plugin failed", {
      connection_id: connectionId,
      plugin: plan.name,
      instance: plan.label ?? plan.id,
      error: error instanceof Error ? error.message : String(error),
    }),
});

/** A connection whose route is known. */
export interface StreamInfo {
  readonly id: string;
  readonly protocol: "tcp" | "udp";
  readonly client: { readonly address: string; readonly port: number };
  readonly serverName: string | null;
  readonly streamRoute: NamedObject;
  readonly service: NamedObject | null;
}

export class StreamPluginContext implements StreamContext {
  readonly startedAt = Date.now();
  readonly #info: StreamInfo;
  readonly #services: StreamPluginServices;
  readonly #chain: readonly PluginRuntime[];
  /** Plugins whose `connect` was called, and whose `disconnect` is still to be called. */
  readonly #called: PluginRuntime[] = [];
  readonly #reasons: string[] = [];
  #memory: RequestMemory | null = null;

  constructor(info: StreamInfo, services: StreamPluginServices, chain: readonly PluginRuntime[]) {
    this.#info = info;
    this.#services = services;
    this.#chain = chain;
  }

  // What plugins see.

  get id(): string {
    return this.#info.id;
  }

  get protocol(): "tcp" | "udp" {
    return this.#info.protocol;
  }

  clientAddress(): string {
    return this.#info.client.address;
  }

  get clientPort(): number {
    return this.#info.client.port;
  }

  get serverName(): string | null {
    return this.#info.serverName;
  }

  get streamRoute(): NamedObject {
    return this.#info.streamRoute;
  }

  get service(): NamedObject | null {
    return this.#info.service;
  }

  country(): string | null {
    return this.#services.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#services.asn(this.clientAddress());
  }

  get memory(): RequestMemory {
    this.#memory ??= new RequestMemory();
    return this.#memory;
  }

  note(reason: string): void {
    this.#reasons.push(reason);
  }

  get reasons(): readonly string[] {
    return this.#reasons;
  }

  // Calling handlers.

  /** The refusal of a plugin; null: none refuses. Call it once, and `end` when the connection has ended. */
  connect(): StreamRefusal | null {
    for (const runtime of this.#chain) {
      const { handlers, plan, whenStream } = runtime;
      if (whenStream !== null && !whenStream(this)) continue;
      this.#called.push(runtime);
      try {
        const refusal = handlers.connect?.(this);
        this.#services.decided(plan.name, refusal === undefined ? "pass" : "reject");
        if (refusal === undefined) continue;
        this.note(refusal.reason);
        return refusal;
      } catch (error) {
        this.#fail(runtime, error);
        if (runtime.onError === "closed") return { reason: `${plan.name}.error` };
      }
    }
    return null;
  }

  end(result: StreamResult): void {
    for (const runtime of this.#called.splice(0))
      try {
        runtime.handlers.disconnect?.(this, result);
      } catch (error) {
        this.#fail(runtime, error);
      }
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    this.#services.decided(runtime.plan.name, "error");
    this.#services.failed(runtime, this.id, error);
    this.note(`${runtime.plan.name}.error`);
  }
}
