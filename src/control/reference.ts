// References and ownership between objects, and their labels in messages; one table for all collections.
import type { Alert } from "../model/alert.ts";
import { referenceOf } from "../model/application.ts";
import { ApiError, type Issue } from "../model/error.ts";
import type { Certificate } from "../model/certificate.ts";
import type { CollectionName, GatewayConfig, SingletonName } from "../model/gateway-config.ts";
import { ownerOf } from "../model/large-collections.ts";
import { findBy } from "../model/layered-map.ts";
import type { PluginScope } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import { referencesOf } from "../model/secret-reference.ts";
import type { StreamRoute } from "../model/stream-route.ts";
import type { Problem } from "../snapshot/problem.ts";
import type { Draft } from "./draft.ts";

/** One object of a configuration. */
export interface Reference {
  readonly collection: CollectionName;
  readonly id: string;
}

/** A referring object; the id of a singleton is empty. */
export interface Referrer {
  readonly collection: CollectionName | SingletonName;
  readonly id: string;
}

const singletonLabels: Readonly<Record<SingletonName, string>> = {
  settings: "the settings",
  sso: "single sign-on",
};

export const isSingleton = (name: CollectionName | SingletonName): name is SingletonName =>
  Object.hasOwn(singletonLabels, name);

/** `route "shop"`, `target "10.0.0.1:80"`; the id for an object without a name. */
export function labelOf(config: GatewayConfig, { collection, id }: Referrer): string {
  if (isSingleton(collection)) return singletonLabels[collection];
  const word = collection
    .slice(0, -1)
    .replace("_", " ")
    .replace(/^(?:acme|dns)\b/, (part) => part.toUpperCase());
  if (collection === "users") return `user "${config.users.get(id)?.email ?? id}"`;
  if (collection === "consumers") return `consumer "${config.consumers.get(id)?.username ?? id}"`;
  if (collection === "plugins") {
    const plugin = config.plugins.get(id);
    return plugin === undefined ? `plugin "${id}"` : `plugin "${plugin.label ?? plugin.name}"`;
  }
  if (collection !== "targets") return `${word} "${config[collection].get(id)?.name ?? id}"`;
  const target = config.targets.get(id);
  if (target === undefined) return `target "${id}"`;
  return `target "${target.host}${target.port === null ? "" : `:${target.port}`}"`;
}

/** Objects that belong to the object and are deleted with it. */
export function ownedBy(config: GatewayConfig, { collection, id }: Reference): Reference[] {
  const plugins = (field: keyof PluginScope): Reference[] =>
    [...config.plugins.values()]
      .filter((plugin) => plugin[field] === id)
      .map((plugin) => ({ collection: "plugins", id: plugin.id }));
  switch (collection) {
    case "services":
      return [
        ...[...config.targets.values()]
          .filter((target) => target.service_id === id)
          .map((target): Reference => ({ collection: "targets", id: target.id })),
        ...plugins("service_id"),
      ];
    case "routes":
      return plugins("route_id");
    case "stream_routes":
      return plugins("stream_route_id");
    case "consumers":
      return [
        ...findBy(config.credentials, ownerOf, { value: id }).map((credential): Reference => ({
          collection: "credentials",
          id: credential.id,
        })),
        ...plugins("consumer_id"),
      ];
    case "applications":
      return partsOf(config, id);
    default:
      return [];
  }
}

/** The existing objects of an application. */
function partsOf(config: GatewayConfig, id: string): Reference[] {
  const parts = config.applications.get(id)?.parts ?? [];
  return parts.flatMap((part) => {
    const reference = referenceOf(part);
    return reference !== null && config[reference.collection].has(reference.id) ? [reference] : [];
  });
}

