// A PostgreSQL server of its own on a free port of 127.0.0.1.
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./data-plane.ts";
import { eventually } from "./poll.ts";

const ROOT = "/usr/lib/postgresql";

/** Directory of the newest installed version's programs; null: none, and the reason to skip a test. */
const bin = (): string | null => {
  const [newest] = existsSync(ROOT) ? readdirSync(ROOT).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? null : join(ROOT, newest, "bin");
};

export const lacksPostgres = () => (bin() === null ? "PostgreSQL (Debian: postgresql)" : null);

/** As root the server runs as the user of the Debian package: it refuses root. */
const prefix = () =>
  process.getuid?.() === 0
    ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
    : [];

export class Postgres {
  readonly port = freePort();
  readonly #directory: string;
  #server: Bun.Subprocess | null = null;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async create(): Promise<Postgres> {
    const directory = mkdtempSync(join(tmpdir(), "sluice-postgres-"));
    if (process.getuid?.() === 0) {
      const ids = Bun.spawnSync(["id", "-u", "postgres"]).stdout.toString().trim();
      chownSync(directory, Number(ids), Number(ids));
    }
    const postgres = new Postgres(directory);
    const words = ["-D", postgres.#data, "-U", "sluice", "-A", "trust", "-E", "UTF8", "--no-sync"];
    const made = Bun.spawnSync([...prefix(), join(bin() ?? "", "initdb"), ...words]);
    if (made.exitCode !== 0) throw new Error(made.stderr.toString());
    await postgres.start();
    return postgres;
  }

  get #data(): string {
    return join(this.#directory, "data");
  }

  get url(): string {
    return `postgres://sluice@127.0.0.1:${this.port}/postgres`;
  }

  async start(): Promise<void> {
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: this.#directory };
    const words = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#server = Bun.spawn(
      [
        ...prefix(),
        ...[join(bin() ?? "", "postgres"), "-D", this.#data, "-p", String(this.port), ...words],
      ],
      { stdout: "ignore", stderr: "ignore" },
    );
    await eventually(async () => {
      const sql = new Bun.SQL(this.url, { max: 1, connectionTimeout: 1 });
      return await sql`select 1`
        .then(
          () => true,
          () => false,
        )
        .finally(() => sql.close({ timeout: 0 }));
    });
  }

  /** Ends all connections at once, as a crash does. */
  async kill(): Promise<void> {
    this.#server?.kill("SIGQUIT");
    await this.#server?.exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
