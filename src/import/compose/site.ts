// A site that labels or variables of a container describe, for any proxy that reads them; knows no label.

export interface LabeledSite {
  /** Names, and `*.example.com`; empty: any host. */
  readonly hosts: readonly string[];
  /** Prefix of the path, as text; null: any path. */
  readonly path: string | null;
  /** Whether the target gets the path without the prefix. */
  readonly stripPath: boolean;
  /** Host of the target; null: the container. */
  readonly address: string | null;
  /** Port of the target; null: the usual one of the container. */
  readonly port: number | null;
  readonly scheme: "http" | "https";
  /** Whether clients use HTTPS, with a certificate that the proxy requests; plain requests are redirected. */
  readonly https: boolean;
  /** Headers of requests to set; an empty value removes one. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Users that must authenticate, with hashes of htpasswd. Empty: none. */
  readonly users: readonly { readonly username: string; readonly password_hash: string }[];
  /** A protection without an equivalent, because of which the site must be closed; null: none. */
  readonly lost: string | null;
  /** Sentences about settings without an effect, for people. */
  readonly problems: readonly string[];
}

export const plainSite: LabeledSite = {
  hosts: [],
  path: null,
  stripPath: false,
  address: null,
  port: null,
  scheme: "http",
  https: false,
  users: [],
  lost: null,
  problems: [],
};

/** A port as text; null: it is none. */
export function portOf(text: string): number | null {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : null;
}
