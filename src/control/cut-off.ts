// What a node does no more when it has been cut off from its fleet, or behind it, for long; without a fleet nothing. Knows no database.
import type { Settings } from "../model/settings.ts";
import type { FleetView, Staleness } from "./fleet-view.ts";

export interface CutOffOptions {
  readonly fleet: Pick<FleetView, "staleness"> | null;
  readonly settings: () => Pick<
    Settings["fleet"],
    "max_stale" | "max_stale_sessions" | "unready_after"
  >;
  /** Monotonic, in milliseconds. Default: performance.now. */
  readonly now?: () => number;
}

const upToDate: Staleness = { cutOffSince: null, behindSince: null, stop: null };

const WHY: Readonly<Record<NonNullable<Staleness["stop"]>["state"], string>> = {
  refused: "cannot serve or store the next change of its fleet",
  outdated: "cannot read the next change of its fleet, which is of a newer version",
  diverged: "has changes that the database of its fleet lacks, and follows it no more",
};

export class CutOff {
  readonly #options: CutOffOptions;
  readonly #now: () => number;
  #wasTrusted = true;

  constructor(options: CutOffOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Why sessions are not valid at the moment; null: they are. A user may have been disabled on another node meanwhile. Tokens
   * stay: programs that watch or repair the node have nothing else.
   */
  sessionProblem(): string | null {
    const { max_stale_sessions: limit } = this.#options.settings();
    return this.#isOlder(this.#options.fleet?.staleness().cutOffSince ?? null, limit)
      ? "this node is cut off from the database of its fleet for too long to trust sessions; sign in on another node, or use a token"
      : null;
  }

  /** Why the node should get no traffic; null: no reason. Public, so without what the error of the node names. */
  readyProblem(): string | null {
    const { max_stale: limit, unready_after: stopLimit } = this.#options.settings();
    const { stop, cutOffSince, behindSince } = this.#options.fleet?.staleness() ?? upToDate;
    if (stop !== null && this.#isOlder(stop.since, stopLimit))
      return `${stop.state}: this node ${WHY[stop.state]}, for longer than fleet.unready_after; GET /api/v1/nodes has the reason`;
    if (this.#isOlder(cutOffSince, limit))
      return "this node is cut off from the database of its fleet for longer than fleet.max_stale";
    return this.#isOlder(behindSince, limit)
      ? "this node does not serve the last changes of its fleet for longer than fleet.max_stale"
      : null;
  }

  /** Whether sessions have become valid or invalid since the last call. */
  hasTurned(): boolean {
    const isTrusted = this.sessionProblem() === null;
    const wasTrusted = this.#wasTrusted;
    this.#wasTrusted = isTrusted;
    return isTrusted !== wasTrusted;
  }

  /** A limit of 0 is none. */
  #isOlder(since: number | null, limitMs: number): boolean {
    return since !== null && limitMs > 0 && this.#now() - since > limitMs;
  }
}
