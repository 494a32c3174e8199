// A PostgreSQL server of its own on a free port of 127.0.0.1.
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Authority } from "./authority.ts";
import { asPostgres, giveToPostgres } from "./postgres-user.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface PostgresOptions {
  /** Clients need it, by scram-sha-256; absent: the server trusts everybody. */
  readonly password?: string;
  /** The server has a certificate of an authority of its own, and refuses connections without TLS. */
  readonly tls?: boolean;
  /** Holds the data without the write-ahead log, to be filled; absent: a directory of its own. */
  readonly disk?: string;
}

export class Postgres {
  readonly port = quietPort();
  readonly #options: PostgresOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-postgres-"));
  readonly #settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    // Processes die in tests, machines do not: a commit waits for no disk that the whole run shares.
    fsync: "off",
  };
  #server: Bun.Subprocess | null = null;

  private constructor(options: PostgresOptions) {
    this.#options = options;
    // Nodes read the authority's certificate in it.
    chmodSync(this.#directory, 0o755);
    this.#settings["unix_socket_directories"] = this.#directory;
    giveToPostgres(this.#directory);
  }

  static async create(options: PostgresOptions = {}): Promise<Postgres> {
    const postgres = new Postgres(options);
    if (options.disk !== undefined) giveToPostgres(options.disk);
    const words = ["-D", postgres.#data, "-U", "sluice", "-E", "UTF8", "--no-sync"];
    const logs = options.disk === undefined ? [] : ["-X", join(postgres.#directory, "wal")];
    runAsPostgres("initdb", ...words, ...logs, ...postgres.#authentication());
    if (options.tls === true) await postgres.#requireTls();
    await postgres.start();
    return postgres;
  }

  get #data(): string {
    return join(this.#options.disk ?? this.#directory, "data");
  }

  #authentication(): string[] {
    const { password } = this.#options;
    if (password === undefined) return ["-A", "trust"];
    const file = join(this.#directory, "password");
    writeFileSync(file, password);
    giveToPostgres(file);
    return ["-A", "scram-sha-256", "--pwfile", file];
  }

  async #requireTls(): Promise<void> {
    const authority = await Authority.create("database authority");
    const { cert, key } = await authority.sign({ addresses: ["127.0.0.1"], names: ["localhost"] });
    for (const [name, text] of Object.entries({ "server.pem": cert, "server.key": key })) {
      const path = join(this.#directory, name);
      writeFileSync(path, text, { mode: 0o600 });
      giveToPostgres(path);
    }
    writeFileSync(this.authority, authority.cert);
    this.#settings["ssl"] = "on";
    this.#settings["ssl_cert_file"] = join(this.#directory, "server.pem");
    this.#settings["ssl_key_file"] = join(this.#directory, "server.key");
    const method = this.#options.password === undefined ? "trust" : "scram-sha-256";
    const lines = ["local all all trust", `hostssl all all 127.0.0.1/32 ${method}`, ""];
    writeFileSync(join(this.#data, "pg_hba.conf"), lines.join("\n"));
  }

  /** The certificate of the authority that has signed the server's. */
  get authority(): string {
    return join(this.#directory, "ca.pem");
  }

  get url(): string {
    return this.urlAt(this.port);
  }

  /** By way of another port of 127.0.0.1. */
  urlAt(port: number, host = "127.0.0.1"): string {
    const { password } = this.#options;
    const user = password === undefined ? "sluice" : `sluice:${encodeURIComponent(password)}`;
    return `postgres://${user}@${host}:${port}/postgres`;
  }

  /** For the tests themselves: trusted, whatever clients need. */
  connect(): Bun.SQL {
    const path = join(this.#directory, `.s.PGSQL.${this.port}`);
    const { password = "" } = this.#options;
    return new Bun.SQL({
      ...{ adapter: "postgres", path, username: "sluice", password, database: "postgres" },
      ...{ max: 1, connectionTimeout: 1 },
    });
  }

  async start(): Promise<void> {
    const words = Object.entries(this.#settings).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]);
    this.#server = Bun.spawn(
      asPostgres("postgres", "-D", this.#data, "-p", String(this.port), ...words),
      { stdout: "ignore", stderr: "ignore" },
    );
    await eventually(async () => {
      const sql = this.connect();
      return await sql`select 1`
        .then(
          () => true,
          () => false,
        )
        .finally(() => sql.close({ timeout: 0 }));
    });
  }

  /** Ends all connections at once, as a crash does; SIGINT: in order, as a restart does. */
  async kill(signal: "SIGQUIT" | "SIGINT" = "SIGQUIT"): Promise<void> {
    this.#server?.kill(signal);
    await this.#server?.exited;
    this.#server = null;
  }

  /** Signals every process of the server: each connection has one of its own. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    // The first one before the others, so that it starts no more of them.
    const [first] = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(first), signal);
    const children = readFileSync(`/proc/${first}/task/${first}/children`, "utf8");
    for (const pid of children.trim().split(" "))
      try {
        process.kill(Number(pid), signal);
      } catch {
        // It has ended since, as it does without its client.
      }
  }

  /** A copy of the database as it is now, for `restore`. */
  backup(): string {
    const copy = mkdtempSync(join(this.#directory, "backup-"));
    rmSync(copy, { recursive: true });
    this.#copyTo(copy);
    return copy;
  }

  /** Goes back to the state of a backup, as after the loss of the disk. */
  async restore(backup: string): Promise<void> {
    await this.kill();
    rmSync(this.#data, { recursive: true, force: true });
    cpSync(backup, this.#data, { recursive: true, preserveTimestamps: true });
    Bun.spawnSync(["chown", "--recursive", `--reference=${backup}`, this.#data]);
    chmodSync(this.#data, 0o700);
    await this.start();
  }

  /** A server that follows this one until it is promoted. */
  async standby(): Promise<Postgres> {
    const standby = new Postgres({});
    this.#copyTo(standby.#data, "--write-recovery-conf");
    await standby.start();
    return standby;
  }

  #copyTo(directory: string, ...words: string[]): void {
    const from = ["-h", this.#directory, "-p", String(this.port), "-U", "sluice", "--no-sync"];
    const how = ["--checkpoint=fast", "-X", "stream", ...words];
    runAsPostgres("pg_basebackup", "-D", directory, ...from, ...how);
  }

  /** From now on a commit waits until a standby has it, or does not. */
  async commitOnStandby(isRequired: boolean): Promise<void> {
    const sql = this.connect();
    await sql.unsafe(`alter system set synchronous_standby_names = '${isRequired ? "*" : ""}'`);
    await sql`select pg_reload_conf()`;
    await sql.close();
  }

  /** Ends recovery: a standby becomes a primary. */
  async promote(): Promise<void> {
    const sql = this.connect();
    await sql`select pg_promote(true, 30)`;
    await sql.close();
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function runAsPostgres(program: string, ...words: string[]): void {
  const made = Bun.spawnSync(asPostgres(program, ...words), { cwd: "/" });
  if (made.exitCode !== 0) throw new Error(`${program}: ${made.stderr}`);
}
