// What the visit of a request to plugins needs beside the request; knows no plugin.
import type { Consumers, NamedObject, Refetched, RefetchOptions } from "../../pdk/context.ts";
import type { RequestContext } from "../request-context.ts";
import type { Chain } from "./chain.ts";
import type { HeldBody } from "./held-body.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import type { Visit } from "./visit.ts";

/** What a visit needs beside the request. */
export interface VisitScene {
  readonly chain: Chain;
  readonly route: NamedObject | null;
  readonly service: NamedObject | null;
  readonly consumers: Consumers;
  bodyOf(context: RequestContext): HeldBody;
  /** Of the body, without making it ready to be read. */
  bodyLengthOf(context: RequestContext): number;
  hasService(id: string): boolean;
  serviceNamed(id: string): NamedObject | null;
  country(address: string): string | null;
  asn(address: string): number | null;
  /** Leads a request of the gateway's own on from where the visit is. */
  refetch(visit: Visit, options: RefetchOptions): Promise<Refetched>;
  /** A handler failed. */
  failed(context: RequestContext, runtime: PluginRuntime, error: unknown): void;
  /** For the counters. */
  decided(plugin: string, decision: Decision): void;
  /** The same for a copy of the request with this body. */
  copyFor(context: RequestContext, body: HeldBody): VisitScene;
}

/** What a plugin has decided about a request. */
export type Decision = "pass" | "reject" | "reply" | "error";
