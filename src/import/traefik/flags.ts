// Reads the static configuration of Traefik from the flags of its command line; converts nothing.
import type { Document } from "../../control/body.ts";
import { treeOf } from "./label-tree.ts";

export interface FlagSettings {
  /** In the form of Traefik's static configuration file. */
  readonly settings: Document;
  /** Whether containers without `traefik.enable` are served. */
  readonly isExposedByDefault: boolean;
}

const READ = /^(?:entrypoints|certificatesresolvers)\./i;

/** `--entrypoints.web.address=:80`; ignores all other settings. */
export function flagsToStatic(flags: readonly string[]): FlagSettings {
  const given = flags.flatMap((flag): readonly (readonly [string, string])[] => {
    const [, key, value = "true"] = /^--?([^=]+)(?:=(.*))?$/s.exec(flag.trim()) ?? [];
    return key === undefined ? [] : [[key, value]];
  });
  const exposed = given.find(([key]) => /^providers\.docker\.exposedbydefault$/i.test(key));
  return {
    isExposedByDefault: exposed === undefined || /^(?:true|1|t)$/i.test(exposed[1]),
    settings: treeOf(given.filter(([key]) => READ.test(key))),
  };
}
