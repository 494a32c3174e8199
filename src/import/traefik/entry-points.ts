// Entry points and certificate resolvers of Traefik's static configuration; knows no router.

/** An address that Traefik listens on. */
export interface EntryPoint {
  /** `:443`, `0.0.0.0:80/tcp`. */
  readonly address: string;
  /** Whether routers on it use TLS without saying so. */
  readonly isTls?: boolean;
  readonly certResolver?: string | null;
  /** Name of its TLS options. */
  readonly tlsOptions?: string | null;
  /** Whether it takes addresses of clients from a proxy in front. */
  readonly trustsProxies?: boolean;
  /** Whether it redirects all requests to an entry point for HTTPS. */
  readonly redirectsToHttps?: boolean;
  /** References to middlewares of all its routers. */
  readonly middlewares?: readonly string[];
}

/** Where Traefik requests certificates. */
export interface CertificateResolver {
  readonly email: string | null;
  /** URL of the CA's directory; null: Let's Encrypt. */
  readonly directory: string | null;
  readonly isDns: boolean;
  readonly keyType: "ecdsa" | "rsa";
}

/** The usual names, for configurations without their static part. */
export const usualEntryPoints: ReadonlyMap<string, EntryPoint> = new Map([
  ["web", { address: ":80" }],
  ["http", { address: ":80" }],
  ["websecure", { address: ":443", isTls: true }],
  ["web-secure", { address: ":443", isTls: true }],
  ["https", { address: ":443", isTls: true }],
]);

/** Entry points of sites that other proxies find by labels. */
export const siteEntryPoints: Readonly<Record<string, EntryPoint>> = {
  "site-http": { address: ":80" },
  "site-https": {
    address: ":443",
    isTls: true,
    certResolver: "site",
    redirectsToHttps: true,
  },
};

/** Null: the gateway's listeners for HTTP and HTTPS do not replace it. */
export function schemeOf({ address }: EntryPoint): "http" | "https" | null {
  const port = portOf(address);
  return port === 80 ? "http" : port === 443 ? "https" : null;
}

/** `:443/tcp`: 443. */
export function portOf(address: string): number | null {
  const [, port] = /:(\d+)(?:\/\w+)?$/.exec(address) ?? [];
  return port === undefined ? null : Number(port);
}

/** A TLS port of this gateway that streams may share by server name. */
export interface SharedPort {
  readonly address: string;
  readonly port: number;
  /** Networks of the proxies whose PROXY header it requires; null: it expects none. */
  readonly proxies: readonly string[] | null;
}

/** The ports of an entry point; text: why there is none. */
export type SharedPorts = (entryPoint: string) => readonly SharedPort[] | string;
