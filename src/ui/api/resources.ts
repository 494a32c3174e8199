// THE table of resources of the UI: paths, labels, roles and dependents; renders nothing.
import type { components } from "./schema.d.ts";

/** All schemas of the OpenAPI document, by name. */
export type Schemas = components["schemas"];

/** The read and write type of each resource. */
export interface ResourceTypes {
  applications: { read: Schemas["Application"]; write: Schemas["ApplicationInput"] };
  services: { read: Schemas["Service"]; write: Schemas["ServiceInput"] };
  targets: { read: Schemas["Target"]; write: Schemas["TargetInput"] };
  routes: { read: Schemas["Route"]; write: Schemas["RouteInput"] };
  "stream-routes": { read: Schemas["StreamRoute"]; write: Schemas["StreamRouteInput"] };
  plugins: { read: Schemas["Plugin"]; write: Schemas["PluginInput"] };
  consumers: { read: Schemas["Consumer"]; write: Schemas["ConsumerInput"] };
  credentials: { read: Schemas["Credential"]; write: Schemas["CredentialInput"] };
  certificates: { read: Schemas["Certificate"]; write: Schemas["CertificateInput"] };
  "acme/accounts": { read: Schemas["AcmeAccount"]; write: Schemas["AcmeAccountInput"] };
  "dns-providers": { read: Schemas["DnsProvider"]; write: Schemas["DnsProviderInput"] };
  alerts: { read: Schemas["Alert"]; write: Schemas["AlertInput"] };
  listeners: { read: Schemas["Listener"]; write: Schemas["ListenerInput"] };
  users: { read: Schemas["User"]; write: Schemas["UserInput"] };
  tokens: { read: Schemas["Token"]; write: Schemas["TokenInput"] };
  secrets: { read: Schemas["Secret"]; write: Schemas["SecretInput"] };
}

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

export const resources: Readonly<Record<ResourceKey, ResourceFacts>> = {
  applications: {
    ...words("application", "editor"),
    touches: ["services", "targets", "routes", "certificates", "plugins"],
  },
  services: { ...words("service", "editor"), touches: ["targets", "applications"] },
  targets: { ...words("target", "editor"), touches: ["services", "applications"] },
  routes: { ...words("route", "editor"), touches: ["plugins", "applications"] },
  "stream-routes": { ...words("stream route", "editor"), touches: ["plugins"] },
  plugins: words("plugin", "editor"),
  consumers: { ...words("consumer", "editor"), touches: ["credentials", "plugins"] },
  credentials: { ...words("credential", "editor"), touches: ["consumers"] },
  certificates: { ...words("certificate", "editor"), touches: ["applications"] },
  "acme/accounts": { ...words("ACME account", "editor"), kind: "acme_account" },
  "dns-providers": { ...words("DNS provider", "editor"), kind: "dns_provider" },
  alerts: words("alert", "editor"),
  listeners: words("listener", "admin"),
  users: words("user", "admin"),
  tokens: words("token", "admin"),
  secrets: words("secret", "admin"),
};

function words(word: string, writes: Role): ResourceFacts {
  const kind = word.toLowerCase().replaceAll(" ", "_");
  return { word, plural: `${word}s`, kind, writes, touches: [] };
}

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
