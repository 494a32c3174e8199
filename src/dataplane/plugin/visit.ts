// One request on its way through plugins: what they see of it, and the running of their handlers; knows no upstream connection.
import type { Answer, Outcome, Rejection } from "../../pdk/answer.ts";
import type {
  AuthMode,
  ClientTls,
  Consumers,
  ConsumerView,
  CredentialView,
  NamedObject,
  RequestContext as PluginRequest,
  RequestResult,
} from "../../pdk/context.ts";
import { cookieValue } from "../../http/cookie.ts";
import { queryValue } from "../../http/query.ts";
import type { RequestContext } from "../request-context.ts";
import type { AnswerDraft } from "./answer-draft.ts";
import type { HeldBody } from "./held-body.ts";
import { type Chain, requestPhases } from "./chain.ts";
import type { PluginRuntime } from "./plugin-set.ts";
import { UpstreamEdits } from "./upstream-edits.ts";

/** What a visit needs beside the request. */
export interface VisitScene {
  readonly chain: Chain;
  readonly route: NamedObject | null;
  readonly service: NamedObject | null;
  readonly consumers: Consumers;
  readonly hasService: (id: string) => boolean;
  readonly country: (address: string) => string | null;
  readonly asn: (address: string) => number | null;
  readonly body: HeldBody;
  /** A handler failed. */
  readonly failed: (runtime: PluginRuntime, error: unknown) => void;
  /** For the counters. */
  readonly decided: (plugin: string, decision: Decision) => void;
}

/** What a plugin has decided about a request. */
export type Decision = "pass" | "reject" | "reply" | "error";

/** An answer and the place in the order of the plugin that gave it. */
export interface PluginAnswer {
  readonly answer: Answer;
  readonly order: number;
}

/** Fields that say who the client is; whatever a client sends under these names stays behind. */
export const IDENTITY_FIELDS = {
  id: "x-consumer-id",
  username: "x-consumer-username",
  customId: "x-consumer-custom-id",
  credential: "x-credential-identifier",
  anonymous: "x-anonymous-consumer",
  groups: "x-consumer-groups",
} as const;

export class Visit implements PluginRequest {
  readonly #context: RequestContext;
  readonly #scene: VisitScene;
  #chain: Chain;
  #consumer: ConsumerView | null = null;
  #credential: CredentialView | null = null;
  #credentialId: string | null = null;
  #isAnonymous = false;
  #isAuthenticated = false;
  #groups: readonly string[] = [];
  #memory: Map<object, unknown> | null = null;
  /** Verdicts of `when`, so that it is asked once. */
  #verdicts: Map<PluginRuntime, boolean> | null = null;
  readonly #reasons: string[] = [];
  #isLogged = false;
  authMode: AuthMode = "default";
  result: RequestResult | null = null;
  readonly startedAt = Date.now();

  constructor(context: RequestContext, scene: VisitScene) {
    this.#context = context;
    this.#scene = scene;
    this.#chain = scene.chain;
  }

  // What plugins see.

  get id(): string {
    return this.#context.id;
  }

  setId(id: string): void {
    this.#context.setId(id);
  }

  get method(): string {
    return this.#context.method;
  }

  get host(): string {
    return this.#context.host;
  }

  get clientHost(): string {
    return this.#context.clientHost();
  }

  get scheme(): "http" | "https" {
    return this.#context.clientScheme();
  }

  get path(): string {
    return this.#context.path;
  }

  get query(): string {
    return this.#context.query;
  }

  get target(): string {
    return this.#context.target;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#context.headers;
  }

  header(name: string): string | null {
    return this.#context.header(name);
  }

