// Converts the dynamic configuration of Traefik; reads no file.
import { type Document, isDocument } from "../../control/body.ts";
import { invalid } from "../../model/error.ts";
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { TraefikCertificates, type TraefikContext } from "./context.ts";
import type { CertificateResolver, EntryPoint } from "./entry-points.ts";
import { withKnownNames } from "./fields.ts";
import { addRouters } from "./routes.ts";

export interface TraefikOptions {
  /** By name; absent: web and websecure with their usual ports, and all others are unknown. */
  readonly entryPoints?: Readonly<Record<string, EntryPoint>>;
  /** By name; absent: Let's Encrypt without an e-mail address. */
  readonly resolvers?: Readonly<Record<string, CertificateResolver>>;
}

/** Adds the objects of a dynamic configuration (`http`, `tcp`, `udp`, `tls`) to the result; throws a 400 for a wrong type. */
export function convertTraefik(
  dynamic: Document,
  output: Output,
  { entryPoints, resolvers = {} }: TraefikOptions = {},
): void {
  const known = withKnownNames(dynamic, (path, message) => {
    throw invalid(path, message);
  });
  const root = new Members(known, { path: "", label: "", inner: "" }, output.report);
  const tls = isDocument(known["tls"]) ? root.object("tls") : null;
  const context: TraefikContext = {
    output,
    http: root.object("http"),
    tlsOptions: tls?.object("options") ?? null,
    usedMiddlewares: new Set(),
    certificates: new TraefikCertificates(output),
    settings: {
      entryPoints: entryPoints === undefined ? null : new Map(Object.entries(entryPoints)),
      resolvers: new Map(Object.entries(resolvers)),
    },
  };
  addRouters(context);
}
