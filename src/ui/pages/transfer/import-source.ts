// Detects the format of a file or text to import; sends nothing.

export type Format =
  "sluice" | "kong" | "caddy" | "npm" | "nginx" | "traefik" | "compose" | "haproxy" | "auto";

export const formats: readonly { readonly value: Format; readonly label: string }[] = [
  { value: "sluice", label: "Sluice configuration file" },
  { value: "kong", label: "Kong (declarative file)" },
  { value: "caddy", label: "Caddy (JSON)" },
  { value: "npm", label: "Nginx Proxy Manager (database)" },
  { value: "nginx", label: "nginx (nginx.conf)" },
  { value: "traefik", label: "Traefik (YAML or TOML)" },
  { value: "compose", label: "Docker Compose (labels of Traefik or Caddy, nginx-proxy)" },
  { value: "haproxy", label: "HAProxy (haproxy.cfg)" },
  { value: "auto", label: "Whole set-up (the gateway detects the program)" },
];

export interface Source {
  /** Of the file; null: it was pasted. */
  readonly name: string | null;
  readonly size: number;
  /** Null: binary. */
  readonly text: string | null;
  readonly data: Blob | string;
  /** Of a form with several files; absent: that of the format. */
  readonly contentType?: string;
  /** The detected format; null: unknown. */
  readonly format: Format | null;
  readonly type: "json" | "yaml";
  readonly isEncrypted: boolean;
  /** Why it cannot be imported as is; null: no problem. */
  readonly problem: string | null;
}

const MAX_BYTES: Readonly<Record<Format, number>> = {
  sluice: 67_108_864,
  kong: 33_554_432,
  caddy: 33_554_432,
  npm: 33_554_432,
  nginx: 33_554_432,
  traefik: 33_554_432,
  compose: 33_554_432,
  haproxy: 33_554_432,
  auto: 33_554_432,
};

/** Whether its size is above the gateway's limit. */
export const isTooLarge = (source: Source, format: Format): boolean =>
  source.size > MAX_BYTES[format];

const SQLITE = "SQLite format 3\0";

const binary = { text: null, type: "json", isEncrypted: false, problem: null } as const;

/** One file, or several with the folders that they were chosen in. */
export async function readFiles(files: readonly File[]): Promise<Source> {
  const [first] = files;
  if (first !== undefined && files.length === 1) return await readFile(first);
  const form = new FormData();
  for (const file of files) form.append("file", file, file.webkitRelativePath || file.name);
  const body = new Response(form);
  const contentType = body.headers.get("content-type") ?? "";
  const data = await body.blob();
  const name = `${files.length} files`;
  return { ...binary, name, size: data.size, data, contentType, format: "auto" };
}

export async function readFile(file: File): Promise<Source> {
  const head = await file.slice(0, SQLITE.length).text();
  const { name, size } = file;
  if (head === SQLITE) return { ...binary, name, size, data: file, format: "npm" };
  if (/\.(?:zip|tar|tar\.gz|tgz)$/i.test(name))
    return { ...binary, name, size, data: file, format: "auto" };
  return { ...readText(await file.text()), name, size, data: file };
}

export function readText(text: string): Source {
  const whole = { name: null, size: new Blob([text]).size, text, data: text };
  const type = /^\s*[{[]/.test(text) ? "json" : "yaml";
  const has = (member: string) => hasMember(text, member, type);
  const isEncrypted = has("encrypted") && has("format");
  const problem = problemOf(text);
  const common = { ...whole, type, isEncrypted, problem } as const;
  // decK does not require a version.
  if (["_format_version", "_info", "_workspace", "_konnect"].some(has))
    return { ...common, format: "kong" };
  if (problem !== null) return { ...common, format: null };
  if (isHaproxy(text)) return { ...common, format: "haproxy" };
  if (!has("format") && isTraefik(text, has)) return { ...common, format: "traefik" };
  if (has("services") && isCompose(text)) return { ...common, format: "compose" };
  if (type === "yaml" && !has("format") && isNginx(text)) return { ...common, format: "nginx" };
  if (type === "json" && has("apps") && !has("format")) return { ...common, format: "caddy" };
  return { ...common, format: "sluice" };
}

/** Whether the outermost object seems to have the member, even if the text has syntax errors. */
function hasMember(text: string, member: string, type: Source["type"]): boolean {
  if (type === "yaml") return new RegExp(`^["']?${member}["']?\\s*:`, "m").test(text);
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && Object.hasOwn(value, member);
  } catch {
    return new RegExp(`"${member}"\\s*:`).test(text);
  }
}

/** A configuration file of nginx, or the output of `nginx -T`. */
const isNginx = (text: string): boolean =>
  /^# configuration file \/\S+:$/m.test(text) ||
  /(?:^|[;{}])\s*(?:server|http|stream|events|upstream\s+[^\s{}]+)\s*\{/m.test(
    text.replaceAll(/^\s*#.*$/gm, ""),
  );
const isHaproxy = (text: string): boolean =>
  /^(?:frontend|backend|listen)\s+\S+\s*$/m.test(text) &&
  /^\s*(?:bind|server|use_backend|default_backend)\s/m.test(text);

/** Routers, or the static part; in TOML they are tables. */
const isTraefik = (text: string, has: (member: string) => boolean): boolean =>
  /^\s*\[\[?(?:http|tcp|udp|tls|entryPoints|certificatesResolvers)\b[^\]]*\]/im.test(text) ||
  has("entryPoints") ||
  (["http", "tcp", "udp"].some(has) && /["']?\b(?:routers|middlewares)\b["']?\s*:/.test(text));

/** Its services have names and images, where those of Sluice are a list. */
const isCompose = (text: string): boolean =>
  /["']?\bservices\b["']?\s*:\s*(?:#.*)?\s*(?:\{\s*)?["']?[\w.-]+["']?\s*:/.test(text) &&
  /["']?\b(?:image|build|container_name)\b["']?\s*:/.test(text);

function problemOf(text: string): string | null {
  if (text.trim() === "") return "The file is empty.";
  if (text.includes("\0")) return "The file is neither text nor a database of Nginx Proxy Manager.";
  if (
    /^\s*[^\s{}"':#][^"':{}]*\{\s*$/m.test(text) &&
    /^\s*(reverse_proxy|respond|redir|import|handle|file_server|php_fastcgi|root)\b/m.test(text)
  )
    return "This looks like a Caddyfile. Convert it to JSON first: caddy adapt --config Caddyfile > caddy.json";
  return null;
}

/** `1.5 MB`. */
export function sizeInWords(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 100) / 10} kB`;
  return `${Math.round(bytes / 100_000) / 10} MB`;
}

/** The line in an error message of the gateway. */
export function lineOf(message: string): number | null {
  const line = /\bline (\d+)/.exec(message)?.[1];
  return line === undefined ? null : Number(line);
}
