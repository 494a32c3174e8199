// Certificates and SNIs of Kong.
import { addCertificate } from "../pem.ts";
import { commonOf, isVaultReference, type KongContext, referenceOf, remember } from "./context.ts";

/** Adds certificates with the SNIs nested in them and those in the list `snis`. */
export function addCertificates(context: KongContext): void {
  const { root, output } = context;
  const names = new Map<string, string[]>();
  for (const sni of root.objects("snis")) {
    const name = sni.text("name") ?? "";
    sni.setLabel(`SNI "${name}"`);
    const owner = referenceOf(sni, "certificate") ?? "";
    sni.raw("id");
    commonOf(sni);
    names.set(owner, [...(names.get(owner) ?? []), name]);
    output.report.imported(sni.label, "became a name of its certificate");
  }
  for (const [index, members] of root.objects("certificates").entries()) {
    const id = members.text("id");
    const inner = members.list("snis").map((value) => sniName(value));
    const domains = [...inner, ...(id === null ? [] : (names.get(id) ?? []))];
    const name = domains[0] ?? id ?? `certificate-${index + 1}`;
    members.setLabel(`certificate "${name}"`);
    const [certificate, privateKey] = [members.text("cert") ?? "", members.text("key") ?? ""];
    for (const field of ["cert_alt", "key_alt"])
      members.omit(
        field,
        "a certificate has one key; import the other one as a separate certificate",
      );
    members.omit("passphrase", "keys are stored without a passphrase");
    const { tags } = commonOf(members);
    if ([certificate, privateKey].some(isVaultReference)) {
      members.drop("it is stored in a vault");
      continue;
    }
    const made = addCertificate(output, {
      key: id ?? name,
      label: members.label,
      name,
      certificate,
      privateKey,
      domains,
      tags: tags as string[],
    });
    if (made !== null) remember(context, { kind: "certificates", words: [id], id: made });
  }
}

const sniName = (value: unknown): string =>
  typeof value === "string" ? value : String(Object(value)["name"] ?? "");
