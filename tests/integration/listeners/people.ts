// Clients with certificates of every kind, and the settings of a listener that requests them.
import { beforeAll } from "bun:test";
import type { ConnectionOptions } from "node:tls";
import { Authority, type Leaf } from "../../support/authority.ts";
import type { Client } from "../api/client.ts";

export interface People {
  readonly root: Authority;
  readonly good: Leaf;
  /** Of another CA. */
  readonly foreign: Leaf;
  readonly expired: Leaf;
  /** A listener that requires certificates of `root`, with what differs. */
  required(fields?: object): object;
  /** The client's certificate; its server name is a.test. */
  shown(leaf: Leaf | undefined): ConnectionOptions;
  /** RFC 9440 section 2.1: the DER as a structured byte sequence. */
  asField(leaf: Leaf): string;
}

/** Makes them, and certificates for a.test and b.test, before the tests of the file. */
export function usePeople(api: Client): People {
  const made: { root?: Authority; good?: Leaf; foreign?: Leaf; expired?: Leaf } = {};
  beforeAll(async () => {
    const root = await Authority.create("Clients");
    made.root = root;
    made.good = await root.sign({ names: ["alice"] });
    made.expired = await root.sign({ names: ["old"], from: -30, until: -1 });
    made.foreign = await (await Authority.create("Others")).sign({ names: ["mallory"] });
    for (const name of ["a", "b"])
      await api.create("/certificates", {
        name,
        source: "self_signed",
        domains: [`${name}.test`, `${name}2.test`],
      });
  });
  return {
    get root() {
      return made.root as Authority;
    },
    get good() {
      return made.good as Leaf;
    },
    get foreign() {
      return made.foreign as Leaf;
    },
    get expired() {
      return made.expired as Leaf;
    },
    required: (fields = {}) => ({
      protocol: "https",
      http2: false,
      client_auth: "require",
      client_ca: made.root?.cert,
      ...fields,
    }),
    shown: (leaf) => ({ servername: "a.test", cert: leaf?.cert, key: leaf?.key }),
    asField: ({ cert }) => `:${cert.replace(/-----[A-Z ]+-----|\s/g, "")}:`,
  };
}
