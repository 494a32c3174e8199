// Explains which route matches a request and why others do not; a worker decides.
import { decode } from "../model/decode.ts";
import { invalid, noWorker } from "../model/error.ts";
import { type ExplainInput, explainInput } from "../model/explain.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { scopeOf } from "../model/plugin.ts";
import type {
  ExplainedCandidate,
  ExplainedOutcome,
  ExplainedPlugin,
  ExplainedRequest,
  ExplainedUpgrade,
  Explanation,
} from "../snapshot/explanation.ts";
import type { WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import type { Changes } from "./change.ts";
import { fieldChecks } from "./field-checks.ts";
import { type EngineView, explainEngine } from "./explained-engine.ts";
import type { TargetStates } from "./health/target-states.ts";
import type { TargetView } from "./representation.ts";

/** Asks any serving worker; null when there is none. */
export type AskWorker = (question: WorkerQuestion) => Promise<WorkerAnswer>;

interface Named {
  readonly id: string;
  readonly name: string | null;
}

export interface CandidateView {
  readonly route: Named;
  /** From 1; null for a disabled route. */
  readonly position: number | null;
  readonly matched: boolean;
  /** Why it does not match; null: it matches. */
  readonly reason: string | null;
}

export interface PluginView {
  readonly id: string;
  /** Name of the plugin. */
  readonly name: string;
  readonly label: string | null;
  /** Scope: `global`, `route` and so on. */
  readonly scope: string | null;
  readonly phases: readonly string[];
  /** Whether its condition matches; null: it depends on the client's identity. */
  readonly applies: boolean | null;
}

export interface ExplanationView extends Pick<EngineView, "engine" | "grpc"> {
  readonly listener: Named | null;
  readonly route: Named | null;
  readonly service: Named | null;
  readonly path_handling: Explanation["pathHandling"];
  readonly outcome: ExplainedOutcome;
  readonly upgrade: ExplainedUpgrade | null;
  readonly status: number | null;
  readonly detail: string | null;
  readonly upstream: {
    readonly url: string;
    readonly host: string;
    readonly targets: readonly (TargetView & { readonly url: string })[];
  } | null;
  readonly candidates: readonly CandidateView[];
  readonly plugins: readonly PluginView[];
  readonly default_site: GatewayConfig["settings"]["default_site"] | null;
}

/** Includes disabled routes, up to this number. */
const MAX_CANDIDATES = 100;

export class RouteExplainer {
  readonly #changes: Changes;
  readonly #states: TargetStates;
  readonly #ask: AskWorker;

  constructor(changes: Changes, states: TargetStates, ask: AskWorker) {
    this.#changes = changes;
    this.#states = states;
    this.#ask = ask;
  }

  /** Throws a 400 for an invalid request. */
  async explain(body: unknown): Promise<ExplanationView> {
    const request = requestOf(decode(explainInput, body));
    const answer = await this.#ask({ kind: "explain", request });
    if (answer === null || typeof answer !== "object" || !("candidates" in answer))
      throw noWorker();
    return this.#view(answer, request);
  }

  #view(answer: Explanation, request: ExplainedRequest): ExplanationView {
    const { config } = this.#changes;
    const { listeners, routes, services, settings } = config;
    const { misdirected, engine, grpc } = explainEngine(config, request, answer);
    const isProxied = answer.targets.length > 0;
    if (misdirected !== null && isProxied)
      return this.#view({ ...answer, ...refused, detail: misdirected }, request);
    return {
      listener: named(listeners, answer.listenerId),
      route: named(routes, answer.routeId),
      service: named(services, answer.serviceId),
      engine,
      grpc,
      path_handling: answer.pathHandling,
      outcome: answer.outcome,
      upgrade: answer.upgrade,
      status: answer.status === 0 ? null : answer.status,
      detail: answer.detail,
      upstream: this.#upstream(answer),
      candidates: candidatesOf(answer, config),
      plugins: answer.plugins.flatMap((explained) => pluginOf(explained, config)),
      default_site: answer.outcome === "default_site" ? settings.default_site : null,
    };
  }

  #upstream({ targets }: Explanation): ExplanationView["upstream"] {
    const { config } = this.#changes;
    const found = targets.flatMap(({ targetId, url, host }) => {
      const target = config.targets.get(targetId);
      return target === undefined ? [] : [{ view: { ...this.#states.view(target), url }, host }];
    });
    const [first] = found.toSorted(
      (a, b) => badness(a.view) - badness(b.view) || a.view.priority - b.view.priority,
    );
    if (first === undefined) return null;
    return { url: first.view.url, host: first.host, targets: found.map(({ view }) => view) };
  }
}

/** RFC 9110 section 15.5.20. */
const refused = { outcome: "refused", status: 421, targets: [], upgrade: null } as const;

/** Available targets come first. */
const badness = ({ health }: TargetView) =>
  health.state === "unhealthy" || health.state === "draining" ? 1 : 0;

function candidatesOf({ candidates, routeId }: Explanation, config: GatewayConfig) {
  const standing = candidates.flatMap((candidate) => candidateOf(candidate, routeId, config));
  const off: CandidateView[] = [];
  for (const { id, name, enabled } of config.routes.values()) {
    if (standing.length + off.length >= MAX_CANDIDATES) break;
    if (enabled) continue;
    off.push({
      route: { id, name },
      position: null,
      matched: false,
      reason: "enabled: the route is disabled",
    });
  }
  return [...standing, ...off];
}

function candidateOf(
  { routeId, position, reason }: ExplainedCandidate,
  winner: string | null,
  config: GatewayConfig,
): CandidateView[] {
  const route = named(config.routes, routeId);
  if (route === null) return [];
  const matched = reason === null;
  const comesLater = matched && routeId !== winner;
  return [
    { route, position, matched, reason: comesLater ? "another route matches first" : reason },
  ];
}

function pluginOf({ id, phases, applies }: ExplainedPlugin, config: GatewayConfig): PluginView[] {
  const plugin = config.plugins.get(id);
  if (plugin === undefined) return [];
  return [{ id, name: plugin.name, label: plugin.label, scope: scopeOf(plugin), phases, applies }];
}

function named(objects: ReadonlyMap<string, Named>, id: string | null): Named | null {
  const object = objects.get(id ?? "");
  return object === undefined ? null : { id: object.id, name: object.name };
}

function requestOf({ method, url, headers, client_ip: clientIp }: ExplainInput): ExplainedRequest {
  if (!/^https?:\/\/[^/]/i.test(url) || !URL.canParse(url))
    throw invalid("url", "must be an absolute address such as https://shop.example.com/cart");
  const problem = fieldChecks.listenAddress(clientIp);
  if (problem !== null) throw invalid("client_ip", problem);
  const lower: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]]);
    } catch {
      throw invalid(`headers.${name}`, "is not a header field");
    }
    lower[name.toLowerCase()] = value;
  }
  return { method, url, headers: lower, clientIp };
}
