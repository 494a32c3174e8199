// The programs whose configuration can be imported; loads none of the code that reads it.

export const importSources = [
  "kong",
  "caddy",
  "npm",
  "nginx",
  "traefik",
  "compose",
  "haproxy",
] as const;
export type ImportSource = (typeof importSources)[number];

/** The program, or `auto`: the one that the files of a folder or an archive are of. */
export const importChoices = [...importSources, "auto"] as const;
export type ImportChoice = (typeof importChoices)[number];

/** Largest source; a configuration with ten thousand routes has a tenth of it. */
export const MAX_SOURCE_BYTES = 33_554_432;
