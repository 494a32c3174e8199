// Converts certificates of Caddy: those in its configuration, and those that it requests for the names of its routes.
import { isIP } from "node:net";
import { addDnsProvider } from "../acme.ts";
import type { Members } from "../members.ts";
import { isWithin, PRIVATE_NAMES } from "../../model/local-ca.ts";
import { addCertificate } from "../pem.ts";
import type { CaddyContext } from "./caddy.ts";

interface Policy {
  readonly subjects: readonly string[];
  readonly isInternal: boolean;
  readonly email: string | null;
  readonly directory: string | null;
  readonly dnsProvider: string | null;
  readonly isDns: boolean;
  readonly keyType: "ecdsa" | "rsa";
}

const standard: Policy = {
  subjects: [],
  isInternal: false,
  email: null,
  directory: null,
  dnsProvider: null,
  isDns: false,
  keyType: "ecdsa",
};

export function addTls(tls: Members | null, context: CaddyContext): void {
  const automation = tls?.object("automation") ?? null;
  const policies =
    automation?.objects("policies").map((policy) => {
      const names = policy.texts("subjects");
      policy.setLabel(
        `certificates for ${names.length === 0 ? "all other names" : names.join(", ")}`,
      );
      return readPolicy(policy, context);
    }) ?? [];
  automation?.omit("on_demand", "set on_demand of a certificate");
  for (const name of ["ocsp_interval", "renew_interval", "storage_clean_interval"])
    automation?.omit(name, "the gateway sets the time automatically");
  for (const name of [
    "session_tickets",
    "cache",
    "disable_ocsp_stapling",
    "encrypted_client_hello",
  ])
    tls?.omit(name, "this gateway has no setting for it");
  const certificates = tls?.object("certificates") ?? null;
  for (const each of certificates?.objects("load_files") ?? []) {
    const file = each.text("certificate") ?? "";
    each.ignoreRest();
    context.output.report.omitted(`certificate ${file}`, "files are not read: upload it");
  }
  for (const name of ["load_folders", "load_storage"])
    certificates?.omit(name, "files are not read: upload the certificates");
  for (const [index, each] of (certificates?.objects("load_pem") ?? []).entries()) {
    each.raw("tags");
    each.setLabel(`certificate ${index + 1}`);
    addCertificate(context.output, {
      key: `pem ${index}`,
      label: each.label,
      name: `caddy-${index + 1}`,
      domains: [],
      certificate: each.text("certificate") ?? "",
      privateKey: each.text("key") ?? "",
    });
  }
  const named = [...(certificates?.texts("automate") ?? []), ...context.secured];
  const wanted = [...new Set([...named, ...policies.flatMap(({ subjects }) => subjects)])];
  for (const domain of wanted) addOrdered(domain, policies, context);
}

function readPolicy(policy: Members, context: CaddyContext): Policy {
  const [issuer, ...others] = policy.objects("issuers");
  for (const each of others)
    // Without a setting, Caddy adds its second default.
    if (each.text("module") === "zerossl" || each.text("ca")?.includes("zerossl"))
      each.ignoreRest();
    else each.drop("only one issuer is imported: add more ACME accounts");
  policy.omit("on_demand", "set on_demand of a certificate", false);
  for (const name of ["must_staple", "renewal_window_ratio", "storage", "disable_ocsp_stapling"])
    policy.omit(name, "this gateway has no setting for it");
  const keyType = policy.text("key_type")?.startsWith("rsa") ? "rsa" : "ecdsa";
  const subjects = policy.texts("subjects").map((name) => name.toLowerCase());
  const module = issuer?.text("module") ?? "acme";
  if (module !== "acme" && module !== "internal")
    issuer?.changed("module", `${module} became acme at Let's Encrypt`);
  if (module === "internal") issuer?.ignoreRest();
  const challenges = issuer?.object("challenges") ?? null;
  const dns = challenges?.object("dns") ?? null;
  for (const name of ["http", "tls-alpn", "bind_host"])
    challenges?.omit(name, "set the challenge of the certificate");
  for (const name of ["external_account", "trusted_roots_pem_files", "preferred_chains"])
    issuer?.omit(name, "set it in the ACME account");
  issuer?.omit("profile", "set it in the ACME account");
  for (const name of ["acme_timeout", "test_ca", "account_key"])
    issuer?.omit(name, "this gateway has no setting for it");
  return {
    subjects,
    keyType,
    isInternal: module === "internal",
    email: issuer?.text("email") ?? null,
    directory: issuer?.text("ca") ?? null,
    isDns: dns !== null,
    dnsProvider: dns === null ? null : readDns(dns, context),
  };
}

/** Supports only providers whose settings are a token in plain text. */
function readDns(dns: Members, { output }: CaddyContext): string | null {
  const provider = dns.object("provider");
  const type = provider?.text("name") ?? "";
  const token = provider?.text("api_token") ?? "";
  for (const name of ["propagation_delay", "propagation_timeout", "resolvers", "ttl"])
    dns.omit(name, "set propagation_timeout of the DNS provider");
  if (type === "cloudflare" && token !== "" && !token.includes("{"))
    return addDnsProvider(output, { key: token, type, secrets: { api_token: token } });
  provider?.drop("add it as a DNS provider");
  return null;
}

/** Caddy's internal issuer signs any name, the local CA those that its settings permit. */
function addLocal(domain: string, label: string, { output }: CaddyContext): void {
  const isPermitted = isLocal(domain) || isWithin(domain, PRIVATE_NAMES);
  output.report.changed(
    label,
    isPermitted
      ? "the local CA signs it: devices have to trust its root, which is another one than Caddy's"
      : "the local CA signs it once settings.local_ca.permitted_names has the name; devices have to trust its root, which is another one than Caddy's",
  );
  output.add(
    "certificates",
    { key: domain, label },
    { name: output.name("certificates", domain), source: "local_ca", domains: [domain] },
  );
}

const isLocal = (name: string) =>
  !name.includes(".") ||
  isIP(name) !== 0 ||
  /\.(?:localhost|local|internal|home\.arpa)$/.test(name);

function addOrdered(domain: string, policies: readonly Policy[], context: CaddyContext): void {
  const wildcard = `*.${domain.split(".").slice(1).join(".")}`;
  const fits = (names: readonly string[]) => names.includes(domain) || names.includes(wildcard);
  const policy =
    policies.find(({ subjects }) => fits(subjects)) ??
    policies.find(({ subjects }) => subjects.length === 0) ??
    standard;
  const label = `certificate for ${domain}`;
  if (policy.isInternal || isLocal(domain)) {
    addLocal(domain, label, context);
    return;
  }
  context.ordered.add({ ...policy, key: domain, label, name: domain, domains: [domain] });
}
