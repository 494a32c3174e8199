// The resources of the API as the UI reads them: types, labels, roles and dependents; renders nothing.
import { type ResourceTypes, resourceTable } from "./resource-table.ts";
import type { components } from "./schema.d.ts";

/** All schemas of the OpenAPI document, by name. */
export type Schemas = components["schemas"];

/** A resource, by its path below /api/v1. */
export type ResourceKey = keyof ResourceTypes;
export type Read<K extends ResourceKey> = ResourceTypes[K]["read"];
export type Write<K extends ResourceKey> = ResourceTypes[K]["write"];

export type Role = "viewer" | "editor" | "admin";

export interface ResourceFacts {
  /** Label: `service`. */
  readonly word: string;
  readonly plural: string;
  /** Its kind in `config` events. */
  readonly kind: string;
  /** Least role that may change it. */
  readonly writes: Role;
  /** Other resources to refetch when one of these changes. */
  readonly touches: readonly ResourceKey[];
}

export const resources: Readonly<Record<ResourceKey, ResourceFacts>> = resourceTable;

/** The path of its pages below `/ui`: `acme-accounts`. */
export const pageNameOf = (key: ResourceKey): string => key.replace("/", "-");

/** The display name of an object: its name, or a substitute. */
export function nameOf(object: object): string {
  const fields = object as Record<string, unknown>;
  for (const field of ["name", "label", "username", "email", "domains", "hosts", "host", "id"]) {
    const value = fields[field];
    if (field === "name" && typeof fields["label"] === "string" && fields["label"] !== "") continue;
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.length > 0) return value.join(", ");
  }
  return "";
}
