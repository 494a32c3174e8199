// The definition of a plugin: name, order, configuration and handlers; knows no plugin.
import type { Static, TObject } from "@sinclair/typebox";
import type { ScopeName } from "../model/plugin.ts";
import type { Steps } from "../pace.ts";
import type { Outcome } from "./response.ts";
import type {
  NamedObject,
  RequestContext,
  ResponseDraft,
  StreamContext,
  StreamRefusal,
  StreamResult,
} from "./context.ts";
import type { Counters, Feed, FeedKit, PluginKit } from "./kit.ts";

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
 * The handlers of an instance. All handlers may run for many requests at a time. A handler that does not wait should not
 * return a promise, which costs a turn of the event loop.
 */
export interface PluginHandlers {
  /**
   * Removes the fields by which only this instance names the client to targets. Runs before all phases, for every request of
   * the instance's scope: also where `when` does not match, or a client could send these fields itself.
   */
  readonly stripIdentity?: (context: RequestContext) => void;
  /** Before the client is authenticated; may respond. */
  readonly preAuth?: Handler;
  /** Authenticates the client, or rejects the request. */
  readonly auth?: Handler;
  /**
   * Runs instead of `auth` when a policy skips authentication, and after it when the anonymous consumer is used: hides the
   * credentials of this instance from upstream, and leaves what may be addressed to the application.
   */
  readonly authSkipped?: (context: RequestContext) => void;
  /** Limits, policies, validation. */
  readonly access?: Handler;
  /** Changes the upstream request. */
  readonly request?: Handler;
  /**
   * Changes a response. Plugins see the response in the reverse order of the request; the response of a plugin is seen only
   * by plugins with a higher order.
   */
  readonly response?: (context: RequestContext, response: ResponseDraft) => void;
  /** After the last byte, exactly once, whatever happened. */
  readonly log?: (context: RequestContext) => void;
  /**
   * Instead of `log`, at a fraction of its cost: called for many requests in a row, up to 20 ms after their end. The gateway
   * reuses the context after the call: copy what is needed later, and do not wait.
   */
  readonly logBatch?: (context: RequestContext) => void;
  /** A stream connection was accepted. */
  readonly connect?: (context: StreamContext) => StreamRefusal | undefined;
  /** A stream connection has ended for which `connect` was called. */
  readonly disconnect?: (context: StreamContext, result: StreamResult) => void;
  /**
   * The instance was removed or replaced by a new version, or the gateway stops, which waits for a promise for less than a
   * second: long enough to send the rest of a queue.
   */
  readonly close?: () => void | Promise<void>;
}

/** What a plugin stores in the memory that its instance has in common for all workers (`PluginKit.openCache`). */
export interface CacheUse<Config> {
  /** Bytes of memory, and of files, for all workers together. */
  readonly size: (config: Config) => { readonly bytes: number; readonly fileBytes: number };
  /** The resource of an entry (`CacheRecord.resource`) by the address that a user wants to purge. */
  readonly resourceOf: (config: Config, address: string) => string;
  /** The main thread has removed an entry with a file, which had this head. */
  readonly onFileRemoved?: (directory: string, head: Uint8Array) => void;
}

/** A plugin from a directory, as the snapshot carries it to the workers. */
export interface PluginCode {
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
  /** One ES module, UTF-8, in memory that all threads read. */
  readonly text: SharedArrayBuffer;
  /** From 1; the worker writes it into its row of the board while the plugin runs. */
  readonly number: number;
  /** Why it must not run any more; null: it may. */
  readonly disabled: string | null;
  /** Whether the text stands for a plugin that could not be loaded, and rejects. Default: false. */
  readonly isAbsent?: boolean;
}

/** What the main thread fetches for instances, once for all workers. */
export interface FeedUse<Config> {
  /** Instances with the same key share a feed. */
  readonly keyOf: (config: Config) => string;
  /** Runs when the first of them is in service. */
  readonly start: (kit: FeedKit) => Feed<Config>;
}

/** An instance and its surroundings, for metrics. */
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

