// Converts certificates of Nginx Proxy Manager: uploaded ones, and those of Let's Encrypt with the files that it serves now.
import { type CertificateChain, ChainError, readChain } from "../../crypto/certificate-chain.ts";
import type { Members } from "../members.ts";
import { addCertificate } from "../pem.ts";
import { addNpmDnsProvider } from "./dns-providers.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, rowsOf, timesOf } from "./rows.ts";
import { storedNameOf } from "../../model/host-name.ts";

export interface ImportedCertificate {
  readonly id: string;
  /** Names that it covers, or will cover. */
  readonly names: readonly string[];
  /** Whether it is present and valid now. */
  readonly isValid: boolean;
}

interface Row {
  readonly members: Members;
  readonly meta: Members;
  readonly name: string;
  readonly domains: readonly string[];
}

/** Fills `context.certificates`. */
export function addCertificates(context: NpmContext): void {
  for (const members of rowsOf("certificate", context)) {
    const domains = members.texts("domain_names").map(storedNameOf);
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

const isValidNow = ({ notBefore, notAfter }: CertificateChain) =>
  Date.parse(notBefore) <= Date.now() && Date.parse(notAfter) > Date.now();

function addUploaded(
  { members, meta, name }: Row,
  context: NpmContext,
): ImportedCertificate | null {
  const inDatabase = [meta.text("certificate"), meta.text("intermediate_certificate")];
  const key = meta.text("certificate_key");
  const files =
    inDatabase[0] === null || key === null
      ? filesOf(`/data/custom_ssl/npm-${idOf(members)}`, context)
      : { certificate: inDatabase.filter((pem) => pem !== null).join("\n"), key };
  if ("problem" in files) {
    context.output.report.omitted(`files of ${members.label}`, files.problem);
    members.ignoreRest();
    return null;
  }
  const id = addCertificate(context.output, {
    key: `certificate ${idOf(members)}`,
    label: members.label,
    name,
    privateKey: files.key,
    certificate: files.certificate,
    domains: [],
  });
  if (id === null) return null;
  const chain = readChain(files.certificate, files.key);
  return { id, names: chain.names, isValid: isValidNow(chain) };
}

function addOrdered(
  { members, meta, name, domains }: Row,
  context: NpmContext,
): ImportedCertificate | null {
  const email = meta.text("letsencrypt_email");
  meta.raw("letsencrypt_agree");
  meta.raw("letsencrypt_certificate");
  const isDns = meta.flag("dns_challenge") ?? false;
  const keyType = meta.text("key_type");
  const dnsProvider = isDns ? addNpmDnsProvider({ meta, domains }, context) : null;
  for (const field of ["dns_provider", "dns_provider_credentials", "propagation_seconds"])
    meta.raw(field);
  if (domains.length === 0) {
    members.drop("it has no names");
    return null;
  }
  const present = presentChain(members, domains, context);
  const id = context.ordered.add({
    key: `certificate ${idOf(members)}`,
    label: members.label,
    name,
    domains,
    email,
    isDns,
    ...(keyType === "rsa" ? { keyType } : {}),
    dnsProvider,
    present,
  });
  return { id, names: domains, isValid: present !== null && isValidNow(present) };
}

/** The certificate that certbot wrote last; null, with a report entry, when it cannot be used. */
function presentChain(
  members: Members,
  domains: readonly string[],
  context: NpmContext,
): CertificateChain | null {
  const { report } = context.output;
  const files = filesOf(`/etc/letsencrypt/live/npm-${idOf(members)}`, context);
  if ("problem" in files) {
    report.changed(
      members.label,
      `is not served before the gateway has requested it: ${files.problem}`,
    );
    return null;
  }
  try {
    const chain = readChain(files.certificate, files.key);
    if (domains.every((name) => chain.names.includes(name))) return chain;
    report.changed(members.label, "its file is not used, because it has other names");
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    report.changed(
      members.label,
      `its file is not used: its ${error.field.replace("_", " ")} ${error.message}`,
    );
  }
  return null;
}

type Files = { readonly certificate: string; readonly key: string } | { readonly problem: string };

const WITHOUT_FILES =
  "the database does not contain them: the command `sluice import --from npm FOLDER` reads them from its folder";

function filesOf(folder: string, { findFile }: NpmContext): Files {
  if (findFile === null) return { problem: WITHOUT_FILES };
  const [certificate, key] = ["fullchain.pem", "privkey.pem"].map((file) =>
    findFile(`${folder}/${file}`),
  );
  if (!certificate || !key) return { problem: "they were not found beside the database" };
  if ("problem" in certificate) return certificate;
  return "problem" in key ? key : { certificate: certificate.text, key: key.text };
}
