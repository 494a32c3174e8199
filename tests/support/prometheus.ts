// A Prometheus that scrapes gateways every second, with rules; Debian's executable.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

/** One series of an instant query. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

export class Prometheus {
  readonly #process: Bun.Subprocess;
  readonly #directory: string;
  readonly #url: string;

  private constructor(process: Bun.Subprocess, directory: string, url: string) {
    this.#process = process;
    this.#directory = directory;
    this.#url = url;
  }

  /** `targets`: addresses with a port; `rules`: the text of a file of rules. */
  static async start(targets: readonly string[], rules: string): Promise<Prometheus> {
    const directory = mkdtempSync(join(tmpdir(), "sluice-prometheus-"));
    const address = `127.0.0.1:${quietPort()}`;
    await Bun.write(join(directory, "rules.yaml"), rules);
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: ["rules.yaml"],
      scrape_configs: [{ job_name: "sluice", static_configs: [{ targets }] }],
    };
    await Bun.write(join(directory, "prometheus.yml"), JSON.stringify(config));
    const child = Bun.spawn(
      [
        ...["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"],
        `--web.listen-address=${address}`,
      ],
      { cwd: directory, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    );
    const prometheus = new Prometheus(child, directory, `http://${address}`);
    await eventually(() =>
      fetch(`http://${address}/-/ready`).then(
        (response) => response.ok || null,
        () => null,
      ),
    );
    return prometheus;
  }

  /** Throws with the message of a query that is invalid. */
  async query(expr: string): Promise<readonly Series[]> {
    const body = new URLSearchParams({ query: expr });
    const response = await fetch(`${this.#url}/api/v1/query`, { method: "POST", body });
    const { data, error } = (await response.json()) as {
      data?: { result: readonly Series[] };
      error?: string;
    };
    if (data === undefined) throw new Error(`${expr}: ${error}`);
    return data.result;
  }

  /** The health of each rule by its name: `ok` once it was evaluated. */
  async rules(): Promise<ReadonlyMap<string, string>> {
    const response = await fetch(`${this.#url}/api/v1/rules`);
    const { data } = (await response.json()) as {
      data: { groups: readonly { rules: readonly { name: string; health: string }[] }[] };
    };
    const all = data.groups.flatMap(({ rules }) => rules);
    return new Map(all.map(({ name, health }) => [name, health]));
  }

  async stop(): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
