// Manual changes to the objects of an application; changes nothing.
import { type Application, referenceOf } from "../model/application.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { fieldChanges, masked } from "../control/audit-detail.ts";
import { labelOf } from "../control/reference.ts";
import { writableFields, objectOf, storedPart } from "./parts.ts";
import type { Fields } from "./planned-part.ts";

export interface Drift {
  /** `service`, `route`. */
  readonly kind: string;
  readonly id: string;
  readonly name: string | null;
  /** `tls.verify`; null: the whole object. */
  readonly field: string | null;
  /** Value set by the application; null: absent. */
  readonly expected: unknown;
  /** Present value; null: absent. */
  readonly found: unknown;
}

/** The configuration of the named plugin, with its defaults. */
export type CompleteConfig = (plugin: string, config: Fields) => Fields;

export function driftOf(
  application: Application,
  config: GatewayConfig,
  complete: CompleteConfig = (_, own) => own,
): Drift[] {
  const known = new Set<string>();
  const parts = application.parts.flatMap((part): Drift[] => {
    const reference = referenceOf(part);
    if (reference === null) return [];
    const { collection, id } = reference;
    known.add(id);
    const object = storedPart(config, reference);
    const kind = collection.slice(0, -1);
    if (object === undefined) {
      const name = nameIn(part.fields);
      return [{ kind, id, name, field: null, expected: masked(part.fields), found: null }];
    }
    const name = nameOf(labelOf(config, reference));
    const found = writableFields(object);
    // New fields of this version are no manual changes.
    const now = Object.fromEntries(Object.keys(part.fields).map((field) => [field, found[field]]));
    return fieldChanges(whole(part.fields, complete), whole(now, complete)).map(
      ({ path, before, after }) => ({
        kind,
        id,
        name,
        field: path,
        expected: before,
        found: after,
      }),
    );
  });
  return [...parts, ...addedTargets(application, config, known)];
}

/** What is left out of the configuration of a plugin is no difference from its default. */
const whole = (fields: Fields, complete: CompleteConfig): Fields =>
  "config" in fields
    ? { ...fields, config: complete(String(fields["name"]), fields["config"] as Fields) }
    : fields;

function addedTargets(
  application: Application,
  config: GatewayConfig,
  known: ReadonlySet<string>,
): Drift[] {
  const service = objectOf(config, application, { role: "service", collection: "services" });
  if (service === undefined) return [];
  return [...config.targets.values()]
    .filter((target) => target.service_id === service.id && !known.has(target.id))
    .map((target): Drift => {
      const { id } = target;
      const name = nameOf(labelOf(config, { collection: "targets", id }));
      const found = writableFields(target);
      return { kind: "target", id, name, field: null, expected: null, found };
    });
}

const nameOf = (label: string): string | null => /"(.*)"$/s.exec(label)?.[1] ?? null;

function nameIn(fields: Readonly<Record<string, unknown>>): string | null {
  const { name, label, host, port } = fields;
  if (typeof host === "string") return typeof port === "number" ? `${host}:${port}` : host;
  const text = label ?? name;
  return typeof text === "string" ? text : null;
}
