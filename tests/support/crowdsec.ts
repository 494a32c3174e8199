// A local API of CrowdSec on a free port, with a scratch configuration and no connection to the central API.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outputOf } from "./child-output.ts";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export class CrowdSec {
  readonly #port = quietPort();
  readonly #directory = mkdtempSync(join(tmpdir(), "sluice-crowdsec-"));
  #server: Bun.Subprocess | null = null;

  static async create(): Promise<CrowdSec> {
    const crowdsec = new CrowdSec();
    crowdsec.#configure();
    // `cscli decisions` speaks to the local API, as this machine.
    await crowdsec.cscli("machines", "add", "test", "--password", "test", "--force");
    await crowdsec.start();
    return crowdsec;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get #file(): string {
    return join(this.#directory, "config.yaml");
  }

  #configure(): void {
    const at = (name: string) => join(this.#directory, name);
    for (const name of ["data", "hub", "notifications", "plugins"]) mkdirSync(at(name));
    cpSync("/etc/crowdsec/profiles.yaml", at("profiles.yaml"));
    writeFileSync(at("simulation.yaml"), "simulation: off\n");
    writeFileSync(at("hub/.index.json"), "{}");
    writeFileSync(at("credentials.yaml"), "");
    const config = {
      common: { daemonize: false, log_media: "stdout", log_level: "info" },
      config_paths: {
        config_dir: this.#directory,
        data_dir: at("data"),
        simulation_path: at("simulation.yaml"),
        hub_dir: at("hub"),
        index_path: at("hub/.index.json"),
        notification_dir: at("notifications"),
        plugin_dir: at("plugins"),
      },
      db_config: { type: "sqlite", db_path: at("data/crowdsec.db"), use_wal: true },
      api: {
        client: { credentials_path: at("credentials.yaml") },
        server: { listen_uri: `127.0.0.1:${this.#port}`, profiles_path: at("profiles.yaml") },
      },
      prometheus: { enabled: false },
    };
    // JSON is YAML.
    writeFileSync(this.#file, JSON.stringify(config));
  }

  /** Runs the command, and returns its standard output. */
  async cscli(...words: readonly string[]): Promise<string> {
    const child = Bun.spawn([pathOf("cscli") ?? "", "-c", this.#file, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { code, stdout, stderr } = await outputOf(child);
    if (code !== 0) throw new Error(`cscli ${words.join(" ")}: ${stderr}`);
    return stdout.trim();
  }

  async start(): Promise<void> {
    this.#server = Bun.spawn([pathOf("crowdsec") ?? "", "-c", this.#file, "-no-cs"], {
      stdio: ["ignore", "ignore", "ignore"],
    });
    await eventually(async () => (await fetch(`${this.url}/health`)).ok);
  }

  async halt(): Promise<void> {
    this.#server?.kill("SIGKILL");
    await this.#server?.exited;
  }

  async stop(): Promise<void> {
    await this.halt();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** The status of a request from the address; on a connection of its own, so that any worker may get it. */
export async function statusFrom(port: number, address: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    keepalive: false,
    headers: { "X-Forwarded-For": address },
  });
  await response.arrayBuffer();
  return response.status;
}

/** Of as many requests that every worker has most likely served some. */
export const statusesFrom = async (
  port: number,
  address: string,
  workers: number,
): Promise<Set<number>> =>
  new Set(await Promise.all(Array.from({ length: workers * 8 }, () => statusFrom(port, address))));
