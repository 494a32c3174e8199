// Recognizes a Caddyfile, which only Caddy itself converts to JSON; imports nothing, so that the CLI loads it cheaply.

/**
 * Whether the text is neither JSON nor YAML of Caddy. A block of global options also begins with `{`, but no Caddyfile has a
 * quote or the end of the object behind it.
 */
export const isCaddyfile = (text: string): boolean =>
  /\S/.test(text) && !/^\s*(?:\{\s*(?:["}]|$)|\[)/.test(text) && !/^["']?apps["']?\s*:/m.test(text);

export const ADAPT_FIRST =
  "this is a Caddyfile, which only Caddy can read: run `caddy adapt --config Caddyfile > caddy.json` where Caddy runs, and import caddy.json";
