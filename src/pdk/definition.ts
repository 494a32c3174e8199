// What a plugin is: its name, its place in the order, its configuration and its handlers; knows no plugin.
import type { Static, TObject } from "@sinclair/typebox";
import type { ScopeName } from "../model/plugin.ts";
import type { Outcome } from "./answer.ts";
import type {
  NamedObject,
  RequestContext,
  ResponseDraft,
  StreamContext,
  StreamRefusal,
  StreamResult,
} from "./context.ts";
import type { Counters, PluginKit } from "./kit.ts";

/**
 * The phases of a request, in their order, and the handler that runs in each: the API and the docs write phases in snake_case.
 * Stream connections have only `connect`; plugins change bodies from `response`.
 */
export const phaseHandlers = {
  connect: "connect",
  pre_auth: "preAuth",
  auth: "auth",
  access: "access",
  request: "request",
  response: "response",
  body: "response",
  log: "log",
} as const satisfies Record<string, keyof PluginHandlers>;
export type PhaseName = keyof typeof phaseHandlers;
export const phaseNames = Object.keys(phaseHandlers) as readonly PhaseName[];

type Handler = (context: RequestContext) => Outcome | Promise<Outcome>;

/**
 * What an instance does. All handlers may run for many requests at a time. A handler that has no need to wait should not
 * return a promise: it is cheaper by a turn of the event loop.
 */
export interface PluginHandlers {
  /**
   * Removes the fields by which only this instance names the client to targets. Runs before all phases, for every request of
   * the instance's scope: also where `when` does not match, or a client could send these fields itself.
   */
  readonly stripIdentity?: (context: RequestContext) => void;
  /** Before the client is authenticated; may respond. */
  readonly preAuth?: Handler;
  /** Says who the client is, or refuses. */
  readonly auth?: Handler;
  /**
   * Runs instead of `auth` when a policy skips authentication, and after it when the anonymous consumer is used: hides the
   * credentials of this instance from upstream, and leaves what may be meant for the application.
   */
  readonly authSkipped?: (context: RequestContext) => void;
  /** Limits, policies, validation. */
  readonly access?: Handler;
  /** Changes what goes upstream. */
  readonly request?: Handler;
  /**
   * Changes the head of an answer and says what becomes of its body. Plugins see the answer in the reverse of the order in
   * which they saw the request; an answer that a plugin gave is seen only by those before it in that order.
   */
  readonly response?: (context: RequestContext, response: ResponseDraft) => void;
  /** After the last byte, exactly once, whatever happened. Nobody waits for it. */
  readonly log?: (context: RequestContext) => void;
  /**
   * In the place of `log`, for instances that can wait: called for many requests in a row, up to 20 ms after their end, which
   * is several times cheaper. The context is reused for the next request after the call: what is wanted later has to be copied
   * out of it, and nothing can be waited for.
   */
  readonly logLater?: (context: RequestContext) => void;
  /** A stream connection was accepted. */
  readonly connect?: (context: StreamContext) => StreamRefusal | undefined;
  /** A stream connection that `connect` was asked about has ended. */
  readonly disconnect?: (context: StreamContext, result: StreamResult) => void;
  /** Forgets stored answers, also those that are still on their way; how many there were. */
  readonly purge?: (which: Purge) => number;
  /**
   * The instance is gone, was replaced by another version of itself, or the gateway stops, which waits for a promise for less
   * than a second: long enough to send what is left.
   */
  readonly close?: () => void | Promise<void>;
}

/** Which stored answers are meant. */
export type Purge =
  | { readonly by: "all" }
  /** `host/path?query`, or `/path?query` on any host; without query only what was asked for without one. */
  | { readonly by: "key"; readonly value: string }
  /** What begins like this, in the same form. */
  | { readonly by: "prefix"; readonly value: string }
  /** One of the words of their Surrogate-Key. */
  | { readonly by: "tag"; readonly value: string };

/** An instance and what there is around it, for its metrics. */
export interface MetricInstance {
  readonly id: string;
  /** Label, or id. */
  readonly name: string;
  readonly scope: ScopeName;
  /** Where it applies; null: everywhere. */
  readonly service: NamedObject | null;
  readonly route: NamedObject | null;
  /** All that speak HTTP. */
  readonly services: readonly NamedObject[];
}

/** What a plugin shows in the metrics beside its decisions. */
export interface PluginMetric {
  /** `sluice_circuit_state`; of a counter without `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** Of one enabled instance, from its counters; runs in the main thread whenever somebody asks. */
  readonly read: (
    instance: MetricInstance,
    counters: Counters,
  ) => readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** A plugin as its file exports it. */
export interface PluginDefinition<S extends TObject = TObject> {
  /** Unique, `key-auth`. */
  readonly name: string;
  /** One sentence for lists. */
  readonly summary: string;
  /** Some paragraphs of Markdown for its page. */
  readonly description: string;
  readonly group: "authentication" | "access" | "traffic" | "content" | "observability";
  /** Place within a phase, higher first. Bands: see docs/writing-a-plugin.md. */
  readonly order: number;
  readonly phases: readonly PhaseName[];
  readonly scopes: readonly ScopeName[];
  /** Its settings: every field with a description, and with a default unless it is required. */
  readonly config: S;
  /** A configuration for its page, which a test runs. */
  readonly example: Record<string, unknown>;
  /** What happens to a request when a handler throws. */
  readonly onError: "open" | "closed";
  /** Several enabled instances in one place; default false. */
  readonly allowsMultiple?: boolean;
  /** Whether it gives requests their ids, in the place of the gateway; default false. */
  readonly namesRequests?: boolean;
  /** Only admins may write instances; default false. */
  readonly needsAdmin?: boolean;
  /**
   * Regular expressions in texts and objects that no field made with `regex` holds, with their paths inside the configuration:
   * the gateway refuses those that could take long.
   */
  readonly regexes?: (
    config: Static<S>,
  ) => readonly { readonly path: string; readonly source: string }[];
  /** What is wrong beyond the schema: the path inside the configuration, and a message that follows it. */
  readonly check?: (
    config: Static<S>,
  ) => readonly { readonly path: string; readonly message: string }[];
  readonly metrics?: readonly PluginMetric[];
  /** Makes an instance; runs in every worker when it is written or the worker starts. Heavy packages are imported here. */
  readonly create: (config: Static<S>, kit: PluginKit) => PluginHandlers | Promise<PluginHandlers>;
}

/** A definition whose configuration nobody looks into. */
export type AnyPlugin = Omit<PluginDefinition, "check" | "create" | "regexes"> & {
  readonly regexes?: (
    config: never,
  ) => readonly { readonly path: string; readonly source: string }[];
  readonly check?: (
    config: never,
  ) => readonly { readonly path: string; readonly message: string }[];
  readonly create: (config: never, kit: PluginKit) => PluginHandlers | Promise<PluginHandlers>;
};

/** Gives the definition back, with the type of its configuration worked out. */
export const definePlugin = <S extends TObject>(definition: PluginDefinition<S>): AnyPlugin =>
  definition as unknown as AnyPlugin;

/** Where plugins for HTTP apply unless they say otherwise. */
export const httpScopes: readonly ScopeName[] = [
  "global",
  "service",
  "route",
  "consumer",
  "consumer_route",
  "consumer_service",
];

/** Where plugins that find out who the client is apply: not to those whom they would have to know already. */
export const authScopes: readonly ScopeName[] = ["global", "service", "route"];
