// The machine's own list of names and addresses; knows no name server.

/** It is read again when it was read longer ago. */
const FRESH_MS = 5000;

export class HostsFile {
  readonly #path: string;
  #readAt = Number.NEGATIVE_INFINITY;
  #names: Promise<ReadonlyMap<string, readonly string[]>> = Promise.resolve(new Map());

  constructor(path: string) {
    this.#path = path;
  }

  /** Addresses of a lower-case name, without its trailing dot; empty when it is not in the file or there is no file. */
  async addressesOf(name: string): Promise<readonly string[]> {
    if (performance.now() - this.#readAt > FRESH_MS) {
      this.#readAt = performance.now();
      this.#names = Bun.file(this.#path)
        .text()
        .then(parseHosts, () => new Map());
    }
    return (await this.#names).get(name) ?? [];
  }
}

/** hosts(5): an address and its names on each line, comments behind `#`. */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...words] = line.replace(/#.*/, "").trim().split(/\s+/);
    // A zone names an interface, which a connection by address alone cannot.
    if (!/^[0-9a-fA-F:.]+$/.test(address)) continue;
    for (const word of words) {
      const name = word.toLowerCase();
      const known = names.get(name) ?? [];
      if (!known.includes(address)) names.set(name, [...known, address]);
    }
  }
  return names;
}