  cookie(name: string): string | null {
    return cookieValue(this.#context.header("cookie"), name);
  }

  queryValue(name: string): string | null {
    return queryValue(this.#context.query, name);
  }

  clientAddress(): string {
    return this.#context.clientAddress();
  }

  peerAddress(): string {
    return this.#context.peerAddress();
  }

  isFromTrustedProxy(): boolean {
    return this.#context.isFromTrustedProxy();
  }

  country(): string | null {
    return this.#scene.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#scene.asn(this.clientAddress());
  }

  get tls(): ClientTls | null {
    const { connection } = this.#context;
    if (connection === null) return null;
    const { tlsVersion: version, serverName, clientCertificate } = connection;
    return { version, serverName, clientCertificate };
  }

  get route(): NamedObject | null {
    return this.#scene.route;
  }

  get service(): NamedObject | null {
    return this.#scene.service;
  }

  get signal(): AbortSignal {
    return this.#context.request.signal;
  }

  get consumers(): Consumers {
    return this.#scene.consumers;
  }

  get consumer(): ConsumerView | null {
    return this.#consumer;
  }

  get credential(): CredentialView | null {
    return this.#credential;
  }

  get credentialId(): string | null {
    return this.#credentialId;
  }

  get isAnonymous(): boolean {
    return this.#isAnonymous;
  }

  get isAuthenticated(): boolean {
    return this.#isAuthenticated;
  }

  get groups(): readonly string[] {
    return this.#groups;
  }

  authenticate(
    consumer: ConsumerView | null,
    by: {
      readonly credential?: CredentialView | null;
      readonly credentialId?: string | null;
      readonly groups?: readonly string[];
      readonly isAnonymous?: boolean;
    },
  ): void {
    const { credential = null, credentialId = null, groups = [], isAnonymous = false } = by;
    this.#consumer = consumer;
    this.#credential = credential;
    this.#credentialId = isAnonymous ? null : (credential?.id ?? credentialId);
    this.#isAnonymous = isAnonymous;
    this.#isAuthenticated = !isAnonymous;
    this.#groups = [...(consumer?.groups ?? []), ...groups];
    const { upstream } = this;
    const say = (name: string, value: string | null) =>
      value === null || value === ""
        ? upstream.removeHeader(name)
        : upstream.setHeader(name, value);
    say(IDENTITY_FIELDS.id, consumer?.id ?? null);
    say(IDENTITY_FIELDS.username, consumer?.username ?? null);
    say(IDENTITY_FIELDS.customId, consumer?.customId ?? null);
    const shown = credential?.identifier ?? credential?.name ?? credential?.id ?? null;
    say(IDENTITY_FIELDS.credential, isAnonymous ? null : (shown ?? asFieldValue(credentialId)));
    say(IDENTITY_FIELDS.anonymous, isAnonymous ? "true" : null);
  }

  get upstream(): UpstreamEdits {
    const context = this.#context;
    context.edits ??= new UpstreamEdits(context, this.#scene.hasService);
    return context.edits;
  }

  get hasBody(): boolean {
    return this.bodyLength !== 0;
  }

  get bodyLength(): number {
    return this.#scene.body.length;
  }

  readBody(maxBytes: number): Promise<Uint8Array | null> {
    return this.#scene.body.read(maxBytes);
  }

  limitBody(maxBytes: number): void {
    this.#scene.body.limit(maxBytes);
  }

  get memory(): Map<object, unknown> {
    this.#memory ??= new Map();
    return this.#memory;
  }

  note(reason: string): void {
    this.#reasons.push(reason);
  }

  get reasons(): readonly string[] {
    return this.#reasons;
  }

  // The running of handlers.

  /** Everything before the request goes upstream. Undefined: it goes. */
  run(): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    return this.#runFrom(0, 0);
  }

  /** From the phase with that number and the step in it; goes on by itself as long as nobody has to be waited for. */
  #runFrom(
    firstPhase: number,
    firstStep: number,
  ): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    let step = firstStep;
    for (let at = firstPhase; at < requestPhases.length; at++) {
      const phase = requestPhases[at] ?? "request";
      if (phase === "auth" && this.authMode === "skip") continue;
      // From here on it is known who the client is.
      if (phase === "access" && step === 0 && this.#consumer !== null)
        this.#chain = this.#chain.forConsumer(this.#consumer.id);
      const steps = this.#chain[phase];
      for (; step < steps.length; step++) {
        const runtime = steps[step];
        if (runtime === undefined || !this.applies(runtime)) continue;
        const outcome = this.#call(runtime, phase);
        if (outcome instanceof Promise) {
          const [phaseAt, next] = [at, step + 1];
          return outcome.then((answer) => answer ?? this.#runFrom(phaseAt, next));
        }
        if (outcome !== undefined) return outcome;
      }
      step = 0;
    }
    return undefined;
  }

  #call(
    runtime: PluginRuntime,
    phase: (typeof requestPhases)[number],
  ): PluginAnswer | undefined | Promise<PluginAnswer | undefined> {
    try {
      const outcome = runtime.handlers[phase]?.(this);
      if (!(outcome instanceof Promise)) return this.#decided(runtime, outcome);
      return outcome.then(
        (answer) => this.#decided(runtime, answer),
        (error: unknown) => this.#afterFailure(runtime, error),
      );
    } catch (error) {
      return this.#afterFailure(runtime, error);
    }
  }

  #decided(runtime: PluginRuntime, answer: Outcome): PluginAnswer | undefined {
    const { name } = runtime.plan;
    if (answer === undefined) {
      this.#scene.decided(name, "pass");
      return undefined;
    }
    this.#scene.decided(name, answer.kind === "rejection" ? "reject" : "reply");
    if (answer.reason !== "") this.note(answer.reason);
    return { answer, order: runtime.order };
  }

