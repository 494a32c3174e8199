// A Redis server of its own on a free port, with a password and TLS where a test wants them.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Authority } from "./authority.ts";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface RedisOptions {
  /** Where it listens besides 127.0.0.1. */
  readonly hostname?: string;
  /** Of a user `sluice` with the rights that the manual names; the default user is off then. */
  readonly password?: string;
  /** With a certificate of an authority of its own; connections without TLS are refused. */
  readonly tls?: boolean;
}

/** With the longest wait for a reply: the server shares a busy machine with the tests. */
export const patient = (url: string) => `${url}${url.includes("?") ? "&" : "?"}timeout=1000`;

/** As docs/shared-counters.md has it. */
const RIGHTS = ["~sluice:*", "+evalsha", "+eval", "+time", "+hmget", "+hset", "+pexpire"];
const MORE_RIGHTS = ["+set", "+exists", "+select", "+ping"];

export class Redis {
  readonly port = quietPort();
  readonly #options: RedisOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-redis-"));
  #server: Bun.Subprocess | null = null;

  private constructor(options: RedisOptions) {
    this.#options = options;
  }

  static async create(options: RedisOptions = {}): Promise<Redis> {
    const redis = new Redis(options);
    if (options.tls === true) await redis.#writeCertificate();
    await redis.start();
    return redis;
  }

  async #writeCertificate(): Promise<void> {
    const authority = await Authority.create("counters authority");
    const { cert, key } = await authority.sign({ addresses: ["127.0.0.1"], names: ["localhost"] });
    writeFileSync(this.authority, authority.cert);
    writeFileSync(join(this.#directory, "server.pem"), cert);
    writeFileSync(join(this.#directory, "server.key"), key);
  }

  /** The certificate of the authority that has signed the server's. */
  get authority(): string {
    return join(this.#directory, "ca.pem");
  }

  /** Without user and password. */
  get url(): string {
    const scheme = this.#options.tls === true ? "rediss" : "redis";
    return `${scheme}://${this.#options.hostname ?? "127.0.0.1"}:${this.port}`;
  }

  async start(): Promise<void> {
    const { hostname, password, tls = false } = this.#options;
    const file = (name: string) => join(this.#directory, name);
    const words = [
      ...["--bind", "127.0.0.1", ...(hostname === undefined ? [] : [hostname])],
      ...["--protected-mode", "no", "--save", "", "--appendonly", "yes", "--dir", this.#directory],
      ...["--unixsocket", this.#socket],
      ...(tls ? ["--port", "0", "--tls-port"] : ["--port"]),
      String(this.port),
    ];
    if (tls)
      words.push(
        ...["--tls-cert-file", file("server.pem"), "--tls-key-file", file("server.key")],
        ...["--tls-ca-cert-file", this.authority, "--tls-auth-clients", "no"],
      );
    if (password !== undefined) {
      const user = `user sluice on >${password} ${[...RIGHTS, ...MORE_RIGHTS].join(" ")}`;
      // Over the socket the tests stay who they are; a password keeps the gateway from being that.
      writeFileSync(file("users.acl"), `user default on >${password}-of-tests ~* +@all\n${user}\n`);
      words.push("--aclfile", file("users.acl"));
    }
    this.#server = Bun.spawn([pathOf("redis-server") ?? "", ...words], {
      stdout: "ignore",
      stderr: "ignore",
    });
    await eventually(async () => (await this.ask("PING")) === "PONG");
  }

  get #socket(): string {
    return join(this.#directory, "socket");
  }

  /** The reply to a command of the tests, which do not pass a gateway, as redis-cli prints it. */
  async ask(...words: string[]): Promise<string> {
    const { password } = this.#options;
    const login = password === undefined ? [] : ["-a", `${password}-of-tests`, "--no-auth-warning"];
    const command = ["redis-cli", "-s", this.#socket, ...login, ...words];
    return (await new Response(Bun.spawn(command, { stderr: "ignore" }).stdout).text()).trim();
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#server?.kill(signal);
  }

  async kill(): Promise<void> {
    this.#server?.kill("SIGKILL");
    await this.#server?.exited;
    this.#server = null;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
