// Converts a configuration of Traefik, dynamic and static, from files and from elsewhere; knows no file and no kind of object.
import type { Document } from "../../control/body.ts";
import { invalid } from "../../model/error.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { addCertificate } from "../pem.ts";
import { TraefikCertificates, type TraefikContext } from "./context.ts";
import {
  type CertificateResolver,
  type EntryPoint,
  type SharedPorts,
  siteEntryPoints,
} from "./entry-points.ts";
import { withKnownNames } from "./fields.ts";
import type { RankedRoute } from "./order.ts";
import { addRouters } from "./routes.ts";
import { readStatic } from "./static.ts";
import { addStreams } from "./streams.ts";

/** Parts of the static configuration, which precede those in the same document. */
export interface TraefikOptions {
  /** By name; absent: `web` and `websecure` with their usual ports, and all others are unknown. */
  readonly entryPoints?: Readonly<Record<string, EntryPoint>>;
  /** By name; absent: Let's Encrypt without an e-mail address. */
  readonly resolvers?: Readonly<Record<string, CertificateResolver>>;
  /** Routers to close, each with the protection that has no equivalent. */
  readonly closed?: ReadonlyMap<string, string>;
  /** Whether routers use `siteEntryPoints`, beside those of the configuration. */
  readonly hasSites?: boolean;
  /** Where TCP routers listen, which then are in service; absent: on the ports of their entry points, when they are enabled. */
  readonly sharedPorts?: SharedPorts;
}

/** Adds the objects of a dynamic configuration (`http`, `tcp`, `udp`, `tls`) to the result; returns its routes; throws a 400 for a wrong type. */
export function convertTraefik(
  dynamic: Document,
  output: Output,
  options: TraefikOptions = {},
): readonly RankedRoute[] {
  const { entryPoints, resolvers = {}, closed = new Map(), hasSites = false } = options;
  const known = withKnownNames(dynamic, (path, message) => {
    throw invalid(path, message);
  });
  const root = new Members(known, { path: "", label: "", inner: "" }, output.report);
  const fixed = readStatic(root);
  const given = entryPoints ?? fixed.entryPoints;
  const points = given === null ? null : new Map(Object.entries(given));
  const tls = root.object("tls");
  const context: TraefikContext = {
    output,
    http: root.object("http"),
    tlsOptions: tls?.object("options") ?? null,
    closed,
    usedMiddlewares: new Set(),
    certificates: new TraefikCertificates(output),
    settings: {
      entryPoints: points,
      sites: new Map(hasSites ? Object.entries(siteEntryPoints) : []),
      resolvers: new Map(Object.entries({ ...fixed.resolvers, ...resolvers })),
      sharedPorts: options.sharedPorts ?? null,
    },
  };
  const ranked = addRouters(context);
  for (const protocol of ["tcp", "udp"] as const) {
    const members = root.object(protocol);
    if (members !== null) addStreams({ protocol, members }, context);
  }
  if (tls !== null) addTls(tls, output);
  return ranked;
}

function addTls(tls: Members, output: Output): void {
  const stores = tls.object("stores");
  stores?.ignoreRest();
  if (stores !== null)
    output.report.omitted(
      "tls.stores",
      "upload its default certificate, and set it in the listener",
    );
  const options = tls.object("options");
  for (const name of options?.names ?? []) {
    const one = options?.object(name);
    one?.setLabel(`TLS options "${name}"`);
    one?.drop("set the versions and ciphers of TLS in the listener");
  }
  for (const certificate of tls.objects("certificates")) {
    const certFile = certificate.text("certFile") ?? "";
    const keyFile = certificate.text("keyFile") ?? "";
    certificate.raw("stores");
    const isPem = [certFile, keyFile].every((pem) => pem.includes("-----BEGIN"));
    const name = isPem ? certificate.path : certFile;
    const label = `certificate ${name}`;
    if (isPem)
      addCertificate(output, {
        key: name,
        label,
        name: "traefik",
        certificate: certFile,
        privateKey: keyFile,
        domains: [],
      });
    else output.report.omitted(label, "the import reads no files: upload it here");
  }
}
