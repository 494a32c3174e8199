// State shared by the converters of Traefik's configuration; knows no kind of object.
import { AcmeCertificates } from "../acme.ts";
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import type { CertificateResolver, EntryPoint, SharedPorts } from "./entry-points.ts";

/** What the static configuration decides; null: it is unknown. */
export interface StaticSettings {
  readonly entryPoints: ReadonlyMap<string, EntryPoint> | null;
  /** Entry points of sites that are not Traefik's. */
  readonly sites: ReadonlyMap<string, EntryPoint>;
  readonly resolvers: ReadonlyMap<string, CertificateResolver>;
  /** Null: streams have ports of their own, those of their entry points. */
  readonly sharedPorts: SharedPorts | null;
}

export interface TraefikContext {
  readonly output: Output;
  readonly settings: StaticSettings;
  readonly http: Members | null;
  /** `tls.options` of a file. */
  readonly tlsOptions: Members | null;
  readonly certificates: TraefikCertificates;
  /** Routers to close, each with the protection that has no equivalent. */
  readonly closed: ReadonlyMap<string, string>;
  /** Names of middlewares that routers use. */
  readonly usedMiddlewares: Set<string>;
}

/** `auth@docker` is `auth` of the provider docker. */
export const withoutProvider = (reference: string): string =>
  reference.endsWith("@internal") ? reference : reference.replace(/@[^@]*$/, "");

/** Requests one ACME certificate for each set of names. */
export class TraefikCertificates {
  readonly #acme: AcmeCertificates;
  readonly #known = new Set<string>();

  constructor(output: Output) {
    this.#acme = new AcmeCertificates(output);
  }

  add(domains: readonly string[], resolver: CertificateResolver | null): void {
    const names = [...new Set(domains.map((domain) => domain.toLowerCase()))].toSorted();
    const key = names.join(" ");
    const [first] = domains;
    if (first === undefined || this.#known.has(key)) return;
    this.#known.add(key);
    this.#acme.add({
      key,
      label: `certificate for ${names.join(", ")}`,
      name: first,
      domains: names,
      email: resolver?.email ?? null,
      directory: resolver?.directory ?? null,
      ...(resolver?.isDns === true ? { isDns: true } : {}),
      ...(resolver?.keyType === "rsa" ? { keyType: "rsa" } : {}),
    });
  }
}
