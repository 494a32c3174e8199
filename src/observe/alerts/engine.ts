// Watches events, decides for each alert what to send, and passes it to the outbox; knows no sink by name.
import { hostname } from "node:os";
import type { Clock } from "../../clock.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import type { Log } from "../../log.ts";
import type { Alert } from "../../model/alert.ts";
import type { Fact } from "../../model/fact.ts";
import { openConfig } from "../../snapshot/plugin-config.ts";
import type { Changes } from "../../control/change.ts";
import type { EventHub, Subscription } from "../../control/events.ts";
import { type FleetDuty, type FleetView, soleDuty } from "../../control/fleet-view.ts";
import type { CountedTraffic } from "../metrics/series-rows.ts";
import { ErrorShares, shareKey, subjectsOf } from "./error-share.ts";
import { Incidents, type NotificationRules } from "./incidents.ts";
import { type AlertMessage, MessageHistory } from "./message-history.ts";
import type { Notice, Signal } from "./notice.ts";
import { DeliveryError, type DeliveryStatus, idleDelivery, Outbox } from "./outbox.ts";
import { noticeKey, PendingNotices } from "./pending-notices.ts";
import { sinks } from "./sinks.ts";
import { endOfUnwatched, signalOf, watchedKinds } from "./sources.ts";

export interface AlertEngineOptions {
  readonly changes: Changes;
  readonly events: Pick<EventHub, "subscribe">;
  readonly traffic: { read(): readonly CountedTraffic[] };
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  /** The node of a fleet; absent: this is none. */
  readonly fleet?: Pick<FleetView, "name">;
  /** Whether this node notifies about what all nodes of its fleet see; absent: it does. */
  readonly duty?: FleetDuty;
}

interface Watch {
  readonly incidents: Incidents;
  /** Of what all nodes see, while another one sends it. */
  readonly pending: PendingNotices;
  outbox: Outbox;
  readonly history: MessageHistory;
}

const LOOK_MS = 1000;
/** Reading all counters is slower than reading the clock. */
const COUNT_EVERY = 5;

export class AlertEngine {
  readonly #options: AlertEngineOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #shares = new ErrorShares();
  readonly #duty: FleetDuty;
  #subscription: Subscription | null = null;
  #timer: Timer | null = null;
  #looks = 0;

