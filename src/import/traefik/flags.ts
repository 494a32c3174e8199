// Reads the static configuration of Traefik from the flags of its command line; converts nothing.
import type { Document } from "../../control/body.ts";
import { treeOf } from "./label-tree.ts";

export interface FlagSettings {
  /** In the form of Traefik's static configuration file. */
  readonly settings: Document;
  /** Whether containers without `traefik.enable` are served. */
  readonly isExposedByDefault: boolean;
  /** All flags by name in lower case, such as `configfile`. */
  readonly all: ReadonlyMap<string, string>;
}

const READ = /^(?:entrypoints|certificatesresolvers)\./i;

/** `--entrypoints.web.address=:80`; ignores all other settings. */
export function flagsToStatic(flags: readonly string[]): FlagSettings {
  const given = flags.flatMap((flag): readonly (readonly [string, string])[] => {
    const [, key, value = "true"] = /^--?([^=]+)(?:=(.*))?$/s.exec(flag.trim()) ?? [];
    return key === undefined ? [] : [[key, value]];
  });
  const all = new Map(given.map(([key, value]) => [key.toLowerCase(), value]));
  const exposed = all.get("providers.docker.exposedbydefault");
  return {
    all,
    isExposedByDefault: exposed === undefined || /^(?:true|1|t)$/i.test(exposed),
    settings: treeOf(given.filter(([key]) => READ.test(key))),
  };
}

/** `TRAEFIK_ENTRYPOINTS_WEB_ADDRESS=:80`: the same as a flag. */
export const variablesToFlags = (
  environment: Readonly<Record<string, string>>,
): readonly string[] =>
  Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith("TRAEFIK_")
      ? [`--${name.slice("TRAEFIK_".length).toLowerCase().replaceAll("_", ".")}=${value}`]
      : [],
  );
