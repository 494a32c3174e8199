// The machine's hosts file; knows no name server.

/** Age at which the file is read again. */
const MAX_AGE_MS = 5000;

export class HostsFile {
  readonly #path: string;
  #readAt = Number.NEGATIVE_INFINITY;
  #names: Promise<ReadonlyMap<string, readonly string[]>> = Promise.resolve(new Map());

  constructor(path: string) {
    this.#path = path;
  }

  /** Addresses of a lower-case name without trailing dot; empty when the file does not list it or does not exist. */
  async addressesOf(name: string): Promise<readonly string[]> {
    if (performance.now() - this.#readAt > MAX_AGE_MS) {
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
    // A zone (`%eth0`) names an interface; Bun.connect accepts an address only.
    if (!/^[0-9a-fA-F:.]+$/.test(address)) continue;
    for (const word of words) {
      const name = word.toLowerCase();
      const known = names.get(name) ?? [];
      if (!known.includes(address)) names.set(name, [...known, address]);
    }
  }
  return names;
}
