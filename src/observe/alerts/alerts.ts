// Alerts: validates them, seals their secrets and tests them; knows no sink by name.
import type { SecretBox } from "../../crypto/secret-box.ts";
import { type Alert, alertInput, type AlertType, alertTypes } from "../../model/alert.ts";
import { decode } from "../../model/decode.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { ListenAddress } from "../../snapshot/address-overlap.ts";
import { openConfig } from "../../snapshot/plugin-config.ts";
import type { AuditSink } from "../../control/audit-entry.ts";
import { isDocument } from "../../control/body.ts";
import type { Changes } from "../../control/change.ts";
import type { Draft } from "../../control/draft.ts";
import { withIds } from "../../control/key.ts";
import {
  markRemovals,
  refuseSealed,
  withoutSecrets,
  writeConfig,
} from "../../control/plugin-config-writer.ts";
import type { Actor } from "../../control/principal.ts";
import {
  type FieldsOf,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "../../control/resource.ts";
import type { AlertEngine } from "./engine.ts";
import type { AlertMessage } from "./message-history.ts";
import { testNotice } from "./notice.ts";
import { DeliveryError, type DeliveryStatus } from "./outbox.ts";
import { isManagement } from "./sink.ts";
import { sinks } from "./sinks.ts";

export interface AlertsOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly audit: AuditSink;
  readonly engine: AlertEngine;
  readonly managementAddresses: () => readonly ListenAddress[];
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

export class Alerts extends Resource<"alerts", AlertView> {
  readonly #options: AlertsOptions;
  readonly #testing = new Set<string>();

  constructor(options: AlertsOptions) {
    super(options.changes, kindOf(options));
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

  override patch(key: string, patch: unknown, options: WriteOptions): Promise<Written<AlertView>> {
    const config = isDocument(patch) ? patch["config"] : undefined;
    if (!isDocument(config)) return super.patch(key, patch, options);
    return super.patch(key, { ...Object(patch), config: markRemovals(config) }, options);
  }
}

const withoutConfigSecrets = (alert: Alert): Alert => ({
  ...alert,
  config: withoutSecrets(alert.config) as Alert["config"],
});

const kindOf = (options: AlertsOptions): ResourceKind<"alerts", AlertView> => ({
  collection: "alerts",
  decode: (document, draft, old) => ({ fields: fieldsOf(document, { ...options, draft, old }) }),
  sendable: withoutConfigSecrets,
  viewer: () => (alert) => ({
    ...withoutConfigSecrets(alert),
    destination: destinationOf(alert, options.engine),
    delivery: options.engine.deliveryOf(alert.id),
  }),
});

/** Empty when unknown. */
function destinationOf(alert: Alert, engine: AlertEngine): string {
  try {
    return sinks[alert.type].destination(engine.configOf(alert));
  } catch (error) {
    if (error instanceof DeliveryError) return "";
    throw error;
  }
}

interface WriteContext extends AlertsOptions {
  readonly draft: Draft;
  readonly old: Alert | null;
}

function fieldsOf(document: unknown, context: WriteContext): FieldsOf<"alerts"> {
  // Filling in defaults would turn a list into an object with numbers as names.
  if (isDocument(document) && Array.isArray(document["config"]))
    throw invalid("config", "must be an object");
  const { config: sent, ...input } = decode(alertInput, document);
  refuseSealed(input, "");
  const { old, draft, box } = context;
  const sink = sinks[input.type];
  const config = writeConfig(sent, {
    definition: sink,
    old: old?.type === input.type ? old.config : null,
    draft,
    box,
  });
  // Only clients that may refer to a named secret learn what is wrong with its value.
  draft.checkLater(() => checkConfig({ config }, input.type, context));
  return { ...withIds("alerts", input, draft.config), config };
}

function checkConfig(
  stored: Pick<Alert, "config">,
  type: AlertType,
  { box, draft, managementAddresses }: WriteContext,
): void {
  const sink = sinks[type];
  const opened = openConfig(stored, sink, {
    secrets: draft.config.secrets,
    openSealed: (sealed) => box.open(sealed),
  });
  const problem = sink.problem(opened);
  if (problem !== null) throw invalid(`config.${problem.path}`, problem.message);
  const address = sink.address(opened);
  if (address !== null && isManagement(address, managementAddresses()))
    throw invalid(
      type === "webhook" ? "config.url" : "config.host",
      "is the management API itself, which alerts must not call",
    );
}
