// Carries a planned change out through the management API and reads the configuration back; knows no data plane.
import type { Gateway } from "../../support/gateway.ts";
import type { Mutation, RouteState, ServiceState, WorldState } from "./world.ts";

/** The call of a mutation, with the id of its target found. */
export async function callOf(
  gateway: Gateway,
  { method, path, target, body }: Mutation,
): Promise<() => Promise<Response>> {
  if (target === undefined) return () => gateway.api(method, path, body);
  const list = (await gateway.ok("GET", `/api/v1/services/${target.service}/targets`)) as {
    id: string;
    port: number;
  }[];
  const found = list.find(({ port }) => port === target.port);
  if (found === undefined) throw new Error(`no target ${target.port} in ${target.service}`);
  return () => gateway.api(method, path.replace(":target", found.id), body);
}

/** The revision that the reply names; throws when the mutation was refused. */
export async function carryOut(gateway: Gateway, mutation: Mutation): Promise<number> {
  const response = await (await callOf(gateway, mutation))();
  const text = await response.text();
  if (response.status !== 200)
    throw new Error(`${mutation.method} ${mutation.path}: ${response.status} ${text}`);
  return Number(response.headers.get("x-config-revision"));
}

const collections = ["services", "targets", "routes", "listeners", "settings"] as const;

/** Everything that the management API returns of the configuration, as text to compare. */
export async function readEverything(gateway: Gateway): Promise<Record<string, string>> {
  const documents = await Promise.all(
    collections.map(async (name) => {
      const document: unknown = await gateway.ok("GET", `/api/v1/${name}`);
      return [name, JSON.stringify(document, withoutState, 1)] as const;
    }),
  );
  return Object.fromEntries(documents);
}

/** What is only known while the gateway runs is no part of what it has acknowledged. */
const withoutState = (key: string, value: unknown) =>
  key === "active_requests" || (key === "health" && Object.hasOwn(value as object, "last_error"))
    ? undefined
    : value;

interface ServiceDocument extends Omit<ServiceState, "targets"> {
  readonly id: string;
  readonly name: string;
  readonly targets: readonly { readonly port: number; readonly enabled: boolean }[];
}

interface RouteDocument extends Omit<RouteState, "service" | "paths"> {
  readonly name: string;
  readonly service_id: string;
  readonly paths: readonly { readonly value: string }[];
}

/** The world as the management API returns it. */
export function worldOf(everything: Record<string, string>): WorldState {
  const services = JSON.parse(everything["services"]!) as ServiceDocument[];
  const routes = JSON.parse(everything["routes"]!) as RouteDocument[];
  const nameOf = new Map(services.map(({ id, name }) => [id, name]));
  return {
    services: Object.fromEntries(
      services.map(({ name, enabled, response_buffer_bytes, targets }) => [
        name,
        {
          enabled,
          response_buffer_bytes,
          targets: Object.fromEntries(targets.map((target) => [target.port, target.enabled])),
        },
      ]),
    ),
    routes: Object.fromEntries(
      routes.map(({ name, service_id, paths, hosts, enabled }) => [
        name,
        {
          service: nameOf.get(service_id) ?? `unknown service ${service_id}`,
          paths: paths.map(({ value }) => value),
          hosts,
          enabled,
        },
      ]),
    ),
  };
}
