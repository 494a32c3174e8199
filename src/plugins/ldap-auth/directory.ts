// Asks a directory whether a password is somebody's and which groups they are in; knows no request.
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Client } from "ldapts";
import { type Config, fill, isDirect } from "./settings.ts";

type Ldapts = typeof import("ldapts");

export interface Person {
  readonly dn: string;
  readonly groups: readonly string[];
}

/** Results of a bind that say something about who tries, and not about the directory (RFC 4511 appendix A). */
const WRONG: ReadonlySet<number> = new Set([
  32, // noSuchObject
  34, // invalidDNSyntax
  48, // inappropriateAuthentication
  49, // invalidCredentials
  53, // unwillingToPerform
]);
const MAX_GROUPS = 1000;

export class Directory {
  readonly #own: Config;
  readonly #ldapts: Ldapts;

  constructor(own: Config, ldapts: Ldapts) {
    this.#own = own;
    this.#ldapts = ldapts;
  }

  /** Null when name and password do not fit; throws an Error in words when that cannot be found out. */
  async check(username: string, password: string): Promise<Person | null> {
    // With an empty password a bind is anonymous, and succeeds (RFC 4513 section 5.1.2).
    if (password === "" || username === "") return null;
    const line = new Line(this.#own, this.#ldapts);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error("no answer in time")), this.#own.timeout);
    try {
      return await Promise.race([this.#ask(line, username, password), late]);
    } finally {
      clearTimeout(timer);
      line.close();
    }
  }

  async #ask(line: Line, username: string, password: string): Promise<Person | null> {
    const { bind_dn: template, bind_password: secret = "" } = this.#own;
    await line.open();
    const { client } = line;
    if (isDirect(this.#own)) {
      const dn = fill(template, { username });
      if (!(await this.#isRight(client, dn, password))) return null;
      const found = this.#own.base_dn === null ? dn : await this.#find(client, username);
      return found === null ? null : await this.#person(client, username, found);
    }
    await client.bind(template, secret);
    const dn = await this.#find(client, username);
    if (dn === null) return null;
    const person = await this.#person(client, username, dn);
    return (await this.#isRight(client, dn, password)) ? person : null;
  }

  async #isRight(client: Client, dn: string, password: string): Promise<boolean> {
    // Nobody's name, which any password fits, or a word that the package would take for a mechanism of SASL.
    if (!/[=@\\]/.test(dn)) return false;
    try {
      await client.bind(dn, password);
      return true;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (typeof code === "number" && WRONG.has(code)) return false;
      throw error;
    }
  }

  /** The one entry that fits; null when there is none or several. */
  async #find(client: Client, username: string): Promise<string | null> {
    const { base_dn: base, filter } = this.#own;
    const { searchEntries } = await client.search(base ?? "", {
      scope: "sub",
      filter: fill(filter, { username }),
      // RFC 4511 section 4.5.1.8: no attributes.
      attributes: ["1.1"],
      sizeLimit: 2,
    });
    const [entry] = searchEntries;
    return searchEntries.length === 1 && entry !== undefined ? entry.dn : null;
  }

  async #person(client: Client, username: string, dn: string): Promise<Person> {
    const { group_base_dn: base, group_filter: filter, group_attribute: attribute } = this.#own;
    if (base === null) return { dn, groups: [] };
    const { searchEntries } = await client.search(base, {
      scope: "sub",
      filter: fill(filter, { username, dn }),
      attributes: [attribute],
      sizeLimit: MAX_GROUPS,
    });
    const groups = searchEntries
      .flatMap((entry) => entry[attribute] ?? [])
      .filter((value) => typeof value === "string");
    return { dn, groups: [...new Set(groups)] };
  }
}

/** One connection: the package must neither open a second one nor read what came before TLS as if it had come after. */
class Line {
  readonly client: Client;
  readonly #own: Config;
  readonly #host: string;
  readonly #sockets: Socket[] = [];
  readonly #plain: Buffer[] = [];

  constructor(own: Config, { Client }: Ldapts) {
    this.#own = own;
    this.#host = new URL(own.url).hostname.replace(/^\[|\]$/g, "");
    this.client = new Client({
      url: own.url,
      timeout: own.timeout,
      connectTimeout: own.timeout,
      createConnection: ((port: number) => this.#connect(port)) as typeof connect,
      createSecureConnection: ((...given: readonly unknown[]) =>
        this.#connectTls(given)) as typeof connectTls,
    });
  }

  /** Encrypts the connection where that is to be done after it is open; else it is opened with the first question. */
  async open(): Promise<void> {
    if (this.#own.start_tls) await this.client.startTLS(this.#tlsOptions());
  }

  close(): void {
    for (const socket of this.#sockets) {
      // Nobody listens any more, and an error without a listener would end the worker.
      socket.on("error", () => undefined);
      socket.destroy();
    }
  }

  #tlsOptions(): ConnectionOptions {
    const { ca, verify_certificate: rejectUnauthorized } = this.#own;
    return {
      host: this.#host,
      ...(isIP(this.#host) === 0 ? { servername: this.#host } : {}),
      ...(ca === null ? {} : { ca }),
      rejectUnauthorized,
    };
  }

  /** It would open another one by itself when the first is cut, in the plain, and send the password over it. */
  #refuseSecond(): void {
    if (this.#sockets.length > 0) throw new Error("the connection was closed");
  }

  #connect(port: number): Socket {
    this.#refuseSecond();
    const socket = connect(port, this.#host);
    this.#sockets.push(socket);
    if (this.#own.start_tls) socket.on("data", (bytes: Buffer) => this.#plain.push(bytes));
    return socket;
  }

  /** With a port for ldaps://, or with the connection that StartTLS encrypts. */
  #connectTls([first]: readonly unknown[]): Socket {
    const options = this.#tlsOptions();
    if (typeof first === "number") {
      this.#refuseSecond();
      const socket = connectTls({ ...options, port: first });
      this.#sockets.push(socket);
      return socket;
    }
    // More than the one answer was put there by somebody on the way, to be taken for what the directory says later.
    if (!isOneMessage(Buffer.concat(this.#plain)))
      throw new Error("the directory said something before the connection was encrypted");
    const { socket: plain } = first as { readonly socket: Socket };
    const socket = connectTls({ ...options, socket: plain });
    this.#sockets.push(socket);
    return socket;
  }
}

/** One element of BER with a definite length (X.690 section 8.1.3), and nothing behind it. */
function isOneMessage(bytes: Buffer): boolean {
  const first = bytes[1] ?? 0;
  if (first < 0x80) return bytes.length === 2 + first;
  const count = first - 0x80;
  if (count === 0 || count > 4 || bytes.length < 2 + count) return false;
  return bytes.length === 2 + count + bytes.readUIntBE(2, count);
}
