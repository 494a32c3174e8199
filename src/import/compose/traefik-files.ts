// Reads the configuration of the Traefik of a Compose project: flags, variables and mounted files; converts nothing.
import { posix } from "node:path";
import type { Document } from "../../control/body.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { filesBelow, treeOf } from "../set-up/tree.ts";
import { oneStatic, readFiles } from "../traefik/files.ts";
import { memberOf } from "../traefik/merge.ts";
import { flagsToStatic, variablesToFlags } from "../traefik/flags.ts";
import type { ComposeService } from "./compose-service.ts";
import { type Mounted, Mounts } from "./mounts.ts";
import type { ProjectService } from "./project.ts";

export interface TraefikSetUp {
  /** In the form of Traefik's static configuration. */
  readonly settings: Document;
  readonly isExposedByDefault: boolean;
  /** Dynamic configurations of its files. */
  readonly documents: readonly Document[];
  /** A file that may protect all routers and is not there; null: none. */
  readonly lost: string | null;
  /** Whether a service of the project is Traefik. */
  readonly isThere: boolean;
  /** The text of a file in its container; null: it is not in the files. */
  readonly read: (path: string) => string | null;
}

const USUAL = ["yml", "yaml", "toml"].flatMap((ending) => [
  `/etc/traefik/traefik.${ending}`,
  `/traefik.${ending}`,
]);

export async function readTraefik(
  found: { readonly service: ComposeService; readonly of: ProjectService } | null,
  output: Output,
  context: Pick<ConversionContext, "parseJson">,
): Promise<TraefikSetUp> {
  const { command = [], environment = {} } = found?.service ?? {};
  const flags = flagsToStatic([...command, ...variablesToFlags(environment)]);
  const { settings, isExposedByDefault } = flags;
  const alone = { settings, isExposedByDefault, documents: [], lost: null };
  if (found === null) return { ...alone, isThere: false, read: () => null };
  const mounts = new Mounts(found.of);
  const readText = (path: string): string | null => {
    const place = mounts.at(posix.resolve("/", path));
    return place.kind === "file" ? place.text : null;
  };
  const read = new MountedFiles(mounts, found.of, { output, context });
  const [missing] = found.of.missing;
  const given = flags.all.get("configfile");
  const main = read.first(given === undefined ? USUAL : [given]);
  if (main.kind === "unknown" || (main.kind !== "file" && given !== undefined))
    return {
      ...alone,
      lost: main.kind === "unknown" ? main.what : (given ?? ""),
      isThere: true,
      read: readText,
    };
  const { statics, documents } = await read.parsed(main.kind === "file" ? [main] : []);
  const fixed = oneStatic(statics, ["file", "docker"]);
  const providers = memberOf(statics[0]?.value, "providers");
  const provider = memberOf(providers, "file");
  const wanted = ["directory", "filename"].flatMap((name) => {
    const value = memberOf(provider, name) ?? flags.all.get(`providers.file.${name}`);
    return typeof value === "string" && value !== "" ? [value] : [];
  });
  const places = wanted.map((path) => read.mounts.at(posix.resolve("/", path)));
  const unknown = places.find((place) => place.kind === "unknown");
  // A path of the image itself is empty.
  const dynamic = await read.parsed(places);
  const isExposed = memberOf(memberOf(providers, "docker"), "exposedByDefault");
  return {
    settings: { ...settings, ...fixed },
    isExposedByDefault: typeof isExposed === "boolean" ? isExposed : isExposedByDefault,
    documents: [...documents, ...dynamic.documents],
    lost: unknown?.kind === "unknown" ? unknown.what : (missing ?? null),
    isThere: true,
    read: readText,
  };
}

class MountedFiles {
  readonly mounts: Mounts;
  readonly #of: ProjectService;
  readonly #reading: {
    readonly output: Output;
    readonly context: Pick<ConversionContext, "parseJson">;
  };

  constructor(
    mounts: Mounts,
    of: ProjectService,
    reading: {
      readonly output: Output;
      readonly context: Pick<ConversionContext, "parseJson">;
    },
  ) {
    this.mounts = mounts;
    this.#of = of;
    this.#reading = reading;
  }

  /** The first path that the container has. */
  first(paths: readonly string[]): Mounted {
    const all = paths.map((path) => this.mounts.at(posix.resolve("/", path)));
    return (
      all.find(({ kind }) => kind === "file") ??
      all.find(({ kind }) => kind === "unknown") ?? { kind: "none" }
    );
  }

  async parsed(places: readonly Mounted[]) {
    const { tree } = this.#of.project;
    const texts = new Map<string, Uint8Array>();
    for (const place of places) {
      if (place.kind === "file") texts.set(place.path, new TextEncoder().encode(place.text));
      if (place.kind !== "folder") continue;
      for (const path of filesBelow(tree, place.path)) {
        const bytes = /\.(?:ya?ml|toml|json)$/i.test(path) ? tree.read(path) : null;
        if (bytes !== null) texts.set(path, bytes);
      }
    }
    return await readFiles([...texts.keys()], treeOf(texts), this.#reading);
  }
}
