// The fields of the form of an application, converted from and to the API's objects; renders nothing.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Document } from "../../api/merge-patch.ts";
import type { Read, Schemas, Write } from "../../api/resources.ts";
import { toUrl } from "../../parts/lenient-url.ts";
import { redirectOf } from "./application-state.ts";
import { hasValue } from "../../parts/resource-form.tsx";
import { problemsOf } from "../../parts/schema/problems.ts";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { withDefaults } from "../../parts/schema/values.ts";

export interface ServerValues {
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
}

export interface ApplicationValues {
  readonly name: string;
  readonly domains: readonly string[];
  readonly runs_on: "address" | "servers" | "redirect";
  readonly upstream: string;
  readonly targets: readonly ServerValues[];
  /** Null: as its service has it. */
  readonly host_header: string | null;
  readonly https: Read<"applications">["https"];
  readonly access: Read<"applications">["access"];
  readonly networks: readonly string[];
  readonly policies: Document;
  /** A user of the list of `policies.login` that is created with the next save. */
  readonly new_user: { readonly username: string; readonly password: string };
  readonly maintenance: boolean;
  readonly maintenance_options: Document;
  readonly enabled: boolean;
  readonly tags: readonly string[];
  readonly description: string;
}

export const noUser: ApplicationValues["new_user"] = { username: "", password: "" };

const { policies: policySchema = {}, maintenance_options: maintenanceSchema = {} } =
  (formSchemaOf("applications") as JsonSchema).properties ?? {};
export { maintenanceSchema, policySchema };

const noPolicies = withDefaults(policySchema, {});

export const newServer: ServerValues = { host: "", port: null, weight: 100 };

export function toValues(application: Partial<Read<"applications">>): ApplicationValues {
  const { https, upstream = "", name = "", domains = [""] } = application;
  const targets = (application.targets ?? []) as readonly Schemas["Target"][];
  return {
    name,
    domains,
    runs_on:
      redirectOf(application) !== null ? "redirect" : upstream === null ? "servers" : "address",
    upstream: upstream ?? "",
    targets:
      upstream === null && targets.length > 0
        ? targets.map(({ host, port, weight }) => ({ host, port, weight }))
        : [newServer],
    host_header: application.host_header === undefined ? "preserve" : application.host_header,
    https: { mode: "auto", certificate_id: null, redirect: true, hsts: false, ...https },
    access: application.access ?? "public",
    networks: application.networks ?? [],
    policies: (application.policies ?? noPolicies) as unknown as Document,
    new_user: noUser,
    maintenance: application.maintenance ?? false,
    maintenance_options: withDefaults(maintenanceSchema, application.maintenance_options ?? {}),
    enabled: application.enabled ?? true,
    tags: application.tags ?? [],
    description: application.description ?? "",
  };
}

export function toBody(values: ApplicationValues): Write<"applications"> {
  const { runs_on: runsOn, upstream, targets, domains, https, tags, ...more } = values;
  const { new_user: _, networks, policies, maintenance_options: page, ...rest } = more;
  const certificate = https.mode === "certificate" ? https.certificate_id : null;
  return {
    ...rest,
    tags: [...tags],
    maintenance_options: page as NonNullable<Write<"applications">["maintenance_options"]>,
    networks: rest.access === "public" ? [] : [...networks],
    policies: policies as NonNullable<Write<"applications">["policies"]>,
    domains: domains.map((domain) => domain.trim()).filter((domain) => domain !== ""),
    https: { ...https, certificate_id: certificate },
    ...(runsOn === "address"
      ? { upstream: toUrl(upstream.trim()), targets: [] }
      : {
          upstream: null,
          targets:
            runsOn === "redirect"
              ? []
              : targets.filter(({ host }) => host !== "").map((target) => ({ ...target })),
        }),
  };
}

const HOST =
  /^(?:\*\.)?(?:[\p{L}\p{M}\p{N}_](?:[\p{L}\p{M}\p{N}_-]{0,61}[\p{L}\p{M}\p{N}])?\.)*[\p{L}\p{M}\p{N}_](?:[\p{L}\p{M}\p{N}_-]{0,61}[\p{L}\p{M}\p{N}])?$/u;
const ADDRESS = /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/;

export const isDomain = (text: string): boolean => HOST.test(text.trim());
export const isUpstream = (text: string): boolean => ADDRESS.test(toUrl(text.trim()));

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  // Called for the whole list and for each of its strings.
  domains: (_: unknown, { domains }: ApplicationValues, path: string) => {
    const index = /^domains\.(\d+)$/.exec(path)?.[1];
    if (index !== undefined) return domainProblem(domains, Number(index));
    return domains.some((__, each) => domainProblem(domains, each) !== null)
      ? "A domain is invalid"
      : null;
  },
  host_header: (value: string | null) =>
    value === "" ? "Name in the Host header is required" : null,
  upstream: (value: string, { runs_on: runsOn }: ApplicationValues) =>
    runsOn !== "address"
      ? null
      : value.trim() === ""
        ? "Upstream URL is required"
        : isUpstream(value)
          ? null
          : "Must be a URL such as http://10.0.0.5:3000",
  policies: {
    redirect: {
      to: (value: string, { runs_on: runsOn }: ApplicationValues) =>
        runsOn !== "redirect" || /^(?:https?:\/\/[^\s]+|\/[^\s]*)$/.test(value)
          ? null
          : "Must be a URL such as https://example.com",
    },
  },
};

/** The name that the gateway would send upstream; empty: the upstream's own. */
export function sentHost({ host_header: header, domains }: ApplicationValues): string {
  if (header === "target") return "";
  return header === null || header === "preserve" ? (domains[0] ?? "") : header;
}

/** The error of one domain; null: none. */
export function domainProblem(domains: readonly string[], index: number): string | null {
  const text = domains[index]?.trim() ?? "";
  if (text === "") return index === 0 ? "Domain is required" : null;
  if (/^https?:\/\//.test(text)) return "Must be a host name, without http://";
  if (!isDomain(text))
    return "Must be a host name such as shop.example.com, or *.example.com for all names below";
  const isTwice = domains.findIndex((other) => other.trim().toLowerCase() === text.toLowerCase());
  return isTwice < index ? "Duplicate domain" : null;
}

const PRIVATE_ENDS = ["localhost", "local", "lan", "internal", "home.arpa", "test"];

/** Whether a public CA could issue for the name, by its form; the gateway's rule. */
export function isPublicName(name: string): boolean {
  const plain = name.trim().replace(/^\*\./, "").toLowerCase();
  if (!plain.includes(".") || /^\d+(?:\.\d+){3}$/.test(plain)) return false;
  return !PRIVATE_ENDS.some((end) => plain === end || plain.endsWith(`.${end}`));
}

/** The API's `upstream.host` belongs to the URL input, and the setting of a policy's plugin to the policy. */
export const fieldOf = (field: string): string =>
  field.startsWith("upstream.")
    ? "upstream"
    : field.replace(/^(policies\.\w+)\.config\..*$/, "$1").replace(/^networks\..*$/, "networks");

/** Beside the fields with a value, those of policies, which may be empty. */
export const hasField = (path: string, values: ApplicationValues): boolean =>
  /^(?:policies|maintenance_options)\./.test(path) || hasValue(values, path);

/** What is to be filled in before it is saved, by path. */
export const missingInPolicies = ({ policies }: ApplicationValues): Record<string, string> =>
  Object.fromEntries(
    problemsOf(policySchema, policies).map(({ path, message }) => [`policies.${path}`, message]),
  );
