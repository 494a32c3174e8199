// Reads what people paste: a whole URL where a host is asked for, an address without a scheme where a URL is.

export interface UrlParts {
  /** Null: none was given. */
  readonly scheme: "http" | "https" | null;
  /** IPv6 addresses without brackets. */
  readonly host: string;
  readonly port: number | null;
  /** Empty: none. */
  readonly path: string;
}

const URL_PARTS =
  /^(?:(https?):\/\/)?(\[[\da-f:.]+\]|[^\s/?#@:[\]]+)(?::(\d{1,5}))?(\/[^\s?#]*)?(?:[?#]\S*)?$/i;

/** Null for text with something else, such as credentials: the gateway's error names it. Query and fragment are dropped. */
export function partsOfUrl(text: string): UrlParts | null {
  const [, scheme, host, port, path = ""] = URL_PARTS.exec(text.trim()) ?? [];
  if (host === undefined) return null;
  return {
    scheme: scheme === undefined ? null : (scheme.toLowerCase() as UrlParts["scheme"]),
    host: host.replaceAll(/[[\]]/g, ""),
    port: port === undefined ? null : Number(port),
    path: path === "/" ? "" : path,
  };
}

/** The host of a URL while it is typed or pasted; other text is unchanged. */
export function hostOf(text: string): string {
  return /^https?:\/\/|\//i.test(text) ? (partsOfUrl(text)?.host ?? text) : text;
}

/** The hosts of a list with pasted URLs, and their paths; null: there is no URL among them. */
export function hostsOf(
  texts: readonly string[],
): { readonly hosts: readonly string[]; readonly paths: readonly string[] } | null {
  if (!texts.some((text) => text.includes("/"))) return null;
  const paths = texts.flatMap((text) => (text.includes("/") ? partsOfUrl(text)?.path || [] : []));
  return { hosts: [...new Set(texts.map(hostOf))], paths };
}

/** Host and port of a URL or address that is pasted as the host of a server; other text is the host. */
export function serverOf(text: string, before: string): Pick<UrlParts, "host" | "port"> {
  const parts = partsOfUrl(text);
  // Of what is typed letter by letter, the last digit of a port may still be missing.
  const isPasted = text.length > before.length + 1;
  return parts === null || !isPasted ? { host: text, port: null } : parts;
}

/** `127.0.0.1:3000` becomes `http://127.0.0.1:3000`, `nas:443` becomes `https://nas:443`; other text is unchanged. */
export function toUrl(text: string): string {
  const parts = partsOfUrl(text);
  // A number alone is a port at best.
  if (parts === null || /^\d*$/.test(parts.host)) return text;
  const { scheme, host, port, path } = parts;
  const own = scheme ?? (port === 443 || port === 8443 ? "https" : "http");
  const named = host.includes(":") ? `[${host}]` : host;
  return `${own}://${named}${port === null ? "" : `:${port}`}${path}`;
}
