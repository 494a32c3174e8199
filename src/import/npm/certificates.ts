// Converts certificates of Nginx Proxy Manager: uploaded ones from its database; those of Let's Encrypt are requested again.
import { addDnsProvider } from "../acme.ts";
import type { Members } from "../members.ts";
import { addCertificate } from "../pem.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, rowsOf, timesOf } from "./rows.ts";

/** Fills `context.certificates`. */
export function addCertificates(context: NpmContext): void {
  for (const members of rowsOf("certificate", context)) {
    const domains = members.texts("domain_names");
    const nice = members.text("nice_name");
    const name = nice === null || nice === "" ? (domains[0] ?? "certificate") : nice;
    members.setLabel(`certificate "${name}"`);
    members.raw("expires_on");
    timesOf(members);
    const provider = members.text("provider");
    const meta = members.object("meta") ?? members.empty("meta");
    const row: Row = { members, meta, name, domains };
    const made = provider === "letsencrypt" ? addOrdered(row, context) : addUploaded(row, context);
    if (made !== null) context.certificates.set(idOf(members), made);
  }
}

interface Row {
  readonly members: Members;
  readonly meta: Members;
  readonly name: string;
  readonly domains: readonly string[];
}

function addUploaded({ members, meta, name }: Row, { output }: NpmContext): string | null {
  const chain = [meta.text("certificate"), meta.text("intermediate_certificate")];
  const privateKey = meta.text("certificate_key");
  if (chain[0] === null || privateKey === null) {
    members.drop("its files are not in the database: upload it here");
    return null;
  }
  return addCertificate(output, {
    key: `certificate ${idOf(members)}`,
    label: members.label,
    name,
    privateKey,
    certificate: chain.filter((pem) => pem !== null).join("\n"),
    domains: [],
  });
}

function addOrdered({ members, meta, name, domains }: Row, context: NpmContext): string | null {
  const email = meta.text("letsencrypt_email");
  meta.raw("letsencrypt_agree");
  meta.raw("letsencrypt_certificate");
  const isDns = meta.flag("dns_challenge") ?? false;
  meta.omit("propagation_seconds", "set propagation_timeout of the DNS provider");
  const keyType = meta.text("key_type");
  if (domains.length === 0) {
    members.drop("it has no names");
    return null;
  }
  return context.ordered.add({
    key: `certificate ${idOf(members)}`,
    label: members.label,
    name,
    domains,
    email,
    isDns,
    ...(keyType === "rsa" ? { keyType } : {}),
    dnsProvider: isDns ? dnsProviderOf(meta, context) : null,
  });
}

/** Supports only providers whose credentials are a token. */
function dnsProviderOf(meta: Members, { output }: NpmContext): string | null {
  const type = meta.text("dns_provider");
  const credentials = meta.text("dns_provider_credentials") ?? "";
  const [, token] = /^\s*dns_cloudflare_api_token\s*=\s*(\S+)\s*$/m.exec(credentials) ?? [];
  if (type === "cloudflare" && token !== undefined)
    return addDnsProvider(output, { key: token, type, secrets: { api_token: token } });
  output.report.omitted(`${meta.label}: DNS provider ${type}`, "add it as a DNS provider");
  return null;
}