/** A metric of a plugin, beside the count of its decisions. */
export interface PluginMetric {
  /** `sluice_circuit_state`; of a counter without `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** Reads the values of one enabled instance from its counters; runs in the main thread at each scrape. */
  readonly read: (
    instance: MetricInstance,
    counters: Counters,
  ) => readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/** A plugin as its module exports it. */
export interface PluginDefinition<S extends TObject = TObject> {
  /** Unique, `key-auth`. */
  readonly name: string;
  /** One sentence, for lists. */
  readonly summary: string;
  /** Markdown, for its page. */
  readonly description: string;
  readonly group: "authentication" | "access" | "traffic" | "content" | "observability";
  /** Execution order within a phase, higher first. Bands: see docs/writing-a-plugin.md. */
  readonly order: number;
  readonly phases: readonly PhaseName[];
  readonly scopes: readonly ScopeName[];
  /** Its settings: every field has a description, and a default unless it is required. */
  readonly config: S;
  /** A configuration for its page, which a test runs. */
  readonly example: Record<string, unknown>;
  /** When a handler throws: `open` continues, `closed` responds 500. */
  readonly onError: "open" | "closed";
  /** Whether one scope may have several enabled instances; default false. */
  readonly allowsMultiple?: boolean;
  /** Whether it sets request ids instead of the gateway; default false. */
  readonly namesRequests?: boolean;
  /** Whether only admins may write instances; default false. */
  readonly needsAdmin?: boolean;
  /**
   * Whether it decides nothing by the path, and at most logs it, so that it may run on routes with `path_handling: "raw"`, where
   * `path` and `target` are as the client has sent them. Conditions and services in its configuration are checked separately.
   * Default: false.
   */
  readonly ignoresPath?: boolean;
  /**
   * Regular expressions outside of fields made with `regex`, with their paths inside the configuration: the gateway rejects
   * expressions with unbounded backtracking.
   */
  readonly regexes?: (
    config: Static<S>,
  ) => readonly { readonly path: string; readonly source: string }[];
  /** Problems beyond the schema. */
  readonly check?: (config: Static<S>) => readonly PluginProblem[];
  /** Likewise, for work of many milliseconds: yields between its steps, so that the management API responds meanwhile. */
  readonly longCheck?: (config: Static<S>) => Steps<readonly PluginProblem[]>;
  /**
   * Milliseconds that a handler of a plugin from a directory may wait before it counts as failed; default 30,000, 1 to 600,000.
   * Built-in plugins limit what they wait for themselves.
   */
  readonly handlerTimeoutMs?: number;
  /** What each node of a fleet does for itself without `--counters`, as a sentence for a warning; null: nothing. */
  readonly perNode?: (config: Static<S>) => string | null;
  readonly metrics?: readonly PluginMetric[];
  /** Gives each instance a store of responses for all workers; purges apply to it. */
  readonly cache?: CacheUse<Static<S>>;
  /** Work in the background, in the main thread; its instances get the results by `PluginKit.followFeed`. */
  readonly feed?: FeedUse<Static<S>>;
  /** Whether each instance is created in a thread of its own before workers have it, not only large ones; default false. */
  readonly isTried?: boolean;
  /** Creates an instance; runs in every worker when it is written or the worker starts. Import heavy packages here. */
  readonly create: (config: Static<S>, kit: PluginKit) => PluginHandlers | Promise<PluginHandlers>;
}

/** The path inside the configuration, and a message that follows it. */
export interface PluginProblem {
  readonly path: string;
  readonly message: string;
}

/** A definition without the type of its configuration. */
export type AnyPlugin = Omit<
  PluginDefinition,
  "cache" | "check" | "create" | "feed" | "longCheck" | "perNode" | "regexes"
> & {
  readonly cache?: CacheUse<never>;
  readonly feed?: FeedUse<never>;
  readonly regexes?: (
    config: never,
  ) => readonly { readonly path: string; readonly source: string }[];
  readonly check?: (config: never) => readonly PluginProblem[];
  readonly longCheck?: (config: never) => Steps<readonly PluginProblem[]>;
  readonly perNode?: (config: never) => string | null;
  readonly create: (config: never, kit: PluginKit) => PluginHandlers | Promise<PluginHandlers>;
  /** Set by the gateway for a plugin from a directory. */
  readonly code?: PluginCode;
};

/** Infers the type of the configuration from the schema. */
export const definePlugin = <S extends TObject>(definition: PluginDefinition<S>): AnyPlugin =>
  definition as unknown as AnyPlugin;

/** The usual scopes of HTTP plugins. */
export const httpScopes: readonly ScopeName[] = [
  "global",
  "service",
  "route",
  "consumer",
  "consumer_route",
  "consumer_service",
];

/** The scopes of authentication plugins: the consumer is not known before them. */
export const authScopes: readonly ScopeName[] = ["global", "service", "route"];
