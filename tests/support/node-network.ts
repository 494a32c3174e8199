// A network of its own for each node of a fleet on one machine: all can listen on the same addresses and ports, as on several machines.

import { randomBytes } from "node:crypto";

/** Addresses of 10.0.0.0/8 that no other process of the tests uses at the same time. */
const subnet = () => `10.${200 + (process.pid % 50)}.${Math.floor(process.pid / 50) % 250}`;

export class NodeNetwork {
  /**
   * At most 12 characters. The kernel may still hold the links of a network that was removed, and a process of `--parallel` loads this
   * file again for each file of tests.
   */
  readonly #name = `sl${process.pid.toString(36)}${randomBytes(2).toString("hex")}`;
  readonly #subnet = subnet();
  readonly #namespaces: string[] = [];

  private constructor() {}

  static create(): NodeNetwork {
    const network = new NodeNetwork();
    const bridge = network.#name;
    ip("link", "add", bridge, "type", "bridge");
    ip("addr", "add", `${network.hostname}/24`, "dev", bridge);
    ip("link", "set", bridge, "up");
    return network;
  }

  /** The address of the tests, as nodes reach it. */
  get hostname(): string {
    return `${this.#subnet}.1`;
  }

  get cidr(): string {
    return `${this.#subnet}.0/24`;
  }

  /** A machine: programs started with the words `wrap` have its address alone. */
  add(): { readonly address: string; readonly wrap: string[] } {
    const number = this.#namespaces.length + 1;
    const [space, link] = [`${this.#name}-${number}`, `${this.#name}v${number}`];
    const address = `${this.#subnet}.${10 + number}`;
    ip("netns", "add", space);
    this.#namespaces.push(space);
    ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space);
    ip("link", "set", link, "master", this.#name, "up");
    ip("-n", space, "addr", "add", `${address}/24`, "dev", "eth0");
    for (const device of ["lo", "eth0"]) ip("-n", space, "link", "set", device, "up");
    return { address, wrap: ["ip", "netns", "exec", space] };
  }

  remove(): void {
    for (const space of this.#namespaces) ip("netns", "del", space);
    ip("link", "del", this.#name);
  }
}

function ip(...words: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...words]);
  if (exitCode !== 0) throw new Error(`ip ${words.join(" ")}: ${stderr}`);
}
