// An upstream server in a separate process, which a test can kill and restart on the same port; responds with its name.
import { quietPort } from "./quiet-port.ts";
import { eventually } from "./poll.ts";

const PROGRAM = `
  const [name, port] = process.argv.slice(-2);
  Bun.serve({ hostname: "127.0.0.1", port: Number(port), fetch: () => new Response(name) });
`;

export class OriginProcess {
  readonly name: string;
  readonly port = quietPort();
  #process: Bun.Subprocess | null = null;

  private constructor(name: string) {
    this.name = name;
  }

  static async start(name: string): Promise<OriginProcess> {
    const origin = new OriginProcess(name);
    await origin.start();
    return origin;
  }

  /** Resolves when it responds. */
  async start(): Promise<void> {
    this.#process = Bun.spawn([process.execPath, "-e", PROGRAM, this.name, String(this.port)], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "inherit",
    });
    await eventually(async () => (await fetch(`http://127.0.0.1:${this.port}/`)).ok);
  }

  /** Ends it at once, with all its connections. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    this.#process = null;
  }
}
