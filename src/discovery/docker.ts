// Follows the containers of one Docker or Podman and serves what their labels say; knows no label.
import { hostname } from "node:os";
import type { Clock } from "../clock.ts";
import type { ClaimContext } from "./claims.ts";
import type { Log } from "../log.ts";
import type { Discovery } from "../model/discovery.ts";
import { ApiError } from "../model/error.ts";
import { Pace } from "../pace.ts";
import {
  type ContainerEvent,
  DockerClient,
  DockerError,
  type ListedContainer,
} from "./docker-client.ts";
import type { SourceView } from "./source-view.ts";
import type { Images, OfContainers } from "./images.ts";
import { ManagedSource, type ManagedSourceOptions } from "./managed-source.ts";
import type { Sighting } from "./renames.ts";

/** A burst of events is one change. */
const DEBOUNCE_MS = 250;
/** Changes without an event, such as an object that a restore has removed, are found after this time. */
const LOOK_AGAIN_MS = 60_000;
/** In which the API sends what happened while the gateway did not follow it. */
const MISSED_EVENTS_MS = 50;
/** Without events, or after a list that failed. */
const WITHOUT_EVENTS_MS = 5_000;
const RETRY_MS = { first: 500, most: 30_000 } as const;
/** The starts of a container that starts again and again are looked at less often. */
const CALM = { starts: 5, withinMs: 60_000, waitMs: 5_000 } as const;

const MAX_STARTS = 10_000;
/** Between two lists. */
const MAX_SIGHTINGS = 10_000;
/** Requests for the variables of containers. */
const AT_ONCE = 16;
/** Longer work gives the event loop a turn. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

export interface DockerOptions extends ManagedSourceOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Of this machine; default: the system's. */
  readonly hostname?: string;
  /** The mark of its objects: `docker`, and `docker@NODE` in a fleet. */
  readonly owner: string;
}

/** With the importers of other proxies, which only those need that discover something. */
const converters = () => import("./containers.ts");
const entryPoints = () => import("./entry-points.ts");

