// What a node does no more when it has been cut off from its fleet for long; without a fleet nothing. Knows no database.
import type { Settings } from "../model/settings.ts";
import type { FleetView } from "./fleet-view.ts";

export interface CutOffOptions {
  readonly fleet: Pick<FleetView, "cutOffSince"> | null;
  readonly settings: () => Pick<Settings["fleet"], "max_stale" | "max_stale_sessions">;
  /** Monotonic, in milliseconds. Default: performance.now. */
  readonly now?: () => number;
}

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
    return this.#isLongerThan(limit)
      ? "this node is cut off from the database of its fleet for too long to trust sessions; sign in on another node, or use a token"
      : null;
  }

  /** Why the node should get no traffic; null: no reason. */
  readyProblem(): string | null {
    const { max_stale: limit } = this.#options.settings();
    return this.#isLongerThan(limit)
      ? "this node is cut off from the database of its fleet for longer than fleet.max_stale"
      : null;
  }

  /** Whether sessions have become valid or invalid since the last call. */
  hasTurned(): boolean {
    const isTrusted = this.sessionProblem() === null;
    const wasTrusted = this.#wasTrusted;
    this.#wasTrusted = isTrusted;
    return isTrusted !== wasTrusted;
  }

  #isLongerThan(limitMs: number): boolean {
    if (limitMs === 0) return false;
    const since = this.#options.fleet?.cutOffSince() ?? null;
    return since !== null && this.#now() - since > limitMs;
  }
}
