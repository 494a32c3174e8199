// Reads the files by which nginx-proxy protects hosts: htpasswd, vhost.d and conf.d; knows no variable of containers.
import { createHash } from "node:crypto";
import { ApiError } from "../../model/error.ts";
import { kindOf } from "../nginx/directives.ts";
import { noFiles } from "../nginx/dump.ts";
import { type Directive, readTree, shownPlace } from "../nginx/tree.ts";
import { filesBelow, textIn } from "../set-up/tree.ts";
import { Mounts } from "./mounts.ts";
import type { ProjectService } from "./project.ts";

export interface HostFiles {
  /** `name:hash` of htpasswd; null: the host has no password. */
  readonly users: readonly string[] | null;
  /** A protection that cannot be converted; null: none. */
  readonly lost: string | null;
  readonly problems: readonly string[];
}

const nothing: HostFiles = { users: null, lost: null, problems: [] };

const FOLDERS = {
  htpasswd: "/etc/nginx/htpasswd",
  snippets: "/etc/nginx/vhost.d",
  global: "/etc/nginx/conf.d",
} as const;

/** The proxy's images, and nginx beside docker-gen. */
const IMAGES = /(?:^|\/)(?:nginx-proxy|nginx)(?:[:@]|$)/;
const COMPANIONS = /(?:^|\/)(?:acme-companion|letsencrypt-nginx-proxy-companion)(?:[:@]|$)/;

/** The proxy of a project; null: it is not in the files. */
export class NginxProxyFiles {
  readonly #proxy: ProjectService;
  readonly #mounts: Mounts;
  readonly #companions: readonly Mounts[];

  static of(services: readonly ProjectService[]): NginxProxyFiles | null {
    const named = (pattern: RegExp) =>
      services.filter(({ definition }) => pattern.test(String(definition["image"] ?? "")));
    const proxies = named(IMAGES);
    const proxy =
      proxies.find(({ definition }) => /nginx-proxy/.test(String(definition["image"]))) ??
      proxies.find((one) =>
        Object.values(FOLDERS).some((path) => new Mounts(one).at(path).kind !== "none"),
      );
    return proxy === undefined ? null : new NginxProxyFiles(proxy, named(COMPANIONS));
  }

  constructor(proxy: ProjectService, companions: readonly ProjectService[]) {
    this.#proxy = proxy;
    this.#mounts = new Mounts(proxy);
    this.#companions = companions.map((one) => new Mounts(one));
  }

  /** Of a host, and of a path of it where there is one. */
  of(host: string, path: string | null): HostFiles {
    const suffix = `_${createHash("sha1")
      .update(path ?? "/")
      .digest("hex")}`;
    const htpasswd = this.#mounts.at(FOLDERS.htpasswd);
    if (htpasswd.kind === "unknown") return lost(htpasswd.what);
    const users = this.#users(host, suffix);
    const snippets = this.#mounts.at(FOLDERS.snippets);
    if (snippets.kind === "unknown" && !this.#isOfCompanion()) return lost(snippets.what);
    const found = [
      ...this.#snippets([host, "default"]),
      ...this.#snippets([`${host}${suffix}_location`, `${host}_location`, "default_location"]),
      ...this.#snippets([`${host}${suffix}_location_override`, `${host}_location_override`]),
      ...this.#global(),
    ];
    const [first = null] = found.flatMap(({ lost: one }) => one ?? []);
    const problems = found.flatMap((one) => one.problems);
    return {
      users,
      lost: first,
      problems:
        snippets.kind === "unknown"
          ? [
              ...problems,
              `the volume ${snippets.what} is not in the files: acme-companion writes there, and what else it may hold is not imported`,
            ]
          : problems,
    };
  }

  /** acme-companion needs this volume for its own files. */
  #isOfCompanion(): boolean {
    const volume = this.#mounts.volumeAt(FOLDERS.snippets);
    return volume !== null && this.#companions.some((one) => one.hasVolume(volume));
  }

  #users(host: string, suffix: string): readonly string[] | null {
    const place = [`${host}${suffix}`, host]
      .map((name) => this.#mounts.at(`${FOLDERS.htpasswd}/${name}`))
      .find(({ kind }) => kind === "file");
    if (place?.kind !== "file") return null;
    return place.text
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"));
  }

  /** The first of the files that is there. */
  #snippets(names: readonly string[]): HostFiles[] {
    for (const name of names) {
      const place = this.#mounts.at(`${FOLDERS.snippets}/${name}`);
      if (place.kind === "file") return [judged(place.text, place.path)];
    }
    return [];
  }

  #global(): HostFiles[] {
    const place = this.#mounts.at(FOLDERS.global);
    if (place.kind !== "folder") return [];
    const { tree } = this.#proxy.project;
    return filesBelow(tree, place.path)
      .filter((path) => path.endsWith(".conf") && !path.endsWith("/default.conf"))
      .map((path) => judged(textIn(tree, path) ?? "", path));
  }
}

const lost = (what: string): HostFiles => ({ ...nothing, lost: what });

/** What a file of nginx's directives does to the host. */
function judged(text: string, path: string): HostFiles {
  try {
    const directives = readTree(text, path, noFiles);
    const denying = directives.find((one) => !isHarmless(one));
    const ignored = directives.filter(isHarmless).map(({ name }) => name);
    return {
      ...nothing,
      lost: denying === undefined ? null : `${denying.name} at ${shownPlace(denying.place)}`,
      problems:
        ignored.length === 0
          ? []
          : [`${path}: ${[...new Set(ignored)].join(", ")} is not imported, and denies no client`],
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return lost(error.message);
  }
}

const HARMLESS =
  /^(?:client_max_body_size|proxy_(?:read|send|connect)_timeout|proxy_hide_header|proxy_redirect|add_header|gzip\w*|limit_(?:req|conn)_zone|map|upstream|proxy_cache\w*|default_type|set)$/;

/** A location for the challenges of ACME hides nothing. */
function isHarmless({ name, args }: Directive): boolean {
  if (name === "location") return args.at(-1)?.startsWith("/.well-known/acme-challenge") === true;
  return HARMLESS.test(name) || kindOf(name) === "elsewhere" || kindOf(name) === "harmless";
}