  constructor(options: AlertEngineOptions) {
    this.#options = options;
    this.#duty = options.duty ?? soleDuty;
    this.#duty.onChange(() => this.#guarded(() => this.#takeOrLoseDuty()));
    options.changes.onFact((fact) => this.#observe(fact));
  }

  /** Notifies about events from now on. */
  start(): void {
    if (this.#timer !== null) return;
    const { events } = this.#options;
    const options = { role: "admin", kinds: watchedKinds, lastEventId: null } as const;
    this.#subscription = events.subscribe(options, () => this.#guarded(() => this.#read()));
    this.#timer = setInterval(() => this.#guarded(() => this.look()), LOOK_MS);
    // The timer must not delay the exit.
    this.#timer.unref();
  }

  /** Aborts deliveries. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#subscription?.close();
    for (const { outbox } of this.#watches.values()) outbox.stop();
    this.#watches.clear();
  }

  /** The state of an alert's delivery. */
  deliveryOf(id: string): DeliveryStatus {
    return this.#watches.get(id)?.outbox.status ?? idleDelivery;
  }

  /** Notifications of an alert since it is watched, newest first. */
  messagesOf(id: string): readonly AlertMessage[] {
    return this.#watches.get(id)?.history.list() ?? [];
  }

  /** Sends at once, before queued ones; resolves to the result, rejects with a DeliveryError. */
  async send(alert: Alert, notice: Notice, signal: AbortSignal): Promise<string> {
    const { dialer } = this.#options.changes;
    const { name } = alert;
    const gateway = this.#gatewayName();
    const sent = { program: "sluice", alert: name, gateway, ...notice } as const;
    const parts = { dialer, signal };
    return await sinks[alert.type].send(this.configOf(alert), sent, parts);
  }

  #gatewayName(): string {
    const { changes, fleet } = this.#options;
    const { public_url: url } = changes.config.settings;
    if (fleet === undefined) return url ?? hostname();
    return url === null ? fleet.name : `${url} (${fleet.name})`;
  }

  /** With decrypted secrets. Throws a DeliveryError when the stored configuration is invalid. */
  configOf(alert: Alert): Readonly<Record<string, unknown>> {
    const { changes, box } = this.#options;
    const context = {
      secrets: changes.config.secrets,
      openSealed: (sealed: string) => box.open(sealed),
    };
    try {
      return openConfig(alert, sinks[alert.type], context);
    } catch (error) {
      throw new DeliveryError("its configuration cannot be read", { cause: error });
    }
  }

  /** Evaluates time and counters; called once a second. */
  look(): void {
    const alerts = this.#enabled();
    const now = this.#options.clock.now();
    for (const [id, { outbox }] of this.#watches) {
      if (alerts.some((alert) => alert.id === id)) continue;
      outbox.stop();
      this.#watches.delete(id);
    }
    const isCounted = this.#looks++ % COUNT_EVERY === 0 && this.#count(alerts, now);
    const { config } = this.#options.changes;
    for (const alert of alerts) {
      const { incidents } = this.#watchOf(alert);
      for (const signal of incidents.open) {
        const end = endOfUnwatched(signal, config);
        if (end !== null) this.#take(alert, end, now);
      }
      if (isCounted && alert.events.includes("error_share"))
        for (const signal of this.#shares.judge(alert, config, now)) this.#take(alert, signal, now);
      this.#put(alert, incidents.due(this.#rulesOf(alert), now));
    }
  }

  /** Whether any alert needs the counters. */
  #count(alerts: readonly Alert[], now: number): boolean {
    const wanted = alerts.filter(({ events }) => events.includes("error_share"));
    if (wanted.length === 0) {
      this.#shares.forget();
      return false;
    }
    this.#shares.count(this.#options.traffic.read(), new Set(wanted.flatMap(subjectsOf)), now);
    return true;
  }

  #read(): void {
    for (;;) {
      const event = this.#subscription?.next() ?? null;
      if (event === null) return;
      const kind = watchedKinds.find((each) => each === event.kind);
      if (kind === undefined) continue;
      const { changes, clock } = this.#options;
      const signal = signalOf(kind, JSON.parse(event.data), {
        config: changes.config,
        node: this.#options.fleet?.name,
      });
      if (signal === null) continue;
      for (const alert of this.#enabled()) this.#take(alert, signal, clock.now());
    }
  }

  #take(alert: Alert, signal: Signal, now: number): void {
    this.#put(alert, this.#watchOf(alert).incidents.take(signal, this.#rulesOf(alert), now));
  }

  #put(alert: Alert, notices: readonly Notice[]): void {
    const { outbox, history, pending } = this.#watchOf(alert);
    for (const notice of notices.filter((each) => isWanted(alert, each))) {
      // The other nodes see the same, but not the workers of this one.
      if (!this.#duty.isOurs && !this.#isOwn(notice)) {
        pending.put(notice, this.#options.clock.now());
        continue;
      }
      history.put(notice);
      outbox.put(notice);
    }
  }

  /** The node that takes the work sends what the one before it has not. */
  #takeOrLoseDuty(): void {
    const now = this.#options.clock.now();
    for (const [id, watch] of this.#watches) {
      if (this.#duty.isOurs) {
        for (const notice of watch.pending.take(now)) {
          watch.history.put(notice);
          watch.outbox.put(notice);
        }
        continue;
      }
      const waiting = watch.outbox.stop();
      watch.outbox = this.#createOutbox(id, watch.history);
      for (const notice of waiting)
        if (this.#isOwn(notice)) watch.outbox.put(notice);
        else watch.pending.put(notice, now);
    }
  }

