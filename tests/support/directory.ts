// A small LDAP server (RFC 4511) with entries of a test: binds, searches and StartTLS, with a record of its requests.
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket } from "node:tls";

/** An entry; `password` for those that can sign in. Names are compared as they are written here. */
export interface Entry {
  readonly dn: string;
  readonly password?: string;
  readonly attributes?: Readonly<Record<string, readonly string[]>>;
}

interface Element {
  readonly tag: number;
  readonly value: Buffer;
  readonly length: number;
}

const OID_START_TLS = "1.3.6.1.4.1.1466.20037";

export class TestDirectory {
  entries: readonly Entry[] = [];
  /** Requests in order: `bind <dn>`, `search <base> <filter>`, `starttls`, each behind `tls ` when it came encrypted. */
  readonly asked: string[] = [];
  /** Replaces the bytes of responses; null sends none. */
  bend: (operation: string, answer: Buffer) => Buffer | null = (_, answer) => answer;
  connections = 0;
  readonly #server: Server;
  readonly #tls: { readonly cert: string; readonly key: string } | null;
  readonly #sockets = new Set<Socket>();

  private constructor(
    tls: { readonly cert: string; readonly key: string } | null,
    isImplicit: boolean,
  ) {
    this.#tls = tls;
    const accept = (socket: Socket) => {
      this.connections++;
      this.#serve(socket, isImplicit);
    };
    this.#server =
      isImplicit && tls !== null ? createTlsServer({ ...tls }, accept) : createServer(accept);
  }

  /** `tls`: offers StartTLS, or speaks TLS from the beginning when `isImplicit`. */
  static async start(
    tls: { readonly cert: string; readonly key: string } | null = null,
    isImplicit = false,
  ): Promise<TestDirectory> {
    const directory = new TestDirectory(tls, isImplicit);
    await new Promise<void>((resolve) => directory.#server.listen(0, "127.0.0.1", resolve));
    return directory;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket, isEncrypted: boolean): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => this.#sockets.delete(socket));
    let buffer = Buffer.alloc(0);
    const read = (bytes: Buffer) => {
      buffer = Buffer.concat([buffer, bytes]);
      for (let message = elementAt(buffer); message !== null; message = elementAt(buffer)) {
        buffer = buffer.subarray(message.length);
        const [id, operation] = childrenOf(message.value);
        if (id === undefined || operation === undefined) return;
        const isUpgrade = this.#answer(socket, { id: id.value, operation, isEncrypted });
        if (!isUpgrade) continue;
        socket.off("data", read);
        const { cert = "", key = "" } = this.#tls ?? {};
        this.#serve(new TLSSocket(socket, { isServer: true, cert, key }), true);
        return;
      }
    };
    socket.on("data", read);
  }

  /** True when the connection is to be encrypted now. */
  #answer(
    socket: Socket,
    ask: { readonly id: Buffer; readonly operation: Element; readonly isEncrypted: boolean },
  ): boolean {
    const { id, operation, isEncrypted } = ask;
    const note = (text: string) => this.asked.push(isEncrypted ? `tls ${text}` : text);
    const say = (name: string, ...answers: readonly Buffer[]) => {
      const messages = answers.map((answer) => ber(0x30, ber(0x02, id), answer));
      const bytes = this.bend(name, Buffer.concat(messages));
      if (bytes !== null) socket.write(bytes);
    };
    const parts = childrenOf(operation.value);
    const text = (at: number) => parts[at]?.value.toString() ?? "";
    switch (operation.tag) {
      case 0x60: {
        const dn = text(1);
        note(`bind ${dn}`);
        say("bind", result(0x61, this.#bind(dn, text(2))));
        return false;
      }
      case 0x63: {
        const filter = parts[6];
        const base = text(0);
        note(`search ${base} ${filter === undefined ? "" : textOf(filter)}`);
        const found = this.entries.filter(
          (entry) =>
            (entry.dn === "" || entry.dn.endsWith(base)) &&
            filter !== undefined &&
            fits(entry, filter),
        );
        const names = childrenOf(parts[7]?.value ?? Buffer.alloc(0)).map((each) =>
          each.value.toString(),
        );
        const limit = parts[3]?.value.readUIntBE(0, parts[3].value.length) ?? 0;
        const given = limit === 0 ? found : found.slice(0, limit);
        const isCut = given.length < found.length;
        say("search", ...given.map((each) => entryOf(each, names)), result(0x65, isCut ? 4 : 0));
        return false;
      }
      case 0x77: {
        note("starttls");
        const isOffered = this.#tls !== null && text(0) === OID_START_TLS;
        say("starttls", result(0x78, isOffered ? 0 : 2));
        return isOffered;
      }
      default:
        socket.end();
        return false;
    }
  }

  #bind(dn: string, password: string): number {
    // RFC 4513 section 5.1.2: an unauthenticated bind succeeds.
    if (password === "" || dn === "") return 0;
    const entry = this.entries.find((each) => each.dn === dn);
    return entry?.password !== undefined && entry.password === password ? 0 : 49;
  }
}

