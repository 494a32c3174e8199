// One stream connection on its way past plugins: what they see of it, and the running of their handlers; knows no socket.
import type { NamedObject, StreamContext, StreamRefusal, StreamResult } from "../../pdk/context.ts";
import type { LogLine } from "../data-plane.ts";
import type { PluginDecision } from "./chain-cursor.ts";
import type { Geo } from "./geo.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { RequestMemory } from "./request-memory.ts";

/** What visits need beside the connection. */
export interface StreamScene {
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  /** A handler failed. */
  readonly failed: (runtime: PluginRuntime, connectionId: string, error: unknown) => void;
  /** For the counters. */
  readonly decided: (plugin: string, decision: PluginDecision) => void;
}

/** The same for all connections of a worker. */
export const streamScene = (
  geo: Geo,
  decided: StreamScene["decided"],
  log: LogLine,
): StreamScene => ({
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

/** What is known of a connection once its route is. */
export interface StreamFacts {
  readonly id: string;
  readonly protocol: "tcp" | "udp";
  readonly client: { readonly address: string; readonly port: number };
  readonly serverName: string | null;
  readonly streamRoute: NamedObject;
  readonly service: NamedObject | null;
}

export class StreamVisit implements StreamContext {
  readonly startedAt = Date.now();
  readonly #facts: StreamFacts;
  readonly #scene: StreamScene;
  readonly #chain: readonly PluginRuntime[];
  /** Those that were asked, and so hear of the end. */
  readonly #asked: PluginRuntime[] = [];
  readonly #reasons: string[] = [];
  #memory: RequestMemory | null = null;

  constructor(facts: StreamFacts, scene: StreamScene, chain: readonly PluginRuntime[]) {
    this.#facts = facts;
    this.#scene = scene;
    this.#chain = chain;
  }

  // What plugins see.

  get id(): string {
    return this.#facts.id;
  }

  get protocol(): "tcp" | "udp" {
    return this.#facts.protocol;
  }

  clientAddress(): string {
    return this.#facts.client.address;
  }

  get clientPort(): number {
    return this.#facts.client.port;
  }

  get serverName(): string | null {
    return this.#facts.serverName;
  }

  get streamRoute(): NamedObject {
    return this.#facts.streamRoute;
  }

  get service(): NamedObject | null {
    return this.#facts.service;
  }

  country(): string | null {
    return this.#scene.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#scene.asn(this.clientAddress());
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

  // The running of handlers.

  /** Why the connection is refused; null: it goes on. Call it once, and `end` when the connection has ended. */
  connect(): StreamRefusal | null {
    for (const runtime of this.#chain) {
      const { handlers, plan, whenStream } = runtime;
      if (whenStream !== null && !whenStream(this)) continue;
      this.#asked.push(runtime);
      try {
        const refusal = handlers.connect?.(this);
        this.#scene.decided(plan.name, refusal === undefined ? "pass" : "reject");
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
    for (const runtime of this.#asked.splice(0))
      try {
        runtime.handlers.disconnect?.(this, result);
      } catch (error) {
        this.#fail(runtime, error);
      }
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    this.#scene.decided(runtime.plan.name, "error");
    this.#scene.failed(runtime, this.id, error);
    this.note(`${runtime.plan.name}.error`);
  }
}
