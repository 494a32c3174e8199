// The fields of the form of an application, from what the API reads and to what it writes; draws nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";

export interface ServerValues {
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
}

export interface ApplicationValues {
  readonly name: string;
  readonly domains: readonly string[];
  readonly runs_on: "address" | "servers";
  readonly upstream: string;
  readonly targets: readonly ServerValues[];
  readonly https: Read<"applications">["https"];
  readonly access: "public" | "private";
  readonly maintenance: boolean;
  readonly enabled: boolean;
  readonly tags: readonly string[];
  readonly description: string;
}

export const newServer: ServerValues = { host: "", port: null, weight: 100 };

export function toValues(application: Partial<Read<"applications">>): ApplicationValues {
  const { https, upstream = "", name = "", domains = [""] } = application;
  const targets = (application.targets ?? []) as readonly Schemas["Target"][];
  return {
    ...{ name, domains },
    runs_on: upstream === null ? "servers" : "address",
    upstream: upstream ?? "",
    targets:
      upstream === null && targets.length > 0
        ? targets.map(({ host, port, weight }) => ({ host, port, weight }))
        : [newServer],
    https: { mode: "auto", certificate_id: null, redirect: true, hsts: false, ...https },
    access: application.access ?? "public",
    maintenance: application.maintenance ?? false,
    enabled: application.enabled ?? true,
    tags: application.tags ?? [],
    description: application.description ?? "",
  };
}

export function toBody(values: ApplicationValues): Write<"applications"> {
  const { runs_on: runsOn, upstream, targets, domains, https, tags, ...rest } = values;
  const certificate = https.mode === "certificate" ? https.certificate_id : null;
  return {
    ...rest,
    tags: [...tags],
    domains: domains.map((domain) => domain.trim()).filter((domain) => domain !== ""),
    https: { ...https, certificate_id: certificate },
    ...(runsOn === "address"
      ? { upstream: upstream.trim(), targets: [] }
      : {
          upstream: null,
          targets: targets.filter(({ host }) => host !== "").map((target) => ({ ...target })),
        }),
  };
}

const HOST =
  /^(?:\*\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/;
const ADDRESS = /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/;

export const isDomain = (text: string): boolean => HOST.test(text.trim());
export const isUpstream = (text: string): boolean => ADDRESS.test(text.trim());

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  // Called for the list as a whole, and for each of its texts.
  domains: (_: unknown, { domains }: ApplicationValues, path: string) => {
    const index = /^domains\.(\d+)$/.exec(path)?.[1];
    if (index !== undefined) return domainProblem(domains, Number(index));
    return domains.some((__, each) => domainProblem(domains, each) !== null)
      ? "A name is wrong"
      : null;
  },
  upstream: (value: string, { runs_on: runsOn }: ApplicationValues) =>
    runsOn !== "address"
      ? null
      : value.trim() === ""
        ? "Say where your application runs"
        : isUpstream(value)
          ? null
          : "An address with http:// or https://, such as http://10.0.0.5:3000",
};

/** What is wrong with the names, one answer each; null: nothing. */
export function domainProblem(domains: readonly string[], index: number): string | null {
  const text = domains[index]?.trim() ?? "";
  if (text === "") return index === 0 ? "Name is required" : null;
  if (/^https?:\/\//.test(text)) return "Only the name, without http:// in front";
  if (!isDomain(text)) return "A name such as shop.example.com, or *.example.com for all below it";
  const isTwice = domains.findIndex((other) => other.trim().toLowerCase() === text.toLowerCase());
  return isTwice < index ? "This name is there already" : null;
}

const PRIVATE_ENDS = ["localhost", "local", "lan", "internal", "home.arpa", "test"];

/** Whether an authority on the Internet could vouch for the name, by its look; the same rule as the gateway's. */
export function isPublicName(name: string): boolean {
  const plain = name.trim().replace(/^\*\./, "").toLowerCase();
  if (!plain.includes(".") || /^\d+(?:\.\d+){3}$/.test(plain)) return false;
  return !PRIVATE_ENDS.some((end) => plain === end || plain.endsWith(`.${end}`));
}

/** `upstream.host` is about the address as a whole. */
export const fieldOf = (field: string): string =>
  field.startsWith("upstream.") ? "upstream" : field;
