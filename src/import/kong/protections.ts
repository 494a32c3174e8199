// Plugins of Kong that deny access, by route; knows no conversion.
import type { Members } from "../members.ts";
import { type KongContext, referenceOf } from "./context.ts";

/** Never deny access. All other plugins may, custom ones included. */
const harmless = new Set([
  ...["cors", "rate-limiting", "rate-limiting-advanced", "response-ratelimiting"],
  ...["request-size-limiting", "response-transformer", "response-transformer-advanced"],
  ...["correlation-id", "proxy-cache", "proxy-cache-advanced", "exit-transformer", "session"],
  ...["file-log", "http-log", "tcp-log", "udp-log", "kafka-log", "syslog", "loggly", "statsd"],
  ...["datadog", "prometheus", "zipkin", "opentelemetry", "grpc-gateway", "grpc-web"],
  ...["acme", "statsd-advanced", "upstream-timeout"],
]);

/** Overwrite parts of requests: without them, clients could forge those parts. */
const transformers = new Set(["request-transformer", "request-transformer-advanced"]);

/** Whether clients could gain access without the plugin. */
export const matters = (name: string): boolean => !harmless.has(name);

/** Whether the plugin gives requests something that it must not give to more of them. */
export const isTransformer = (name: string): boolean => transformers.has(name);

const deniesAccess = (name: string) => matters(name) && !transformers.has(name);

const authentication = new Set([
  ...["key-auth", "basic-auth", "jwt", "hmac-auth", "acl", "ip-restriction", "openid-connect"],
]);

/** The plugin redirect runs before authentication, unlike in Kong. */
export function authenticatesBeforeRedirect(protections: ReadonlySet<string>): boolean {
  const names = [...protections].map((each) => String(JSON.parse(each)[0]));
  return names.includes("redirect") && names.some((name) => authentication.has(name));
}

/** The plugins of a file that deny access, by scope. */
export class Protections {
  readonly #global: readonly Members[];
  readonly #byOwner = new Map<string, Members[]>();

  constructor({ root }: KongContext) {
    const global: Members[] = [];
    for (const plugin of root.objects("plugins")) {
      const owners = (["route", "service"] as const).flatMap((kind) => {
        const word = referenceOf(plugin, kind);
        return word === null ? [] : [`${kind} ${word}`];
      });
      const isOfClients = ["consumer", "consumer_group"].some((kind) => plugin.has(kind));
      const [owner] = owners;
      if (isOfClients) continue;
      if (owner === undefined) global.push(plugin);
      else this.#byOwner.set(owner, [...(this.#byOwner.get(owner) ?? []), plugin]);
    }
    this.#global = global;
  }

  /** The protections of a route as texts: of each plugin the instance with the most specific scope. */
  of(route: Members, service: Members | null): ReadonlySet<string> {
    const found = new Map<string, string>();
    const ofService = service === null ? [] : this.#at("service", service);
    for (const plugin of [...this.#global, ...ofService, ...this.#at("route", route)]) {
      const name = plugin.text("name") ?? "";
      if (!deniesAccess(name) || plugin.flag("enabled") === false) continue;
      found.set(name, JSON.stringify([name, plugin.raw("config"), plugin.raw("_config")]));
    }
    return new Set(found.values());
  }

  #at(kind: "route" | "service", owner: Members): readonly Members[] {
    const words = [owner.text("id"), owner.text("name")].filter((word) => word !== null);
    return [
      ...words.flatMap((word) => this.#byOwner.get(`${kind} ${word}`) ?? []),
      ...owner.objects("plugins"),
    ];
  }
}
