// The increase of all counters since the last read; knows no time and no database.
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { StatKind } from "../../model/rollup.ts";
import type { CountedTraffic } from "../metrics/series-rows.ts";
import { addressOf } from "../requests/request-view.ts";
import { type Tally, tallyOfRow, tallySince, TallySum } from "./tally.ts";

/** Objects without rows of their own. */
export const OTHERS = "_other";

/** Counters of one object. */
export interface Counted {
  readonly kind: StatKind;
  /** Empty for the total; `_other` and `_none` are not objects. */
  readonly id: string;
  readonly name: string;
  readonly tally: Tally;
}

export interface CounterSource {
  readonly routes: () => readonly CountedTraffic[];
  readonly targets: () => readonly CountedTraffic[];
  readonly config: () => GatewayConfig;
}

interface Growing extends Counted {
  /** The last one. */
  name: string;
  readonly tally: TallySum;
}

/** Counters by kind and object. */
export class CountedMap {
  readonly #found = new Map<string, Growing>();

  add({ kind, id, name, tally }: Counted): void {
    const key = `${kind} ${id}`;
    let growing = this.#found.get(key);
    if (growing === undefined) {
      growing = { kind, id, name, tally: new TallySum() };
      this.#found.set(key, growing);
    }
    growing.name = name;
    growing.tally.add(tally);
  }

  addAll(all: readonly Counted[]): void {
    for (const counted of all) this.add(counted);
  }

  of(kind: StatKind): Counted[] {
    return [...this.#found.values()].filter((counted) => counted.kind === kind);
  }

  get all(): Counted[] {
    return [...this.#found.values()];
  }
}

export class TrafficDeltas {
  readonly #source: CounterSource;
  #before = new Map<string, Tally>();

  constructor(source: CounterSource) {
    this.#source = source;
  }

  /** Objects with traffic since the last call; each request is in the result of one call. */
  take(): Counted[] {
    const now = new Map<string, Tally>();
    const since = (key: string, tally: Tally) => {
      now.set(key, tally);
      const delta = tallySince(tally, this.#before.get(key));
      return delta.requests === 0 ? null : delta;
    };
    const found = new CountedMap();
    for (const { owner, traffic } of this.#source.routes()) {
      if (traffic.counters.ended === 0) continue;
      if (owner.kind === "stream_route" || owner.kind === "listener") continue;
      const tally = since(`${owner.kind} ${owner.id} ${owner.serviceId}`, tallyOfRow(traffic));
      if (tally === null) continue;
      found.add({ kind: "total", id: "", name: "", tally });
      const id = owner.kind === "route" ? owner.id : owner.name;
      found.add({ kind: "route", id, name: owner.name, tally });
      const service =
        owner.kind === "route" ? { id: owner.serviceId, name: owner.serviceName } : null;
      if (service !== null && service.id !== "") found.add({ kind: "service", ...service, tally });
      if (owner.kind === "other") found.add({ kind: "service", id: OTHERS, name: OTHERS, tally });
    }
    const { targets } = this.#source.config();
    for (const { owner, traffic } of this.#source.targets()) {
      const { id } = owner;
      if (traffic.counters.ended === 0) continue;
      const tally = since(`target ${id}`, tallyOfRow(traffic));
      if (tally === null) continue;
      const target = targets.get(id);
      const name = id === "" ? OTHERS : target === undefined ? id : addressOf(target);
      found.add({ kind: "target", id: id === "" ? OTHERS : id, name, tally });
    }
    this.#before = now;
    return found.all;
  }
}
