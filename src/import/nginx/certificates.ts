// Converts ssl_certificate: uploads the files where they are available; knows no route.
import { addCertificate } from "../pem.ts";
import type { NginxContext } from "./nginx.ts";
import { type Level, shownPlace } from "./tree.ts";

export function addCertificates(server: Level, context: NginxContext): void {
  const { files, output, certificates } = context;
  const keys = server.nearest("ssl_certificate_key");
  for (const [at, { args, place }] of server.nearest("ssl_certificate").entries()) {
    const path = args[0] ?? "";
    const keyPath = keys[at]?.args[0] ?? path;
    const pair = `${path} ${keyPath}`;
    if (certificates.has(pair)) continue;
    certificates.add(pair);
    const label = `certificate ${path} at ${shownPlace(place)}`;
    const isFile = !/[$]|^(?:data|engine):/.test(pair);
    const [certificate, privateKey] = isFile
      ? [files.read(path), files.read(keyPath)]
      : [null, null];
    if (certificate === null || privateKey === null) {
      output.report.omitted(label, "its files are not available: upload or request a certificate");
      continue;
    }
    const [, live] = /\/letsencrypt\/live\/([^/]+)\//.exec(path) ?? [];
    const name = live ?? path.replace(/^.*\//, "").replace(/\.\w+$/, "");
    const id = addCertificate(output, {
      key: pair,
      label,
      name,
      certificate,
      privateKey,
      domains: [],
    });
    if (id !== null && live !== undefined)
      output.report.changed(label, "is not renewed: request it with an ACME account");
  }
}
