// The context that plugins see of one stream connection, and the calls of their handlers; knows no socket.
import type { NamedObject, StreamContext, StreamRefusal, StreamResult } from "../../pdk/context.ts";
import type { LogLine } from "../data-plane.ts";
import type { PluginDecision } from "./chain-cursor.ts";
import type { Geo } from "./geo.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { RequestMemory } from "./request-memory.ts";

/** What plugin contexts need beside the connection. */
export interface StreamPluginHost {
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  /** A handler failed. */
  readonly failed: (runtime: PluginRuntime, connectionId: string, error: unknown) => void;
  /** For the counters. */
  readonly decided: (plugin: string, decision: PluginDecision) => void;
}

/** One for all connections of a worker. */
export const streamPluginHost = (
  geo: Geo,
  decided: StreamPluginHost["decided"],
  log: LogLine,
): StreamPluginHost => ({
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

/** A connection once its route is known. */
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
  readonly #host: StreamPluginHost;
  readonly #chain: readonly PluginRuntime[];
  /** Instances whose `connect` has run: their `disconnect` runs too. */
  readonly #connected: PluginRuntime[] = [];
  readonly #reasons: string[] = [];
  #memory: RequestMemory | null = null;

  constructor(info: StreamInfo, host: StreamPluginHost, chain: readonly PluginRuntime[]) {
    this.#info = info;
    this.#host = host;
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
    return this.#host.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#host.asn(this.clientAddress());
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

  // The calls of handlers.

  /** Runs `connect` of all plugins: the refusal, or null. Call it once, and `end` when the connection has ended. */
  connect(): StreamRefusal | null {
    for (const runtime of this.#chain) {
      const { handlers, plan, whenStream } = runtime;
      if (whenStream !== null && !whenStream(this)) continue;
      this.#connected.push(runtime);
      try {
        const refusal = handlers.connect?.(this);
        this.#host.decided(plan.name, refusal === undefined ? "pass" : "reject");
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
    for (const runtime of this.#connected.splice(0))
      try {
        runtime.handlers.disconnect?.(this, result);
      } catch (error) {
        this.#fail(runtime, error);
      }
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    this.#host.decided(runtime.plan.name, "error");
    this.#host.failed(runtime, this.id, error);
    this.note(`${runtime.plan.name}.error`);
  }
}
