// A real CA for tests: pebble with the name server of its own package, on free ports of 127.0.0.1.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Authority } from "./authority.ts";
import { HeldResolver } from "./held-resolver.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface PebbleOptions {
  /** Where it checks http-01 and tls-alpn-01. */
  readonly httpPort: number;
  readonly tlsPort: number;
  /** Key ids and keys of external account bindings; given: one of them is required. */
  readonly eab?: Readonly<Record<string, string>>;
  /** Its own address. Default 127.0.0.1. */
  readonly hostname?: string;
  /** Percentage of good nonces that it rejects. Default 0. */
  readonly badNonces?: number;
  /** Whether validations ask `resolver`, which can keep them waiting. */
  readonly hasResolver?: boolean;
  /** More environment, such as `PEBBLE_VA_SLEEPTIME`. */
  readonly env?: Readonly<Record<string, string>>;
}

export class Pebble {
  readonly #options: PebbleOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-pebble-"));
  readonly #port = quietPort();
  readonly #managementPort = quietPort();
  readonly #dnsPort = quietPort();
  readonly #dnsManagementPort = quietPort();
  #ca: Authority | null = null;
  #names: Bun.Subprocess | null = null;
  #process: Bun.Subprocess | null = null;
  #resolver: HeldResolver | null = null;
  /** What was written. */
  output = "";

  constructor(options: PebbleOptions) {
    this.#options = options;
  }

  get #hostname(): string {
    return this.#options.hostname ?? "127.0.0.1";
  }

  get directoryUrl(): string {
    return `https://${this.#hostname}:${this.#port}/dir`;
  }

  /** `address:port` of its name server. */
  get nameServer(): string {
    return `${this.#hostname}:${this.#dnsPort}`;
  }

  /** What its validations ask, with `hasResolver`. */
  get resolver(): HeldResolver {
    if (this.#resolver === null) throw new Error("the CA asks its name server itself");
    return this.#resolver;
  }

  /** PEM of the CA of its own certificate. */
  get trusted(): string {
    return this.#ca?.cert ?? "";
  }

  /** Resolves when it responds. */
  async start(): Promise<void> {
    this.#ca ??= await Authority.create("pebble test");
    if (this.#names === null) {
      this.#names = this.#spawn("pebble-challtestsrv", [
        ...["-dns01", this.nameServer, "-management", `127.0.0.1:${this.#dnsManagementPort}`],
        ...["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""],
      ]);
      await eventually(
        async () => (await this.#control("clear-txt", { host: "x." })).status === 200,
      );
    }
    const leaf = await this.#ca.sign({ names: ["localhost"], addresses: [this.#hostname] });
    const { httpPort, tlsPort, eab, badNonces = 0 } = this.#options;
    const config = {
      pebble: {
        listenAddress: `${this.#hostname}:${this.#port}`,
        managementListenAddress: `127.0.0.1:${this.#managementPort}`,
        certificate: this.#write("cert.pem", leaf.cert),
        privateKey: this.#write("key.pem", leaf.key),
        httpPort,
        tlsPort,
        ocspResponderURL: "",
        externalAccountBindingRequired: eab !== undefined,
        externalAccountMACKeys: eab ?? {},
      },
    };
    const path = this.#write("pebble.json", JSON.stringify(config));
    if (this.#options.hasResolver === true)
      this.#resolver ??= await HeldResolver.create(this.nameServer);
    const nameServer = this.#resolver?.address ?? this.nameServer;
    this.#process = this.#spawn("pebble", ["-config", path, "-dnsserver", nameServer, "-strict"], {
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_WFE_NONCEREJECT: String(badNonces),
      PEBBLE_AUTHZREUSE: "0",
      ...this.#options.env,
    });
    await eventually(async () => (await this.#get(this.directoryUrl)).status === 200);
  }

  /** Stops the CA; its name server stays. A restart loses all its state. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    this.#process = null;
  }

  async stop(): Promise<void> {
    await this.kill();
    this.#resolver?.close();
    this.#names?.kill("SIGKILL");
    await this.#names?.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** PEM of the roots that its certificates lead to, the usual one first. */
  async roots(): Promise<readonly string[]> {
    const at = (index: number) => `https://127.0.0.1:${this.#managementPort}/roots/${index}`;
    const answers = await Promise.all([0, 1].map((index) => this.#get(at(index))));
    return await Promise.all(answers.filter(({ ok }) => ok).map((answer) => answer.text()));
  }

  /** `Valid` or `Revoked`. `serial`: hexadecimal. */
  async statusOf(serial: string): Promise<string> {
    const url = `https://127.0.0.1:${this.#managementPort}/cert-status-by-serial/${serial}`;
    const { Status } = (await (await this.#get(url)).json()) as { Status: string };
    return Status;
  }

  async setTxt(host: string, value: string): Promise<void> {
    await this.#control("set-txt", { host: `${host}.`, value });
  }

  async clearTxt(host: string): Promise<void> {
    await this.#control("clear-txt", { host: `${host}.` });
  }

  async setAlias(host: string, target: string): Promise<void> {
    await this.#control("set-cname", { host: `${host}.`, target: `${target}.` });
  }

  /** Resolves the name to an address; without one the CA gets an error. */
  async setAddress(host: string, addresses: readonly string[]): Promise<void> {
    await this.#control("add-a", { host: `${host}.`, addresses });
  }

  async failName(host: string): Promise<void> {
    await this.#control("set-servfail", { host: `${host}.` });
  }

  async healName(host: string): Promise<void> {
    await this.#control("clear-servfail", { host: `${host}.` });
  }

  #control(command: string, body: object): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#dnsManagementPort}/${command}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
  }

  #get(url: string): Promise<Response> {
    return fetch(url, { tls: { rejectUnauthorized: false } });
  }

  #write(name: string, text: string): string {
    const path = join(this.#directory, name);
    writeFileSync(path, text);
    return path;
  }

  #spawn(program: string, words: string[], env: Readonly<Record<string, string>> = {}) {
    const child = Bun.spawn([program, ...words], {
      cwd: this.#directory,
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const collect = async (stream: ReadableStream<Uint8Array>) => {
      for await (const part of stream) this.output += Buffer.from(part).toString();
    };
    void collect(child.stdout);
    void collect(child.stderr);
    return child;
  }
}
