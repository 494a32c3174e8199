// A server that an attacker would put in the place of the right one: it speaks enough of each protocol to be sent a secret.
import type { Socket, TCPSocketListener } from "bun";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";

const BASE64 = /[A-Za-z0-9+/]{8,}={0,2}/g;

export class SecretCanary {
  readonly origin: Origin;
  readonly #mail: TCPSocketListener<undefined>;
  #mailReceived = "";
  /** Where requests are led on to; null: they are answered. */
  redirectTo: string | null = null;

  constructor() {
    this.origin = startOrigin({ answer: ({ target }) => this.#answer(target) });
    const keep = (bytes: Buffer) => (this.#mailReceived += bytes.toString("latin1"));
    this.#mail = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void socket.write("220 canary ESMTP\r\n"),
        data: (socket, bytes) => {
          keep(bytes);
          converse(socket, bytes.toString("latin1"));
        },
      },
    });
  }

  /** HTTP, and LDAP as far as the first message. */
  get port(): number {
    return this.origin.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get mailPort(): number {
    return this.#mail.port;
  }

  /** Whether the text has arrived, in the clear or in base64. */
  hasSeen(text: string): boolean {
    const all = [this.#mailReceived, ...this.origin.connections.map(({ received }) => received)];
    return all.some(
      (received) =>
        received.includes(text) ||
        received.includes(encodeURIComponent(text)) ||
        (received.match(BASE64) ?? []).some((word) =>
          Buffer.from(word, "base64").toString("latin1").includes(text),
        ),
    );
  }

  stop(): void {
    this.origin.stop();
    this.#mail.stop(true);
  }

  #answer(target: string): string {
    if (target.startsWith("/.well-known/openid-configuration"))
      return reply(JSON.stringify(this.#metadata()), {
        headers: "Content-Type: application/json\r\n",
      });
    if (this.redirectTo === null) return reply("{}");
    const headers = `Location: ${this.redirectTo}${target}\r\n`;
    return reply("", { status: "307 Temporary Redirect", headers });
  }

  #metadata() {
    return {
      issuer: this.url,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      jwks_uri: `${this.url}/keys`,
    };
  }
}

function converse(socket: Socket, text: string): void {
  const [word = ""] = text.split(/[ \r]/);
  if (/^(?:EHLO|HELO)$/i.test(word)) socket.write("250-canary\r\n250 AUTH PLAIN LOGIN\r\n");
  else if (/^AUTH$/i.test(word)) socket.write("235 welcome\r\n");
  else if (/^DATA$/i.test(word)) socket.write("354 go on\r\n");
  else socket.write("250 taken\r\n");
}