  #observe(fact: Fact): void {
    if (fact.kind !== "alert_sent" || this.#duty.isOurs) return;
    const pending = this.#watches.get(fact.alert_id)?.pending;
    for (const key of fact.keys) pending?.sent(key, this.#options.clock.now());
  }

  /** Without the database this node has lost the work, or is about to. */
  #confirm(id: string, notice: Notice): void {
    const { changes, fleet, log } = this.#options;
    if (fleet === undefined || this.#isOwn(notice) || notice.event === "test") return;
    const fact: Fact = { kind: "alert_sent", alert_id: id, keys: [noticeKey(notice)] };
    changes
      .record(() => ({ value: null, facts: [fact], asLeader: true }))
      .catch((error: unknown) =>
        log.debug("other nodes do not know that a notification was sent", { error }),
      );
  }

  #enabled(): readonly Alert[] {
    return [...this.#options.changes.config.alerts.values()].filter(({ enabled }) => enabled);
  }

  #watchOf({ id }: Alert): Watch {
    const known = this.#watches.get(id);
    if (known !== undefined) return known;
    const history = new MessageHistory();
    const outbox = this.#createOutbox(id, history);
    const pending = new PendingNotices();
    const watch = { outbox, history, pending, incidents: new Incidents() };
    this.#watches.set(id, watch);
    return watch;
  }

  #createOutbox(id: string, history: MessageHistory): Outbox {
    const { changes, clock, log } = this.#options;
    return new Outbox({
      now: () => clock.now(),
      send: async (notice, signal) => {
        // The present configuration, which may have been fixed between two attempts.
        const alert = changes.config.alerts.get(id);
        if (alert?.enabled) await this.send(alert, notice, signal);
        history.delivered(notice.id);
      },
      done: (notice) => this.#confirm(id, notice),
      lost: (notice, reason) => {
        history.lost(notice.id, reason);
        const alert = changes.config.alerts.get(id)?.name ?? id;
        log.warn("a notification was not delivered", { alert, event: notice.event, reason });
      },
    });
  }

  #rulesOf(alert: Alert): NotificationRules {
    const { config } = this.#options.changes;
    return {
      quietMs: alert.quiet_seconds * 1000,
      repeatMs: alert.repeat_after * 1000,
      accepts: (signal) =>
        isAccepted(alert, signal, (route) => config.routes.get(route)?.service_id),
    };
  }

  /** Whether it is about this node, which sends it no matter which one leads. */
  #isOwn({ object: { kind, name } }: Notice): boolean {
    return (
      kind === "worker" ||
      kind === "gateway" ||
      (kind === "node" && name === this.#options.fleet?.name)
    );
  }

  /** An error here must not stop the publisher of the event. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.log.error("alerts could not be evaluated", { error });
    }
  }
}

/** Whether the alert selects the event and its scope holds the object. */
function isAccepted(
  alert: Alert,
  { event, key, serviceId }: Signal,
  serviceOf: (route: string) => string | null | undefined,
): boolean {
  const { events, service_ids: services, route_ids: routes } = alert;
  const isTarget = event === "target_down";
  if (!events.includes(event) && !(isTarget && events.includes("target_up"))) return false;
  if (event === "error_share") return subjectsOf(alert).some((each) => shareKey(each) === key);
  if (!isTarget || services.length + routes.length === 0) return true;
  if (serviceId === null) return false;
  return services.includes(serviceId) || routes.some((route) => serviceOf(route) === serviceId);
}

/** An end belongs to its beginning, except for target_up, which can be selected alone. */
function isWanted({ events, resolved }: Alert, { event, status }: Notice): boolean {
  if (event === "test") return true;
  if (event === "target_up") return events.includes("target_up") || resolved;
  return events.includes(event) && (status === "firing" || resolved);
}