  #afterFailure(runtime: PluginRuntime, error: unknown): PluginAnswer | undefined {
    this.#fail(runtime, error);
    if (runtime.onError === "open") return undefined;
    const answer: Rejection = {
      kind: "rejection",
      status: 500,
      reason: "",
      detail: "a plugin failed",
      headers: {},
      token: "proxy_internal_error",
    };
    return { answer, order: runtime.order };
  }

  #fail(runtime: PluginRuntime, error: unknown): void {
    const { name } = runtime.plan;
    this.#scene.decided(name, "error");
    this.#scene.failed(runtime, error);
    this.note(`${name}.error`);
  }

  /** Whether the instance's condition holds for this request; it is asked once. */
  applies(runtime: PluginRuntime): boolean {
    const { when } = runtime;
    if (when === null) return true;
    this.#verdicts ??= new Map();
    const known = this.#verdicts.get(runtime);
    if (known !== undefined) return known;
    const verdict = when(this);
    // Before authentication nobody knows who the client is, and afterwards the verdict may be another.
    if (!runtime.asksForConsumer) this.#verdicts.set(runtime, verdict);
    return verdict;
  }

  /** Shows the answer to the plugins outside of `order`; default: to all. */
  respond(draft: AnswerDraft, order = Number.NEGATIVE_INFINITY): void {
    for (const runtime of this.#chain.response) {
      if (runtime.order <= order || !this.applies(runtime)) continue;
      try {
        runtime.handlers.response?.(this, draft);
      } catch (error) {
        // The target has answered: to refuse now would not take back what was done.
        this.#fail(runtime, error);
      }
    }
  }

  /** The request has ended. */
  log(result: RequestResult): void {
    if (this.#isLogged) return;
    this.#isLogged = true;
    this.result = result;
    for (const runtime of this.#chain.log) {
      if (!this.applies(runtime)) continue;
      try {
        runtime.handlers.log?.(this);
      } catch (error) {
        this.#fail(runtime, error);
      }
    }
  }
}

/** A name from outside may hold what a field cannot. */
const asFieldValue = (text: string | null) => text?.replace(/[^\x20-\x7e]/g, "?").trim() ?? null;
