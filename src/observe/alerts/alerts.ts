// Alerts: validates them, seals their secrets and tests them; knows no sink by name.
import { destinationProblem } from "../../net/destinations.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { type Alert, type AlertType, alertTypes } from "../../model/alert.ts";
import { ApiError, invalid } from "../../model/error.ts";
import { openConfig } from "../../snapshot/plugin-config.ts";
import type { AuditSink } from "../../control/audit-entry.ts";
import type { Changes } from "../../control/change.ts";
import { ConfiguredResource } from "../../control/configured-resource.ts";
import type { Draft } from "../../control/draft.ts";
import type { Actor } from "../../control/principal.ts";
import type { AlertEngine } from "./engine.ts";
import type { AlertMessage } from "./message-history.ts";
import { testNotice } from "./notice.ts";
import { DeliveryError, type DeliveryStatus } from "./outbox.ts";
import { sinks } from "./sinks.ts";

export interface AlertsOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly audit: AuditSink;
  readonly engine: AlertEngine;
}

export interface AlertView extends Alert {
  /** Destination, without secrets. */
  readonly destination: string;
  readonly delivery: DeliveryStatus;
}

/** A type of alert, to choose from. */
export interface AlertTypeView {
  readonly type: AlertType;
  readonly title: string;
  /** JSON Schema of `config`; `writeOnly` marks secrets. */
  readonly schema: unknown;
  readonly example: unknown;
}

/** The result of a test. */
export interface AlertTestReport {
  readonly ok: boolean;
  readonly destination: string;
  /** One sentence. */
  readonly message: string;
  readonly duration_ms: number;
}

export class Alerts extends ConfiguredResource<"alerts", AlertView> {
  readonly #options: AlertsOptions;
  readonly #testing = new Set<string>();

  constructor(options: AlertsOptions) {
    super(options.changes, {
      collection: "alerts",
      box: options.box,
      configurableOf: (type) => sinks[type as AlertType],
      complete: (fields, { draft }) => {
        // Only clients that may refer to a named secret learn what is wrong with its value.
        draft.checkLater(() => checkConfig(fields, { ...options, draft }));
        return fields;
      },
      view: (shown, alert) => ({
        ...shown,
        destination: destinationOf(alert, options.engine),
        delivery: options.engine.deliveryOf(alert.id),
      }),
    });
    this.#options = options;
  }

  types(): readonly AlertTypeView[] {
    return alertTypes.map((type) => {
      const { title, config: schema, example } = sinks[type];
      return { type, title, schema, example };
    });
  }

  /** Notifications since the start or since it was enabled, newest first. */
  messages(key: string): readonly AlertMessage[] {
    return this.#options.engine.messagesOf(this.get(key).view.id);
  }

  /** Sends one test notification, even if the alert is disabled. */
  async test(key: string, by: Actor): Promise<AlertTestReport> {
    const { id, name, destination } = this.get(key).view;
    const { changes, engine, audit } = this.#options;
    const alert = changes.config.alerts.get(id);
    if (alert === undefined) throw new ApiError(404, `alert "${key}" does not exist`);
    if (this.#testing.has(id)) throw new ApiError(409, `a test of alert "${name}" is in progress`);
    this.#testing.add(id);
    const begin = performance.now();
    const notice = testNotice(new Date().toISOString());
    const result = await engine
      .send(alert, notice, new AbortController().signal)
      .then((message) => ({ ok: true, message }))
      .catch((error: unknown) => {
        if (!(error instanceof DeliveryError)) throw error;
        return { ok: false, message: error.message };
      })
      .finally(() => this.#testing.delete(id));
    audit.record({
      actor: by.actor,
      method: by.method,
      address: by.address,
      action: "test",
      kind: "alert",
      object_id: id,
      object_name: name,
      result: result.ok ? "ok" : "failed",
      revision: null,
      detail: { destination, message: result.message },
    });
    return { ...result, destination, duration_ms: Math.round(performance.now() - begin) };
  }
}

/** Empty when unknown. */
function destinationOf(alert: Alert, engine: AlertEngine): string {
  try {
    return sinks[alert.type].destination(engine.configOf(alert));
  } catch (error) {
    if (error instanceof DeliveryError) return "";
    throw error;
  }
}

function checkConfig(
  alert: Pick<Alert, "config" | "type">,
  { box, changes, draft }: AlertsOptions & { readonly draft: Draft },
): void {
  const { type } = alert;
  const sink = sinks[type];
  const opened = openConfig(alert, sink, {
    secrets: draft.config.secrets,
    openSealed: (sealed) => box.open(sealed),
  });
  const problem = sink.problem(opened);
  if (problem !== null) throw invalid(`config.${problem.path}`, problem.message);
  const address = sink.address(opened);
  const refused = address && destinationProblem(address, changes.destinationRules());
  if (refused !== null) throw invalid(type === "webhook" ? "config.url" : "config.host", refused);
}
