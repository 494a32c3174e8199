// The objects that make up an application and what it says about each of them; pure, and fields that it says nothing about are free.
import type { Fields, Planned } from "./planned-part.ts";
import type { PartCollection, PartReference } from "../model/application.ts";
import { placeKey } from "../model/target.ts";
import { isPublicName } from "./domains.ts";
import { pluginParts } from "./plugin-parts.ts";
import { parseUpstream } from "./upstream.ts";

export interface WantedPart extends PartReference {
  /** Tells the parts of one application apart, whatever becomes of them. */
  readonly role: string;
  /** Where the client's own document speaks of it; null: nowhere. */
  readonly place: string | null;
  /** What the application says about it. */
  readonly fields: Fields;
}

/** The id of the object that has a role, or is to have it. */
export type IdOf = (role: string, collection: PartCollection) => string;

export const localName = (name: string): string => `${name} local`;

export const selfSignedName = (name: string): string => `${name} self-signed`;

/** Role of the target at a place. */
export const targetRole = (target: Parameters<typeof placeKey>[0]): string =>
  `target ${placeKey(target)}`;

/** What is referred to comes before what refers to it. */
export function wantedParts(application: Planned, idOf: IdOf): WantedPart[] {
  const { enabled, tags, description, host_header } = application;
  const common = { enabled, tags, description };
  const part = (
    [collection, role]: readonly [PartCollection, string],
    fields: Fields,
    place: string | null = "",
  ): WantedPart => ({ role, collection, id: idOf(role, collection), fields, place });
  const { protocol, path } = originOf(application);
  const service = part(
    ["services", "service"],
    {
      name: application.name,
      protocol,
      path,
      ...(host_header === null ? {} : { host_header }),
      ...common,
    },
    host_header === null ? null : "",
  );
  const targets = targetsOf(application).map(({ fields, place }) =>
    part(["targets", targetRole(fields)], { service_id: service.id, ...fields }, place),
  );
  const routes = routesOf(application).map(({ role, fields }) =>
    part(["routes", role], { ...fields, service_id: service.id, ...common }),
  );
  const certificates = certificatesOf(application).map(({ role, fields }) =>
    part(["certificates", role], { ...fields, ...common }),
  );
  const [route] = routes;
  const scopes = { service_id: service.id, route_id: route?.id ?? "" };
  const plugins = pluginsOf(application, scopes).map(({ role, fields, place }) =>
    part(["plugins", role], { ...common, ...fields }, place),
  );
  return [service, ...targets, ...routes, ...certificates, ...plugins];
}

function originOf({ upstream }: Planned): { readonly protocol: string; readonly path: string } {
  return upstream === null ? { protocol: "http", path: "" } : parseUpstream(upstream);
}

function targetsOf({ upstream, targets, tags, description }: Planned) {
  if (upstream === null)
    return targets.map((fields, index) => ({ fields, place: `targets[${index}]` }));
  const { host, port } = parseUpstream(upstream);
  return [{ fields: { host, port, enabled: true, tags, description }, place: "upstream" }];
}

/**
 * Names with a certificate that everybody trusts, and those without, have a route each: only the first may send people to
 * HTTPS, where they would meet a warning otherwise.
 */
function routesOf(application: Planned): { readonly role: string; readonly fields: Fields }[] {
  const { name, domains, https, https_state: state } = application;
  const maintenance = application.maintenance ? application.maintenance_options : null;
  const redirect = https.redirect && state.secured ? 308 : false;
  const splits = https.mode === "auto" && domains.some(isPublicName);
  const hosts = splits ? domains.filter(isPublicName) : domains;
  const others = splits ? domains.filter((domain) => !isPublicName(domain)) : [];
  const route = { role: "route", fields: { name, hosts, https_redirect: redirect, maintenance } };
  if (others.length === 0) return [route];
  const fields = { name: localName(name), hosts: others, https_redirect: false, maintenance };
  return [route, { role: "local_route", fields }];
}

function certificatesOf({ name, https_state: state }: Planned) {
  const parts: { readonly role: string; readonly fields: Fields }[] = [];
  const { ordered, local, self_signed: own } = state;
  const challenge = ordered.some((domain) => domain.startsWith("*.")) ? "dns-01" : "http-01";
  if (ordered.length > 0)
    parts.push({
      role: "certificate",
      fields: { name, source: "acme", domains: ordered, challenge },
    });
  if (local.length > 0)
    parts.push({
      role: "local",
      fields: { name: localName(name), source: "local_ca", domains: local },
    });
  if (own.length > 0)
    parts.push({
      role: "self_signed",
      fields: { name: selfSignedName(name), source: "self_signed", domains: own },
    });
  return parts;
}

function pluginsOf(
  application: Planned,
  scopes: Readonly<Record<"service_id" | "route_id", string>>,
) {
  const nowhere = { service_id: null, route_id: null, consumer_id: null, stream_route_id: null };
  return pluginParts.flatMap(({ role, plugin, scope, place, isOn, config }) => {
    const own = config(application);
    if (own === null) return [];
    const fields: Fields = {
      name: plugin,
      label: `${application.name} ${role.replaceAll("_", " ")}`,
      ...nowhere,
      [scope]: scopes[scope],
      config: own,
      enabled: application.enabled && isOn?.(application) !== false,
    };
    return [{ role, fields, place }];
  });
}
