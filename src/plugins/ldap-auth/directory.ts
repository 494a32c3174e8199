// Checks passwords against a directory and reads groups; knows no request.
import type { KitDialer } from "../../pdk/kit.ts";
import { type connect, isIP, type Socket } from "node:net";
import { connect as encrypt, type ConnectionOptions } from "node:tls";
import type { Client } from "ldapts";
import { type Config, fill, isDirect } from "./settings.ts";

type Ldapts = typeof import("ldapts");

export interface DirectoryUser {
  readonly dn: string;
  readonly groups: readonly string[];
}

/** Results of a bind that concern the user, and not the directory (RFC 4511 appendix A). */
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
  readonly #dialer: KitDialer;

  constructor(own: Config, ldapts: Ldapts, dialer: KitDialer) {
    this.#own = own;
    this.#ldapts = ldapts;
    this.#dialer = dialer;
  }

  /** Null when name or password are wrong; throws an Error with a message for the log when the directory cannot tell. */
  async check(username: string, password: string): Promise<DirectoryUser | null> {
    // With an empty password a bind is anonymous, and succeeds (RFC 4513 section 5.1.2).
    if (password === "" || username === "") return null;
    const connection = new LdapConnection(this.#own, this.#ldapts, this.#dialer);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error("no response in time")), this.#own.timeout);
    try {
      return await Promise.race([this.#ask(connection, username, password), late]);
    } finally {
      clearTimeout(timer);
      connection.close();
    }
  }

  async #ask(
    connection: LdapConnection,
    username: string,
    password: string,
  ): Promise<DirectoryUser | null> {
    const { bind_dn: template, bind_password: secret = "" } = this.#own;
    await connection.open();
    const { client } = connection;
    if (isDirect(this.#own)) {
      const dn = fill(template, { username });
      if (!(await this.#isRight(client, dn, password))) return null;
      const found = this.#own.base_dn === null ? dn : await this.#find(client, username);
      return found === null ? null : await this.#userOf(client, username, found);
    }
    await client.bind(template, secret);
    const dn = await this.#find(client, username);
    if (dn === null) return null;
    const user = await this.#userOf(client, username, dn);
    return (await this.#isRight(client, dn, password)) ? user : null;
  }

  async #isRight(client: Client, dn: string, password: string): Promise<boolean> {
    // An empty name, which binds anonymously with any password, or a word that the package would read as a SASL mechanism.
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

  /** The only matching entry; null when there is none or several. */
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

  async #userOf(client: Client, username: string, dn: string): Promise<DirectoryUser> {
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

/** One connection: keeps the package from opening a second one, and from reading bytes before TLS as if they came after. */
class LdapConnection {
  readonly client: Client;
  readonly #own: Config;
  readonly #host: string;
  readonly #dialer: KitDialer;
  readonly #sockets: Socket[] = [];
  readonly #plain: Buffer[] = [];

  constructor(own: Config, { Client }: Ldapts, dialer: KitDialer) {
    this.#own = own;
    this.#dialer = dialer;
    this.#host = new URL(own.url).hostname.replace(/^\[|\]$/g, "");
    this.client = new Client({
      url: own.url,
      timeout: own.timeout,
      connectTimeout: own.timeout,
      createConnection: ((port: number) => this.#connect(port)) as typeof connect,
      createSecureConnection: ((...given: readonly unknown[]) =>
        this.#connectTls(given)) as typeof encrypt,
    });
  }

  /** Sends StartTLS where configured; otherwise the first request opens the connection. */
  async open(): Promise<void> {
    if (this.#own.start_tls) await this.client.startTLS(this.#tlsOptions());
  }

  close(): void {
    for (const socket of this.#sockets) {
      // An error event without a listener would end the worker.
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

  /** The package would reconnect without TLS when the connection is cut, and send the password in plain text. */
  #refuseSecond(): void {
    if (this.#sockets.length > 0) throw new Error("the connection was closed");
  }

  #connect(port: number): Socket {
    this.#refuseSecond();
    const socket = this.#dialer.connect({ host: this.#host, port });
    this.#sockets.push(socket);
    if (this.#own.start_tls) socket.on("data", (bytes: Buffer) => this.#plain.push(bytes));
    return socket;
  }

  /** To a port for ldaps://, or over the connection that StartTLS encrypts. */
  #connectTls([first]: readonly unknown[]): Socket {
    const options = this.#tlsOptions();
    if (typeof first === "number") {
      this.#refuseSecond();
      const socket = this.#dialer.connectTls({ ...options, host: this.#host, port: first });
      this.#sockets.push(socket);
      return socket;
    }
    // Bytes after the response are an injection by an attacker, to be read as encrypted responses later.
    if (!isOneMessage(Buffer.concat(this.#plain)))
      throw new Error("the directory sent data before the connection was encrypted");
    const { socket: plain } = first as { readonly socket: Socket };
    const socket = encrypt({ ...options, socket: plain });
    this.#sockets.push(socket);
    return socket;
  }
}

/** One BER element with a definite length (X.690 section 8.1.3), and nothing after it. */
function isOneMessage(bytes: Buffer): boolean {
  const first = bytes[1] ?? 0;
  if (first < 0x80) return bytes.length === 2 + first;
  const count = first - 0x80;
  if (count === 0 || count > 4 || bytes.length < 2 + count) return false;
  return bytes.length === 2 + count + bytes.readUIntBE(2, count);
}
