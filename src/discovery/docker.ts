// Follows the containers of one Docker or Podman and serves what their labels say; knows no label.
import { hostname } from "node:os";
import type { Clock } from "../clock.ts";
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
import type { SourceView } from "./discovery.ts";
import type { Images, OfContainers } from "./images.ts";
import { ManagedSource, type ManagedSourceOptions } from "./managed-source.ts";

/** A burst of events is one change. */
const DEBOUNCE_MS = 250;
/** Changes without an event, such as an object that a restore has removed, are found after this time. */
const LOOK_AGAIN_MS = 60_000;
/** Without events, or after a list that failed. */
const WITHOUT_EVENTS_MS = 5_000;
const RETRY_MS = { first: 500, most: 30_000 } as const;
/** The starts of a container that starts again and again are looked at less often. */
const CALM = { starts: 5, withinMs: 60_000, waitMs: 5_000 } as const;

const MAX_STARTS = 10_000;
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
  /** By id: what containers were called first that were renamed since the last look. */
  readonly #formerNames = new Map<string, string>();
  readonly #known = new Map<string, Readonly<Record<string, string>>>();
  #images: Images | null = null;
  #rules: Discovery["docker"] | null = null;
  #client: DockerClient | null = null;
  #session = new AbortController();
  #timer: ReturnType<typeof setTimeout> | null = null;
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
        // An API that never answers the request for events still fails this one.
        this.#lookSoon(0);
        await this.#client.follow((event) => this.#onEvent(event), {
          signal,
          // Listed after the events have begun, so that none is missed between the two.
          onOpen: () => {
            this.#retryMs = RETRY_MS.first;
            this.#eventProblem = null;
            this.#lookSoon(0);
          },
        });
        if (!signal.aborted) throw new DockerError("the API has ended the stream of events");
      } catch (error) {
        if (signal.aborted) return;
        this.#eventProblem = this.#fail(error);
      }
      await waited(this.#retryMs, signal);
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS.most);
    }
  }

  #onEvent({ action, id, formerName }: ContainerEvent): void {
    if (formerName !== undefined && !this.#formerNames.has(id))
      this.#formerNames.set(id, formerName);
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
    if (this.#timer !== null) return;
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
    let containers: readonly ListedContainer[] | null = null;
    try {
      containers = await client.containers();
    } finally {
      if (client === this.#client) this.#lookAgain(containers !== null);
    }
    if (client !== this.#client) return;
    const formerNames = new Map(this.#formerNames);
    for (const id of this.#stopping)
      if (!containers.some(({ Id }) => Id === id)) this.#stopping.delete(id);
    if (this.#starts.size > MAX_STARTS) this.#starts.clear();
    if (formerNames.size > MAX_STARTS) this.#formerNames.clear();
    await this.#serve(containers, formerNames);
    // One that is not listed was renamed after the list was made.
    for (const { Id } of containers) this.#formerNames.delete(Id);
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
    formerNames: ReadonlyMap<string, string> = new Map(),
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
      formerNames,
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