export class DockerSource {
  readonly #options: DockerOptions;
  readonly #source: ManagedSource;
  readonly #stopping = new Set<string>();
  /** What events have called containers since the last look, in their order. */
  readonly #sightings: Sighting[] = [];
  /** When the last event was, in milliseconds of the API's clock; 0: there was none since the start. */
  #eventAt = 0;
  readonly #known = new Map<string, Readonly<Record<string, string>>>();
  #images: Images | null = null;
  #rules: Discovery["docker"] | null = null;
  #client: DockerClient | null = null;
  #session = new AbortController();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #timerAt = 0;
  #again: ReturnType<typeof setTimeout> | null = null;
  #work: Promise<void> = Promise.resolve();
  #retryMs: number = RETRY_MS.first;
  /** Why there are no events; null: there are. */
  #eventProblem: string | null = null;
  /** When each container has started lately. */
  readonly #starts = new Map<string, number[]>();
  #view: Omit<SourceView, "name"> = {
    state: "off",
    problem: null,
    looked_at: null,
    found: 0,
    sites: [],
  };

  constructor(options: DockerOptions) {
    this.#options = options;
    this.#source = new ManagedSource(options.owner, options);
    options.changes.onServed((change) => {
      const { before, after } = change;
      if (before.settings.discovery !== after.settings.discovery) this.#configure();
      else if (this.#client !== null && this.#source.concerns(change, this.#view.sites))
        this.#lookSoon();
    });
  }

  start(): void {
    this.#configure();
  }

  async stop(): Promise<void> {
    this.#end();
    await this.#work;
  }

  view(): SourceView {
    return { name: this.#source.owner, ...this.#view };
  }

  #end(): void {
    this.#session.abort();
    for (const timer of [this.#timer, this.#again]) if (timer !== null) clearTimeout(timer);
    this.#timer = null;
    this.#again = null;
    this.#client = null;
    this.#images = null;
  }

  #configure(): void {
    const { docker: rules } = this.#options.changes.config.settings.discovery;
    if (this.#rules !== null && Bun.deepEquals(rules, this.#rules)) return;
    const wasOn = this.#rules?.endpoint != null;
    this.#rules = rules;
    this.#end();
    this.#session = new AbortController();
    this.#eventProblem = null;
    if (rules.endpoint === null) {
      this.#view = { state: "off", problem: null, looked_at: null, found: 0, sites: [] };
      if (wasOn) this.#enqueue(() => this.#serve([]));
      return;
    }
    this.#view = { ...this.#view, state: "connecting", problem: null };
    void this.#follow(this.#session.signal);
  }

  /** Connects, and again after each loss, until it is ended. */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#client = new DockerClient(this.#rules as Discovery["docker"]);
        // Also when no events come; else after those that the gateway has missed.
        this.#lookSoon(WITHOUT_EVENTS_MS);
        await this.#client.follow((event) => this.#onEvent(event), {
          signal,
          since: await this.#lastEvent(),
          // Listed after the events have begun, so that none is missed between the two.
          onOpen: () => {
            this.#retryMs = RETRY_MS.first;
            this.#eventProblem = null;
            this.#lookSoon(MISSED_EVENTS_MS);
          },
        });
        if (!signal.aborted) throw new DockerError("the API has ended the stream of events");
      } catch (error) {
        if (signal.aborted) return;
        this.#eventProblem = this.#fail(error);
        this.#lookSoon(0);
      }
      await waited(this.#retryMs, signal);
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS.most);
    }
  }

  async #lastEvent(): Promise<number> {
    const { owner, claimStore } = this.#options;
    if (this.#eventAt > 0) return this.#eventAt;
    const { eventTimeOf } = await import("./claims.ts");
    return eventTimeOf(claimStore?.load(owner) ?? []);
  }

  #onEvent({ action, id, at, sighting }: ContainerEvent): void {
    this.#eventAt = Math.max(at, this.#eventAt);
    // The list says the same, but for the order.
    if (this.#sightings.length > MAX_SIGHTINGS) this.#sightings.length = 0;
    if (sighting !== null) this.#sightings.push(sighting);
    if (action === "kill" || action === "stop") this.#stopping.add(id);
    else this.#stopping.delete(id);
    this.#lookSoon(this.#isFlapping(action, id) ? CALM.waitMs : DEBOUNCE_MS);
  }

  #isFlapping(action: string, id: string): boolean {
    const now = this.#options.clock.now();
    const starts = (this.#starts.get(id) ?? []).filter((at) => at > now - CALM.withinMs);
    if (action === "start") starts.push(now);
    this.#starts.set(id, starts);
    return starts.length > CALM.starts;
  }

  #lookSoon(ms: number = DEBOUNCE_MS): void {
    const at = performance.now() + ms;
    if (this.#timer !== null && this.#timerAt <= at) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#enqueue(() => this.#look());
    }, ms);
  }

  /** One after the other. */
  #enqueue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error: unknown) => void this.#fail(error));
  }

  async #look(): Promise<void> {
    const client = this.#client;
    const rules = this.#rules;
    if (client === null || rules === null) return;
    const sighted = this.#sightings.length;
    const eventAt = this.#eventAt;
    let containers: readonly ListedContainer[] | null = null;
    try {
      containers = await client.containers();
    } finally {
      if (client === this.#client) this.#lookAgain(containers !== null);
    }
    if (client !== this.#client) return;
    for (const id of this.#stopping)
      if (!containers.some(({ Id }) => Id === id)) this.#stopping.delete(id);
    if (this.#starts.size > MAX_STARTS) this.#starts.clear();
    await this.#serve(containers, { sightings: [...this.#sightings], eventAt });
    // What the list may not show yet is read once more, which changes nothing where it did.
    this.#sightings.splice(0, sighted);
    const failure = this.#eventProblem;
    const problem = failure ?? this.#images?.problem ?? null;
    this.#view = { ...this.#view, state: failure === null ? "connected" : "failed", problem };
  }

  #lookAgain(isListed: boolean): void {
    if (this.#again !== null) clearTimeout(this.#again);
    const ms = isListed && this.#eventProblem === null ? LOOK_AGAIN_MS : WITHOUT_EVENTS_MS;
    this.#again = setTimeout(() => {
      this.#again = null;
      this.#lookSoon(0);
    }, ms);
  }

  async #serve(
    listed: readonly ListedContainer[],
    events: Pick<ClaimContext, "sightings" | "eventAt"> = { sightings: [], eventAt: 0 },
  ): Promise<void> {
    const { changes, clock, log, plugins, regexes, owner, claimStore } = this.#options;
    const rules = changes.config.settings.discovery.docker;
    const read = await this.#ofPeople(listed, rules);
    const containers = read.containers.filter(({ State }) => State === "running");
    const old = new Map(this.#view.sites.map(({ from, problems }) => [from, problems.join("; ")]));
    const [{ sitesOf, ownerOf }, { sharedPortsOf }, { Claims }] = await Promise.all([
      converters(),
      entryPoints(),
      import("./claims.ts"),
    ]);
    const claims = new Claims(owner, claimStore?.load(owner) ?? [], {
      owners: new Map(read.containers.map((container) => [container.Id, ownerOf(container)])),
      stopped: new Set(
        read.containers.filter((one) => !containers.includes(one)).map(({ Id }) => Id),
      ),
      ...events,
      now: clock.now(),
      keptMs: rules.claim_seconds * 1000,
    });
    const context = {
      rules,
      plugins,
      hostname: this.#options.hostname ?? hostname(),
      stopping: this.#stopping,
      environments: read.environments,
      sharedPorts: sharedPortsOf(changes.config),
      source: owner,
      claims,
      served: new Set(
        claims.isFirst
          ? [...changes.config.targets.values()]
              .filter(({ managed_by }) => managed_by === owner)
              .flatMap(({ host, port }) => [host, `${host} ${port}`])
          : [],
      ),
    };
    const wanted = await regexes.run((regex) =>
      new Pace(SLICE).run(sitesOf(containers, { ...context, regex })),
    );
    const sites = await this.#source.apply(wanted, claims);
    for (const { from, problems } of sites)
      if (problems.length > 0 && old.get(from) !== problems.join("; "))
        log.warn("what a container's labels say is not served, or not all of it", {
          from,
          problems,
        });
    const looked_at = new Date(clock.now()).toISOString();
    this.#view = { ...this.#view, looked_at, found: containers.length, sites };
  }

  /** Containers without what came with their images. */
  async #ofPeople(
    containers: readonly ListedContainer[],
    rules: Discovery["docker"],
  ): Promise<OfContainers> {
    const found = { containers, environments: await this.#environments(containers) };
    const client = this.#client;
    if (client === null) return found;
    const before = this.#images?.problem ?? null;
    this.#images ??= new (await import("./images.ts")).Images();
    const read = await this.#images.without(found, rules, (id) => client.image(id));
    const { problem } = this.#images;
    if (problem !== null && problem !== before) this.#options.log.warn(problem);
    return read;
  }

  /** Variables of containers without labels, if a language of the settings needs them; they never change. */
  async #environments(
    containers: readonly ListedContainer[],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
    const { labels = [] } = this.#rules ?? {};
    const client = this.#client;
    const known = this.#known;
    const here = new Set(containers.map(({ Id }) => Id));
    for (const id of known.keys()) if (!here.has(id)) known.delete(id);
    if (!labels.includes("nginx-proxy") || client === null) return known;
    const { dialectOf } = await converters();
    const needed = containers.filter(
      (one) => !known.has(one.Id) && dialectOf(one, undefined, labels) === null,
    );
    for (let from = 0; from < needed.length; from += AT_ONCE)
      await Promise.all(
        needed.slice(from, from + AT_ONCE).map(async ({ Id }) => {
          const environment = await client.environment(Id);
          if (environment !== null) known.set(Id, environment);
        }),
      );
    return known;
  }

  /** Returns the sentence for people. */
  #fail(error: unknown): string {
    const isExplained = error instanceof DockerError || error instanceof ApiError;
    const problem = isExplained
      ? error.message
      : "the answer of the API cannot be read: the log has the error";
    if (this.#view.problem !== problem)
      this.#options.log.warn("containers cannot be discovered; what is served stays", {
        problem,
        error: isExplained ? undefined : error,
      });
    this.#view = { ...this.#view, state: "failed", problem };
    return problem;
  }
}

/** Ends early with the signal. */
const waited = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
