// Turns the Traefik labels of a container into dynamic configuration; knows no container engine and converts nothing.
import { type Document, isDocument } from "../../control/body.ts";
import { withKnownNames } from "./fields.ts";
import { treeOf } from "./label-tree.ts";

/** Where the labels are. */
export interface LabeledContainer {
  /** Name of its service where the labels define none. */
  readonly name: string;
  /** Host of its target. */
  readonly address: string;
  /** Port of its target where no label defines one; null: unknown. */
  readonly port: number | null;
}

export interface LabeledConfiguration {
  /** In the form of Traefik's dynamic configuration files: `http`, `tcp`, `udp`. */
  readonly dynamic: Document;
  /** Sentences about labels without an effect, for people. */
  readonly problems: readonly string[];
  /** Value of `traefik.enable`; null: absent, so that the default of the provider decides. */
  readonly isEnabled: boolean | null;
}

type Section = "http" | "tcp" | "udp";
const sections: readonly Section[] = ["http", "tcp", "udp"];

/** Reads labels of Traefik 2 and 3, regardless of case; ignores all that do not begin with `traefik.`. */
export function labelsToDynamic(
  labels: Readonly<Record<string, string>>,
  container: LabeledContainer,
): LabeledConfiguration {
  const problems: string[] = [];
  const planted: [string, string][] = [];
  let isEnabled: boolean | null = null;
  for (const [key, value] of Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const [first = "", ...steps] = key.split(".");
    if (first.toLowerCase() !== "traefik" || steps.length === 0) continue;
    const section = (steps[0] ?? "").toLowerCase();
    if (section === "enable") isEnabled = /^\s*(?:true|1|t)\s*$/i.test(value);
    else if (sections.some((one) => one === section)) planted.push([steps.join("."), value]);
    else if (FIRST_VERSION.includes(section))
      problems.push(`the label ${key} is of Traefik 1, which the import does not support`);
    else if (!/^(?:docker|swarm|tags|tls)$/.test(section))
      problems.push(`the label ${key} is unknown`);
    else if (section === "tls") problems.push(`the label ${key} has no effect on containers`);
  }
  const read = withKnownNames(treeOf(planted), (path, message) =>
    problems.push(`the label traefik.${path} of ${container.name} ${message}`),
  );
  const dynamic = Object.fromEntries(
    sections.flatMap((section) => {
      const part = read[section];
      return isDocument(part) ? [[section, completed(section, part, { container, problems })]] : [];
    }),
  );
  const isMeant = isEnabled === true || sections.some((section) => hasServices(read[section]));
  if (isEnabled !== false && isMeant && !sections.some((section) => hasRouters(dynamic[section])))
    problems.push(
      `no label of ${container.name} defines a router with a rule: Traefik's default rule is in its static configuration`,
    );
  return { dynamic, problems, isEnabled };
}

const FIRST_VERSION = [
  ...["frontend", "backend", "port", "protocol", "weight", "domain", "portname", "segment"],
];

const hasRouters = (section: unknown): boolean =>
  isDocument(section) && Object.keys(recordOf(section, "routers")).length > 0;

const hasServices = (section: unknown): boolean =>
  isDocument(section) && Object.keys(recordOf(section, "services")).length > 0;

interface Completion {
  readonly container: LabeledContainer;
  readonly problems: string[];
}

/** Adds what Traefik's Docker provider derives: the servers, and the service of routers without one. */
function completed(section: Section, part: Document, completion: Completion): Document {
  const { container, problems } = completion;
  const given = recordOf(part, "services");
  const isImplicit = Object.keys(given).length === 0 && hasRouters(part);
  const named = isImplicit ? { [container.name]: { loadBalancer: {} } } : given;
  const services = Object.fromEntries(
    Object.entries(named).map(([name, service]) => [
      name,
      withServers(section, { name, service }, completion),
    ]),
  );
  const balanced = Object.entries(services).filter(([, each]) => isDocument(each["loadBalancer"]));
  const [only] = balanced.length === 1 ? balanced : [];
  const routers = Object.entries(recordOf(part, "routers")).flatMap(([name, router]) => {
    if (!isDocument(router)) return [];
    if (section !== "udp" && typeof router["rule"] !== "string") {
      problems.push(`the router ${name} of ${container.name} has no rule`);
      return [];
    }
    if (typeof router["service"] === "string") return [[name, router] as const];
    if (only !== undefined) return [[name, { ...router, service: only[0] }] as const];
    problems.push(
      `the router ${name} of ${container.name} names none of the services ${Object.keys(services).join(", ")}`,
    );
    return [];
  });
  return { ...part, routers: Object.fromEntries(routers), services };
}

function withServers(
  section: Section,
  { name, service }: { readonly name: string; readonly service: unknown },
  { container, problems }: Completion,
): Document {
  if (!isDocument(service)) return {};
  const balancer = service["loadBalancer"];
  if (!isDocument(balancer)) return service;
  const { server, servers = [], ...rest } = balancer;
  const own = isDocument(server) ? server : {};
  const { port: wanted, scheme, url, ...others } = own;
  const known = Array.isArray(servers) ? (servers as readonly unknown[]) : [];
  if (known.length > 0 && server === undefined) return service;
  if (typeof url === "string")
    return { ...service, loadBalancer: { ...rest, servers: [{ url, ...others }] } };
  const port = wanted === undefined ? container.port : Number(wanted);
  if (port === null || !Number.isInteger(port) || port < 1 || port > 65_535) {
    problems.push(
      `the service ${name} of ${container.name} has no valid port: set the label traefik.${section}.services.${name}.loadbalancer.server.port`,
    );
    return { ...service, loadBalancer: { ...rest, servers: [] } };
  }
  const host = container.address.includes(":") ? `[${container.address}]` : container.address;
  const made =
    section === "http"
      ? { url: `${typeof scheme === "string" ? scheme : "http"}://${host}:${port}` }
      : { address: `${host}:${port}` };
  return { ...service, loadBalancer: { ...rest, servers: [{ ...made, ...others }] } };
}

const recordOf = (part: Document, name: string): Document => {
  const value = part[name];
  return isDocument(value) ? value : {};
};