/** X.690 sections 8.1.2 and 8.1.3; null while it is not whole. */
function elementAt(bytes: Buffer, at = 0): Element | null {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return null;
  const count = first < 0x80 ? 0 : first - 0x80;
  if (bytes.length < at + 2 + count) return null;
  const size = count === 0 ? first : bytes.readUIntBE(at + 2, count);
  const start = at + 2 + count;
  if (bytes.length < start + size) return null;
  return { tag, value: bytes.subarray(start, start + size), length: 2 + count + size };
}

function childrenOf(bytes: Buffer): Element[] {
  const children: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const child = elementAt(bytes, at);
    if (child === null) break;
    children.push(child);
    at += child.length;
  }
  return children;
}

export function ber(tag: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const value = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const size = value.length;
  const length = size < 0x80 ? Buffer.from([size]) : Buffer.from([0x82, size >> 8, size & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, value]);
}

export const result = (tag: number, code: number) =>
  ber(tag, ber(0x0a, Buffer.from([code])), ber(0x04), ber(0x04));

const entryOf = ({ dn, attributes = {} }: Entry, names: readonly string[]) =>
  ber(
    0x64,
    ber(0x04, dn),
    ber(
      0x30,
      ...Object.entries(attributes)
        .filter(([name]) => names.includes(name))
        .map(([name, values]) =>
          ber(0x30, ber(0x04, name), ber(0x31, ...values.map((value) => ber(0x04, value)))),
        ),
    ),
  );

/** And, or, not, equal and present; RFC 4511 section 4.5.1.7. */
function fits(entry: Entry, filter: Element): boolean {
  const parts = childrenOf(filter.value);
  const name = parts[0]?.value.toString() ?? "";
  switch (filter.tag) {
    case 0xa0:
      return parts.every((part) => fits(entry, part));
    case 0xa1:
      return parts.some((part) => fits(entry, part));
    case 0xa2:
      return !parts.some((part) => fits(entry, part));
    case 0xa3:
      return entry.attributes?.[name]?.includes(parts[1]?.value.toString() ?? "") === true;
    case 0x87:
      return entry.attributes?.[filter.value.toString()] !== undefined;
    default:
      // Any other filter, such as a substring, matches all entries: an injection succeeds.
      return true;
  }
}

/** The filter as text, to find injected parts. */
function textOf(filter: Element): string {
  const parts = childrenOf(filter.value);
  const inner = () => parts.map(textOf).join("");
  switch (filter.tag) {
    case 0xa0:
      return `(&${inner()})`;
    case 0xa1:
      return `(|${inner()})`;
    case 0xa2:
      return `(!${inner()})`;
    case 0xa3:
      return `(${parts.map((part) => part.value.toString()).join("=")})`;
    case 0x87:
      return `(${filter.value.toString()}=*)`;
    default:
      return `(tag ${filter.tag})`;
  }
}
