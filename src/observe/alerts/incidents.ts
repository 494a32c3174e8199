// Deduplicates events into incidents, so that one incident is one notification; knows no source and no sink.
import type { Notice, Signal } from "./notice.ts";

/** Milliseconds. */
export interface NotificationRules {
  /** Minimum time before the same incident fires again. */
  readonly quietMs: number;
  /** Interval to repeat a lasting incident; 0: never. */
  readonly repeatMs: number;
  /** Whether the incident is still relevant. */
  readonly accepts: (signal: Signal) => boolean;
}

interface Incident {
  /** The last signal. */
  signal: Signal;
  isOn: boolean;
  since: number;
  /** Whether the last notification was its beginning. */
  isTold: boolean;
  /** Time of the last firing notification; null: never. */
  begunToldAt: number | null;
  toldAt: number;
  /** Number of beginnings since that notification. */
  begins: number;
}

/** Further incidents are not tracked and notify each time. */
const MAX_INCIDENTS = 10_000;

export class Incidents {
  readonly #found = new Map<string, Incident>();

  /** Open incidents. */
  get open(): readonly Signal[] {
    return [...this.#found.values()].filter(({ isOn }) => isOn).map(({ signal }) => signal);
  }

  /** The notification for the signal, if due now. */
  take(signal: Signal, rules: NotificationRules, now: number): readonly Notice[] {
    if (!rules.accepts(signal)) return [];
    const known = this.#found.get(signal.key);
    if (signal.state === "over") {
      if (known === undefined || !known.isOn) return [];
      known.signal = signal;
      known.isOn = false;
      return this.#settle(known, rules, now);
    }
    if (known?.isOn) {
      known.signal = signal;
      return signal.isAlwaysTold ? [this.#tell(known, now)] : this.#settle(known, rules, now);
    }
    const incident = known ?? this.#make(signal);
    Object.assign(incident, { signal, isOn: true, since: now, begins: incident.begins + 1 });
    return this.#settle(incident, rules, now);
  }

  /** The notifications that have become due. */
  due(rules: NotificationRules, now: number): readonly Notice[] {
    return [...this.#found.values()].flatMap((incident) => this.#settle(incident, rules, now));
  }

  #make(signal: Signal): Incident {
    const incident: Incident = {
      signal,
      isOn: false,
      since: 0,
      isTold: false,
      begunToldAt: null,
      toldAt: 0,
      begins: 0,
    };
    if (this.#found.size < MAX_INCIDENTS) this.#found.set(signal.key, incident);
    return incident;
  }

  #settle(incident: Incident, rules: NotificationRules, now: number): readonly Notice[] {
    const { signal, isOn, isTold, begunToldAt, toldAt } = incident;
    const isQuiet = begunToldAt !== null && now - begunToldAt < rules.quietMs;
    if (!rules.accepts(signal)) {
      this.#found.delete(signal.key);
      return [];
    }
    if (isOn && !isTold) return isQuiet ? [] : [this.#tell(incident, now)];
    if (isOn) {
      const isDue = rules.repeatMs > 0 && !signal.isAlwaysTold && now - toldAt >= rules.repeatMs;
      return isDue ? [this.#tell(incident, now)] : [];
    }
    if (isTold) return [this.#tell(incident, now)];
    if (!isQuiet) this.#found.delete(signal.key);
    return [];
  }

  #tell(incident: Incident, now: number): Notice {
    const { signal, isOn, isTold, since, begins } = incident;
    const isRepeated = isOn && isTold && !signal.isAlwaysTold;
    const often = begins > 1 ? ` It began ${begins} times since the last notification.` : "";
    incident.isTold = isOn;
    incident.toldAt = now;
    if (isOn) {
      incident.begunToldAt = now;
      incident.begins = 0;
    }
    return {
      id: Bun.randomUUIDv7(),
      event: !isOn && signal.event === "target_down" ? "target_up" : signal.event,
      status: isOn ? "firing" : "resolved",
      at: new Date(now).toISOString(),
      since: new Date(since).toISOString(),
      object: signal.object,
      title: isRepeated ? `Still: ${signal.title}` : signal.title,
      message: `${signal.message}${often}`,
    };
  }
}
