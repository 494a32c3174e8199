// PgBouncer in transaction mode before a PostgreSQL server, on a free port of 127.0.0.1.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./poll.ts";
import type { Postgres } from "./postgres.ts";
import { asPostgres, giveToPostgres } from "./postgres-user.ts";
import { quietPort } from "./quiet-port.ts";

export class PgBouncer {
  readonly #postgres: Postgres;
  readonly #port = quietPort();
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-pgbouncer-"));
  #process: Bun.Subprocess | null = null;

  private constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  static async create(postgres: Postgres): Promise<PgBouncer> {
    const pooler = new PgBouncer(postgres);
    await pooler.#start();
    return pooler;
  }

  get url(): string {
    return this.#postgres.urlAt(this.#port);
  }

  async #start(): Promise<void> {
    const file = join(this.#directory, "pgbouncer.ini");
    const settings = {
      listen_addr: "127.0.0.1",
      listen_port: this.#port,
      unix_socket_dir: "",
      auth_type: "any",
      pool_mode: "transaction",
      max_client_conn: 200,
      default_pool_size: 10,
      ignore_startup_parameters: "extra_float_digits",
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    const target = `host=127.0.0.1 port=${this.#postgres.port} user=sluice dbname=postgres`;
    const text = ["[databases]", `postgres = ${target}`, "[pgbouncer]", ...lines, ""].join("\n");
    writeFileSync(file, text);
    for (const path of [this.#directory, file]) giveToPostgres(path);
    this.#process = Bun.spawn(asPostgres("pgbouncer", "--quiet", file), {
      stdout: "ignore",
      stderr: "ignore",
    });
    await eventually(async () => {
      const sql = new Bun.SQL(this.url, { max: 1, connectionTimeout: 1, prepare: false });
      return await sql`select 1`
        .then(
          () => true,
          () => false,
        )
        .finally(() => sql.close({ timeout: 0 }));
    });
  }

  async stop(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