/** Objects that use the object and so prevent its deletion. */
export function referrersOf(config: GatewayConfig, { collection, id }: Reference): Referrer[] {
  const routesThat = (refers: (route: Route) => boolean): Referrer[] =>
    [...config.routes.values()]
      .filter(refers)
      .map((route) => ({ collection: "routes", id: route.id }));
  const streamRoutesThat = (refers: (route: StreamRoute) => boolean): Referrer[] =>
    [...config.stream_routes.values()]
      .filter(refers)
      .map((route) => ({ collection: "stream_routes", id: route.id }));
  switch (collection) {
    case "services":
      return [
        ...routesThat((route) => route.service_id === id),
        ...streamRoutesThat((route) => route.service_id === id),
        ...pluginsNaming(config, id),
        ...alertsThat(config, (alert) => alert.service_ids.includes(id)),
      ];
    case "routes":
      return alertsThat(config, (alert) => alert.route_ids.includes(id));
    case "consumers":
      return pluginsNaming(config, id);
    case "certificates":
      return [
        ...servicesWith(config, id),
        ...streamRoutesThat((route) => route.certificate_id === id),
        ...applicationsNaming(config, id),
      ];
    case "acme_accounts":
      return certificatesThat(config, (certificate) => certificate.acme_account_ids.includes(id));
    case "dns_providers":
      return certificatesThat(config, (certificate) => certificate.dns_provider_id === id);
    case "listeners":
      return routesThat((route) => route.listener_ids.includes(id));
    case "secrets":
      return secretReferrersOf(config, config.secrets.get(id)?.name);
    default:
      return [];
  }
}

/** Plugin instances whose configuration holds the object's id. */
function pluginsNaming(config: GatewayConfig, id: string): Referrer[] {
  return [...config.plugins.values()]
    .filter((plugin) => JSON.stringify(plugin.config).includes(id))
    .map((plugin) => ({ collection: "plugins", id: plugin.id }));
}

function alertsThat(config: GatewayConfig, refers: (alert: Alert) => boolean): Referrer[] {
  return [...config.alerts.values()].filter(refers).map(({ id }) => ({ collection: "alerts", id }));
}

function certificatesThat(
  config: GatewayConfig,
  refers: (certificate: Certificate) => boolean,
): Referrer[] {
  return [...config.certificates.values()]
    .filter(refers)
    .map(({ id }) => ({ collection: "certificates", id }));
}

/** Applications with a user's reference to the certificate; own certificates of an application do not count. */
function applicationsNaming(config: GatewayConfig, certificate: string): Referrer[] {
  return [...config.applications.values()]
    .filter(({ https }) => https.certificate_id === certificate)
    .map(({ id }) => ({ collection: "applications", id }));
}

function servicesWith(config: GatewayConfig, certificate: string): Referrer[] {
  return [...config.services.values()]
    .filter(({ tls }) => tls.client_certificate_id === certificate)
    .map(({ id }) => ({ collection: "services", id }));
}

/** Each object that refers to the secret, once. */
function secretReferrersOf(config: GatewayConfig, name: string | undefined): Referrer[] {
  const references = referencesOf(config).filter((reference) => reference.name === name);
  const referrers = references.map(({ collection, id }) => ({ collection, id }));
  return [...new Map(referrers.map((each) => [`${each.collection} ${each.id}`, each])).values()];
}

/** The first reason why a version cannot be served. */
export function refusalOf([first]: readonly (Problem | Issue)[], draft: Draft): ApiError {
  if (first === undefined) return new ApiError(400, "the configuration is invalid");
  return new ApiError(first.status, describeProblem(first, draft));
}

/** `path: message` with paths of the client's document; names an object that the client did not send. */
export function describeProblem(problem: Problem | Issue, draft: Draft): string {
  const tail = problem.path === "" ? problem.message : `${problem.path}: ${problem.message}`;
  if (!("collection" in problem)) return tail;
  const isOnly = isSingleton(problem.collection);
  const path = draft.pathOf(isOnly ? problem.collection : problem.id) ?? (isOnly ? "" : null);
  if (path === null) {
    const { collection, id } = problem as Reference;
    // The name of a deleted object is only in the base configuration.
    const named = draft.config[collection].has(id) ? draft.config : draft.base;
    return `${labelOf(named, { collection, id })}: ${tail}`;
  }
  if (path === "") return tail;
  return problem.path === "" ? `${path}: ${tail}` : `${path}.${tail}`;
}
