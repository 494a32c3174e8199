// The programs whose configuration can be imported; loads none of the code that reads it.

export const importSources = ["kong", "caddy", "npm", "traefik", "compose"] as const;
export type ImportSource = (typeof importSources)[number];

/** Largest source; a configuration with ten thousand routes has a tenth of it. */
export const MAX_SOURCE_BYTES = 33_554_432;
